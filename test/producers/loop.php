<?php
// loop.php COUNT: COUNT orders that are rolled back, then COUNT that are committed, with the functions of etc/producers/php.php.
require getenv('DQ_TOP') . '/etc/producers/php.php';
$db = connect_db();
for ($order = 1; $order <= (int) $argv[1]; $order++) {
    $db->beginTransaction();
    $db->prepare("INSERT INTO shop_order (id, state) VALUES (?, 'new')")->execute([$order]);
    if (dq_add($db, 'order.cancel-unpaid', "order-$order", 'undone', 0) <= 0) {
        exit(1);
    }
    $db->rollBack();
}
dq_add($db, 'bytes', null, pack('C*', ...range(0, 255)), 0);
for ($order = 1; $order <= (int) $argv[1]; $order++) {
    place_order($db, $order);
}
