# loop.pl COUNT: COUNT orders that are rolled back, then COUNT that are committed, with the functions of etc/producers/perl.pl.
use strict;
use warnings;

require "$ENV{DQ_TOP}/etc/producers/perl.pl";
my $db = connect_db();
for my $order (1 .. $ARGV[0]) {
    $db->do("INSERT INTO shop_order (id, state) VALUES (?, 'new')", undef, $order);
    dq_add($db, 'order.cancel-unpaid', "order-$order", 'undone', 0) > 0 or die 'no id';
    $db->rollback;
}
dq_add($db, 'bytes', undef, pack('C*', 0 .. 255), 0);
$db->commit;
place_order($db, $_) for 1 .. $ARGV[0];
$db->disconnect;
