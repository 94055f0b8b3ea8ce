<?php
// kept.php - an application that computes for 50 ms until it is there, and for 1 ms a task: kept.php stay, or kept.php
function compute(float $s): void
{
    for ($until = microtime(true) + $s; microtime(true) < $until;);
}

compute(0.05);
if ($argc === 1) {
    stream_get_contents(STDIN);
    compute(0.001);
    exit;
}
$reply = fopen('php://fd/' . getenv('DQ_REPLY_FD'), 'w');
fwrite($reply, "{\"ready\":true}\n");
while (($line = fgets(STDIN)) !== false) {
    compute(0.001);
    fwrite($reply, json_encode(['id' => json_decode($line)->id, 'result' => 'done']) . "\n");
}
