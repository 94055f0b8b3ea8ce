# Adds tasks in the application's own transaction, with DBI (Debian: libdbd-mariadb-perl, or libdbd-mysql-perl).
# perl perl.pl ORDER   places an order;  perl perl.pl ORDER paid   pays it
use strict;
use warnings;
use DBI;

# Adds a task to the open transaction and returns its id. $key undef: without one; a live task with that key is kept.
# $body is bytes, such as encode_json returns.
sub dq_add {
    my ($db, $tag, $key, $body, $delay_ms) = @_;
    my $call = $db->prepare('CALL dq_add(?, ?, ?, ?, @dq_id)');
    $call->bind_param(3, $body, DBI::SQL_BLOB);    # DBD::MariaDB takes other parameters for characters
    $call->execute($tag, $key, $body, $delay_ms);
    return $db->selectrow_array('SELECT @dq_id');
}

# Cancels the pending or running task with that key. 1, or 0 if there is none.
sub dq_cancel_key {
    my ($db, $tag, $key) = @_;
    $db->do('CALL dq_cancel_key(?, ?, @dq_n)', undef, $tag, $key);
    return $db->selectrow_array('SELECT @dq_n');
}

sub connect_db {
    return DBI->connect("dbi:MariaDB:database=$ENV{DB_NAME};mariadb_socket=$ENV{DB_SOCKET}", $ENV{DB_USER}, $ENV{DB_PASSWORD},
        {RaiseError => 1, PrintError => 0, AutoCommit => 0});
}

sub place_order {
    my ($db, $order) = @_;
    $db->do("INSERT INTO shop_order (id, state) VALUES (?, 'new')", undef, $order);
    dq_add($db, 'order.cancel-unpaid', "order-$order", $order, 30 * 60 * 1000);
    $db->commit;
}

sub pay_order {
    my ($db, $order) = @_;
    $db->do("UPDATE shop_order SET state = 'paid' WHERE id = ?", undef, $order);
    dq_cancel_key($db, 'order.cancel-unpaid', "order-$order");
    $db->commit;
}

unless (caller) {
    my ($order, $paid) = @ARGV;
    my $db = connect_db();
    unless (eval { $paid ? pay_order($db, $order) : place_order($db, $order); 1 }) {
        my $error = $@;
        $db->rollback;    # neither an order nor a task
        die $error;
    }
    $db->disconnect;
}
1;
