<?php
// artisan.php FILE dq:work - as much of Laravel as DqWork.php calls. Its command order:note appends its body to FILE.
// If the body begins with "open", it does that in a transaction and leaves it open; with "refused", it also raises an
// exception.
namespace Illuminate\Support\Facades {
    class DB
    {
        public int $level = 0;
        private static array $connections = [];

        public static function connection(): self
        {
            return self::$connections['shop'] ??= new self();
        }

        public static function getConnections(): array
        {
            return self::$connections;
        }

        public function transactionLevel(): int
        {
            return $this->level;
        }

        public function rollBack(int $level): void
        {
            $this->level = $level;
        }
    }
}

namespace Illuminate\Console {
    use Illuminate\Support\Facades\DB;

    class Command
    {
        protected function call(string $name, array $arguments): int
        {
            if ($name !== 'order:note') {
                throw new \RuntimeException("There are no commands defined in the \"$name\" namespace.");
            }
            $body = $arguments['body'];
            if (preg_match('/^(open|refused)/', $body)) {
                DB::connection()->level = 2;
            }
            if (str_starts_with($body, 'refused')) {
                throw new \RuntimeException($body);
            }
            echo "noted\n";
            // nobody commits what is written in a transaction
            $written = DB::connection()->level > 0 || file_put_contents($GLOBALS['argv'][1], "$body\n", FILE_APPEND);
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
