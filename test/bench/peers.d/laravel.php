<?php
// laravel.php - the database queue of Laravel at the MariaDB of $BENCH_SOCKET, a task at a time. Its times are whole
// seconds.
//
// usage: php laravel.php init | fill COUNT | plan | add | drain COUNT IN_FLIGHT [COMMAND] | serve IN_FLIGHT COMMAND
// As ../peers describes them, which starts IN_FLIGHT of these processes.
foreach (['Queue', 'Database', 'Events', 'Bus'] as $part) {
    require_once "Illuminate/$part/autoload.php";
}

use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Database\Capsule\Manager as Database;
use Illuminate\Events\Dispatcher;
use Illuminate\Queue\Capsule\Manager as Queue;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;

const BODY = '12345678901234567890';

class Task implements ShouldQueue
{
    public static $command = '', $first = 0, $last = 0, $count = 0;
    public $text;

    public function __construct($text)
    {
        $this->text = $text;
    }

    public function handle()
    {
        self::$first = self::$first ?: microtime(true);
        if (self::$command !== '') {
            $pipes = [];
            $none = ['file', '/dev/null', 'w'];
            $process = proc_open(['/bin/sh', '-c', self::$command], [['pipe', 'r'], $none, $none], $pipes);
            @fwrite($pipes[0], $this->text); // a command need not read it
            fclose($pipes[0]);
            proc_close($process);
        }
        self::$last = microtime(true);
        self::$count++;
    }
}

class Reporter implements ExceptionHandler
{
    public function report(Throwable $e)
    {
        fwrite(STDERR, "$e\n");
    }

    public function shouldReport(Throwable $e)
    {
        return true;
    }

    public function render($request, Throwable $e)
    {
    }

    public function renderForConsole($output, Throwable $e)
    {
    }
}

$container = new Container;
Container::setInstance($container);
$events = new Dispatcher($container);
$database = new Database($container);
$database->addConnection([
    'driver' => 'mysql', 'unix_socket' => getenv('BENCH_SOCKET'), 'host' => 'localhost', 'database' => 'dq',
    'username' => 'dq', 'password' => '', 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci', 'prefix' => '',
]);
$database->setAsGlobal();
$container->instance('db', $database->getDatabaseManager());
$container->instance('events', $events);
$container->instance(Illuminate\Contracts\Events\Dispatcher::class, $events);
$container->instance(Container::class, $container);
$container->instance(Illuminate\Contracts\Container\Container::class, $container);
$container->singleton(Illuminate\Contracts\Bus\Dispatcher::class, fn () => new Illuminate\Bus\Dispatcher($container));
$queues = new Queue($container);
$queues->addConnection([
    'driver' => 'database', 'table' => 'jobs', 'connection' => null, 'queue' => 'default', 'retry_after' => 90,
    'after_commit' => false,
]);
$queues->setAsGlobal();
$queue = $queues->getConnection();

function add_all($queue, $texts, $planned)
{
    foreach (array_chunk($texts, 1000) as $part) {
        Database::connection()->transaction(function () use ($queue, $part, $planned) {
            foreach ($part as $text) {
                // Whole seconds: rounded up, as an earlier start would be too early.
                $delay = $planned ? (new DateTime)->setTimestamp((int) ceil($text / 1e6)) : 0;
                $queue->later($delay, new Task($text));
            }
        });
    }
}

function work($queues, $events, $command, $drain)
{
    Task::$command = $command;
    $worker = new Worker($queues->getQueueManager(), $events, new Reporter, fn () => false);
    $options = new WorkerOptions('default', 0, 1024, 60, 0.01);
    $options->stopWhenEmpty = $drain;
    $worker->daemon('default', 'default', $options);
    printf("%.6f %.6f %d\n", Task::$first, Task::$last, Task::$count);
}

switch ($argv[1]) {
case 'init':
    Database::schema()->dropIfExists('jobs');
    Database::schema()->create('jobs', function ($table) {
        $table->bigIncrements('id');
        $table->string('queue')->index();
        $table->longText('payload');
        $table->unsignedTinyInteger('attempts');
        $table->unsignedInteger('reserved_at')->nullable();
        $table->unsignedInteger('available_at');
        $table->unsignedInteger('created_at');
    });
    break;
case 'fill':
    add_all($queue, array_fill(0, (int) $argv[2], BODY), false);
    break;
case 'plan':
    add_all($queue, file('php://stdin', FILE_IGNORE_NEW_LINES), true);
    break;
case 'add':
    $queue->push(new Task(BODY));
    break;
case 'drain':
    work($queues, $events, $argv[4] ?? '', true);
    break;
case 'serve':
    work($queues, $events, $argv[3], false);
    break;
default:
    fwrite(STDERR, "what is {$argv[1]}?\n");
    exit(64);
}
