<?php
// worker.php - a process that stays, see dq-handlers(5): keep: 2, run: [/usr/bin/php, /srv/worker.php]. Replace work.
function work(string $tag, string $body): void    // Laravel: boot the kernel above, Artisan::call($tag, ['body' => $body]) here
{
    echo $body, "\n";
}

$reply = fopen('php://fd/' . getenv('DQ_REPLY_FD'), 'w');
fwrite($reply, "{\"ready\":true}\n");
while (($line = fgets(STDIN)) !== false) {
    $task = json_decode($line, true);
    $answer = ['id' => $task['id'], 'result' => 'done'];
    try {
        work($task['tag'], $task['body'] ?? base64_decode($task['body_base64']));
    } catch (Throwable $e) {
        $answer = ['id' => $task['id'], 'result' => 'retry', 'error' => $e->getMessage()];
    }
    fwrite($reply, json_encode($answer, JSON_INVALID_UTF8_SUBSTITUTE) . "\n");
}
