<?php
// DqWork.php - a console command of Laravel that stays: app/Console/Commands/DqWork.php.
// In the handlers file: "order.*": {keep: 4, run: [/usr/bin/php, /srv/shop/artisan, "dq:work"], restart_on: [/srv/shop/REVISION]}
// A task with the tag order.cancel and the body 1001 is then what `php artisan order:cancel 1001` is, without a start.
namespace App\Console\Commands;

use Illuminate\Console\Command;
use Illuminate\Support\Facades\DB;

class DqWork extends Command
{
    protected $signature = 'dq:work';
    protected $description = 'Does the tasks that dqd hands over, one after the other';

    public function handle(): int
    {
        $reply = fopen('php://fd/' . getenv('DQ_REPLY_FD'), 'w');
        fwrite($reply, "{\"ready\":true}\n");
        while (($line = fgets(STDIN)) !== false) {
            $task = json_decode($line, true);
            $answer = ['id' => $task['id'], 'result' => 'done'];
            try {
                $body = $task['body'] ?? base64_decode($task['body_base64']);
                $status = $this->call(str_replace('.', ':', $task['tag']), ['body' => $body]);
                if ($status !== 0) {
                    throw new \RuntimeException("exit status $status");
                }
                if ($this->rollBack()) {
                    throw new \RuntimeException('it left its transaction open, which was rolled back');
                }
            } catch (\Throwable $e) {
                $this->rollBack();    // so that the next task does not go on with it
                $answer = ['id' => $task['id'], 'result' => 'retry', 'error' => $e->getMessage()];
            }
            fwrite($reply, json_encode($answer, JSON_INVALID_UTF8_SUBSTITUTE) . "\n");
        }
        return 0;
    }

    /** Whether a transaction was open. */
    private function rollBack(): bool
    {
        $open = array_filter(DB::getConnections(), fn ($connection) => $connection->transactionLevel() > 0);
        foreach ($open as $name => $connection) {
            try {
                $connection->rollBack(0);
            } catch (\Throwable $e) {
                DB::purge($name);
            }
        }
        return $open !== [];
    }
}
