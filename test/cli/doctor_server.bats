# dq doctor on servers that were started with other settings.

load ../lib/sandbox

setup_file() { sandbox_start --options '--log-bin --sync-binlog=0 --skip-innodb-doublewrite'; }

# says CHECK TEXT: the line of that check.
says() { dq doctor -o tsv | grep -P "^[A-Za-z]*\\t$1\\t" | tee /dev/stderr | grep -qF -- "$2"; }

@test 'a binary log that is not flushed and pages that are written once are reported' {
    says durability 'innodb_doublewrite = OFF: a power failure may destroy pages; set it to ON'
    says durability 'sync_binlog = 0: a power failure may lose tasks; set it to 1'
    sql 'SET GLOBAL sync_binlog = 1'
    refute says durability sync_binlog
}

@test 'a binary log that refuses what dq writes is BAD' {
    says isolation 'READ COMMITTED; binlog_format = '
    sql 'SET GLOBAL binlog_format = STATEMENT'
    says isolation 'BAD'
    says isolation 'binlog_format = STATEMENT refuses writes under READ COMMITTED (error 1665); set it to ROW'
    run dq add t
    [ "$status" -ne 0 ]
    [[ $output == *1665* || $output == *3098* ]] # Group Replication is the first to refuse it
    sql 'SET GLOBAL binlog_format = ROW'
    refute says isolation set
    dq -q add t
}

# restart OPTION
restart()
{
    "$DQ_TOP/bin/dq-sandbox" stop 3>&-
    "$DQ_TOP/bin/dq-sandbox" start --no-schema --options "$1" 3>&-
}

# connections SQL: those that have locked rows and meet the condition. The times are in seconds. The server shows what
# it showed last to who asks again within 0.1 s.
connections()
{
    sql "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_rows_locked > 0 AND $1" | grep .
}

other_locks() { second=$(connections "trx_mysql_thread_id <> $first"); }

@test 'of two transactions, the one that has locked a task is named if the server says that, otherwise the older one' {
    local setting first second oldest holder
    id=$(dq -q add t --at 2020-01-01T00:00:00Z)
    other=$(dq -q add u)
    new_account dq_doctor
    sql 'GRANT ALL ON dq.* TO dq_doctor@localhost; GRANT PROCESS ON *.* TO dq_doctor@localhost'
    own_ini 's/^user = .*/user = dq_doctor/'
    export DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini
    for setting in OFF ON; do
        restart --performance-schema=$setting
        sql "START TRANSACTION; SELECT id FROM dq_task WHERE id = $other FOR UPDATE; DO SLEEP(1000)" \
            >/dev/null 2>&1 3>&- &
        wait_pause=0.2 wait_until connections 'trx_started < SYSDATE() - INTERVAL 1 SECOND'
        first=$(connections TRUE)
        lock_task "$id"
        wait_pause=0.2 wait_until other_locks
        oldest="one of 2 transactions, the oldest: connection $first"
        wait_until says tags "another session has locked it: $oldest, root@localhost, open for "
        if [[ $(sql 'SELECT VERSION()') != *MariaDB* ]]; then
            sql 'GRANT SELECT ON performance_schema.data_locks TO dq_doctor@localhost'
            holder="connection $second"
            [ $setting = ON ] || holder=$oldest
            wait_until says tags "another session has locked it: $holder, root@localhost, open for "
            sql 'REVOKE SELECT ON performance_schema.data_locks FROM dq_doctor@localhost'
        fi
        sql "KILL $first"
        lock_release
    done
}

@test 'a server that runs with innodb_force_recovery is reported' {
    restart --innodb-force-recovery=1
    says durability 'innodb_force_recovery = 1: a server that is being rescued may refuse or lose tasks'
}

@test 'a server with innodb_read_only counts as read-only' {
    restart --innodb-read-only
    try dq add t
    [ "$rc" -eq 69 ]
    [[ $err == *'the server is read-only'* ]]
    dq list
}

@test 'a table that another session has locked costs each check a second, and is named' {
    "$DQ_TOP/bin/dq-sandbox" stop 3>&-
    "$DQ_TOP/bin/dq-sandbox" start 3>&-
    mkfifo "$BATS_TEST_TMPDIR/lock"
    mariadb --no-defaults --unbuffered --socket="$(readlink -f "$DQ_SANDBOX/server")/mysql.sock" --user=root \
        --database=dq --skip-column-names <"$BATS_TEST_TMPDIR/lock" >"$BATS_TEST_TMPDIR/locked" 3>&- &
    exec 9>"$BATS_TEST_TMPDIR/lock"
    echo 'LOCK TABLES dq_task WRITE; SELECT "locked";' >&9
    wait_until grep -q locked "$BATS_TEST_TMPDIR/locked"
    run timeout 1m "$DQ_BIN/dq" doctor
    exec 9>&-
    echo "$output"
    [ "$status" -eq 2 ]
    [[ $output == *'a row or the whole table is locked by another session (error 1205)'* ]]
}
