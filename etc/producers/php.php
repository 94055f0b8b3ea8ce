<?php
// Adds tasks in the application's own transaction, with PDO (Debian: php-cli php-mysql).
// php php.php ORDER   places an order;  php php.php ORDER paid   pays it

// Adds a task to the open transaction and returns its id. $key null: without one; a live task with that key is kept.
function dq_add(PDO $db, string $tag, ?string $key, string $body, int $delay_ms): int
{
    $db->prepare('CALL dq_add(?, ?, ?, ?, @dq_id)')->execute([$tag, $key, $body, $delay_ms]);
    return (int) $db->query('SELECT @dq_id')->fetchColumn();
}

// Cancels the pending or running task with that key. 1, or 0 if there is none.
function dq_cancel_key(PDO $db, string $tag, string $key): int
{
    $db->prepare('CALL dq_cancel_key(?, ?, @dq_n)')->execute([$tag, $key]);
    return (int) $db->query('SELECT @dq_n')->fetchColumn();
}

function connect_db(): PDO
{
    return new PDO('mysql:unix_socket=' . getenv('DB_SOCKET') . ';dbname=' . getenv('DB_NAME') . ';charset=utf8mb4',
        getenv('DB_USER'), getenv('DB_PASSWORD') ?: '', [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
}

function place_order(PDO $db, int $order): void
{
    $db->beginTransaction();
    $db->prepare("INSERT INTO shop_order (id, state) VALUES (?, 'new')")->execute([$order]);
    dq_add($db, 'order.cancel-unpaid', "order-$order", (string) $order, 30 * 60 * 1000);
    $db->commit();
}

function pay_order(PDO $db, int $order): void
{
    $db->beginTransaction();
    $db->prepare("UPDATE shop_order SET state = 'paid' WHERE id = ?")->execute([$order]);
    dq_cancel_key($db, 'order.cancel-unpaid', "order-$order");
    $db->commit();
}

if (realpath($argv[0]) === __FILE__) {
    $db = connect_db();
    try {
        isset($argv[2]) ? pay_order($db, (int) $argv[1]) : place_order($db, (int) $argv[1]);
    } catch (Throwable $error) {
        if ($db->inTransaction()) {
            $db->rollBack(); // neither an order nor a task
        }
        throw $error;
    }
}
