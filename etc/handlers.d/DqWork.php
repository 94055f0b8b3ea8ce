<?php
// DqWork.php - a console command of Laravel that stays: app/Console/Commands/DqWork.php.
// In the handlers file: "order.*": {keep: 4, run: [/usr/bin/php, /srv/shop/artisan, "dq:work"], restart_on: [/srv/shop/REVISION]}
// A task with the tag order.cancel and the body 1001 is then what `php artisan order:cancel 1001` is, without a start.
namespace App\Console\Commands;

use Illuminate\Console\Command;

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
                    $answer = ['id' => $task['id'], 'result' => 'retry', 'error' => "exit status $status"];
                }
            } catch (\Throwable $e) {
                $answer = ['id' => $task['id'], 'result' => 'retry', 'error' => $e->getMessage()];
            }
            fwrite($reply, json_encode($answer, JSON_INVALID_UTF8_SUBSTITUTE) . "\n");
        }
        return 0;
    }
}
