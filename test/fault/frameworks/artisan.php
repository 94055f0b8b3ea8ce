<?php
// artisan.php FILE dq:work - as much of Laravel as DqWork.php calls. Its command order:note appends its body to FILE.
namespace Illuminate\Console {
    class Command
    {
        protected function call(string $name, array $arguments): int
        {
            if ($name !== 'order:note') {
                throw new \RuntimeException("There are no commands defined in the \"$name\" namespace.");
            }
            echo "noted\n";
            $written = file_put_contents($GLOBALS['argv'][1], $arguments['body'] . "\n", FILE_APPEND);
            usleep(5000);
            return $written ? 0 : 1;
        }
    }
}

namespace {
    require dirname(__DIR__, 3) . '/etc/handlers.d/DqWork.php';
    usleep(50000); // it boots
    exit((new App\Console\Commands\DqWork())->handle());
}
