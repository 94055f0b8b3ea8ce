# dq_event: what a dqd records of itself and of others, and how long it is kept.

load ../lib/sandbox

setup()
{
    sandbox_clear
    echo 'handlers: {t: {run: "true"}}' | write_handlers
    configure ''
    export DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini
}

configure() { DQ_CONFIG=$DQ_SANDBOX/dq.ini own_ini "$1"$'\n/^\\[dqd\\]/a heartbeat = 1s'; }
events() { sql "SELECT COUNT(*) FROM dq_event WHERE verb = '$1'"; }
has() { [ "$(events "$1")" -eq "$2" ]; }

@test 'a resident dqd records its start and its end, a pass neither' {
    dqd --once
    dqd_start --resident
    wait_until has dqd-start 1
    dqd_stop
    has dqd-end 1
    [ "$(sql 'SELECT COUNT(*) FROM dq_event')" -eq 2 ]
    [ "$(sql "SELECT COUNT(*) FROM dq_event WHERE actor = 'dqd@$(hostname)'
        AND arguments LIKE 'pid %, % slots, %'")" -eq 2 ]
}

@test 'a dqd that was killed is recorded once, by one that lives or by the next one' {
    dqd_start --resident
    wait_until has dqd-start 1
    "$DQ_BIN/dqd" --resident >"$BATS_TEST_TMPDIR/second" 2>&1 3>&- &
    second=$!
    wait_until has dqd-start 2
    kill -9 "$second"
    wait_until has dqd-lost 1
    [ "$(sql "SELECT COUNT(*) FROM dq_event WHERE verb = 'dqd-lost'
        AND arguments LIKE 'pid $second, resident, silent%'")" -eq 1 ]
    wait_until grep -q 'another dqd has fallen silent' "$DQD_LOG"
    kill -9 "$DQD_PID"
    wait "$DQD_PID" || true
    silent()
    {
        [ "$(sql 'SELECT SUM(last_seen > UTC_TIMESTAMP(3) - INTERVAL stale_after * 1000 MICROSECOND)
                  FROM dq_poller')" -eq 0 ]
    }
    wait_until silent
    dqd --once
    has dqd-lost 2
    dqd --once
    has dqd-lost 2
    has dqd-end 0
}

@test 'a dqd that was recorded as lost and returns is recorded as back, each time' {
    dqd_start --resident
    wait_until has dqd-start 1
    "$DQ_BIN/dqd" --resident >"$BATS_TEST_TMPDIR/second" 2>&1 3>&- &
    second=$!
    wait_until has dqd-start 2
    for time in 1 2; do
        kill -STOP "$second"
        wait_until has dqd-lost "$time"
        kill -CONT "$second"
        wait_until has dqd-back "$time"
    done
    [ "$(sql "SELECT COUNT(*) FROM dq_event WHERE verb = 'dqd-back'
        AND arguments LIKE 'pid $second, was silent for %'")" -eq 2 ]
    kill "$second"
    wait_until has dqd-end 1
    dqd_stop
    wait "$second"
    has dqd-end 2
}

@test 'without the right to write dq_event, dqd works, and logs that' {
    sql "$(sed "s/'%'/'localhost'/; s/ IDENTIFIED BY '[^']*'//" "$DQ_TOP/sql/grants.sql.example")
        REVOKE INSERT ON dq.dq_event FROM dq_worker@localhost"
    configure 's/^user = .*/user = dq_worker/'
    id=$(dq --config "$DQ_SANDBOX/dq.ini" -q add t)
    fake_dqd
    dqd_start --resident
    done_() { [ "$(sql "SELECT status FROM dq_task WHERE id = $id")" -eq 1 ]; }
    wait_until done_
    wait_until grep -q 'cannot write to dq_event' "$DQD_LOG"
    # the loss of another dqd cannot be recorded either
    sql "DELETE FROM dq_poller WHERE pid = 1"
    for _ in 1 2; do
        seen=$(sql 'SELECT last_seen FROM dq_poller')
        wait_until eval '[ "$(sql "SELECT last_seen FROM dq_poller")" \> "$seen" ]'
    done
    dqd_stop
    [ "$(grep -c 'cannot write to dq_event' "$DQD_LOG")" -eq 1 ]
}

@test 'old events are deleted, in steps, as [retention] says' {
    sql "INSERT INTO dq_event (token, event_time, actor, verb)
         SELECT UNHEX(LEFT(SHA2(seq, 256), 32)), UTC_TIMESTAMP(3) - INTERVAL IF(seq > 1200, 89, 91) DAY, 'a@h', 'cancel'
         FROM $(numbers 1300)"
    dqd_start --resident
    young() { has cancel 100; }
    wait_until young
    dqd_stop
    sql "UPDATE dq_event SET event_time = '2020-01-01'"
    configure '$a [retention]\nevents = never\ninterval = 100ms'
    dqd_start --resident
    for sweep in first second; do
        sql "INSERT INTO dq_task (tag, message_body, status, expected_time, finish_time, create_time)
             VALUES ('$sweep', '', 1, '2020-01-01', '2020-01-01', '2020-01-01')"
        swept() { [ "$(sql "SELECT COUNT(*) FROM dq_task")" -eq 0 ]; }
        wait_until swept
    done
    dqd_stop
    has cancel 100
}

# Each task that comes late and is gone shows another sweep.
@test 'old tasks that a foreign key keeps are tried ever more seldom, and others are deleted at once' {
    old() {
        sql "INSERT INTO dq_task (tag, message_body, status, expected_time, finish_time, create_time)
             SELECT 'a', '', 1, '$1', '2020-01-03', '2020-01-01' FROM $(numbers "$2")"
    }
    old 2020-01-01 700
    sql "CREATE TABLE app_order (task BIGINT UNSIGNED, FOREIGN KEY (task) REFERENCES dq_task(id));
         INSERT INTO app_order SELECT id FROM dq_task"
    configure '$a [retention]\ndone = 1d\ninterval = 100ms'
    dqd_start --resident
    left() { [ "$(sql 'SELECT COUNT(*) FROM dq_task')" -eq "$1" ]; }
    tried() { grep -c 'some old tasks cannot be deleted; others are not affected' "$DQD_LOG"; }
    for sweep in {1..25}; do
        old 2020-01-02 1
        wait_until left 700
    done
    (($(tried) >= 1 && $(tried) < 15))
    sql 'DROP TABLE app_order'
    wait_until left 0
    dqd_stop
}

# More than one step of locked rows, which are tried first.
@test 'old tasks behind hundreds that another session has locked are deleted, and those when it ends' {
    sql "INSERT INTO dq_task (tag, message_body, status, expected_time, finish_time, create_time)
         SELECT IF(seq > 1900, 'u', 't'), '', 1, '2020-01-01' + INTERVAL seq SECOND, '2020-01-02', '2020-01-01'
         FROM $(numbers 2000)"
    lock_task "$(sql 'SELECT MIN(id) FROM dq_task')"
    echo "UPDATE dq_task SET pid = 1 ORDER BY id LIMIT 1300; SELECT 'all';" >&9
    wait_until grep -q all "$BATS_TEST_TMPDIR/locked"
    configure '$a [retention]\ndone = 1d\ninterval = 100ms'
    dqd_start --resident
    left() { [ "$(sql 'SELECT COUNT(*) FROM dq_task')" -eq "$1" ]; }
    wait_until left 1300
    wait_until grep -q 'some old tasks cannot be deleted; others are not affected' "$DQD_LOG"
    echo 'ROLLBACK;' >&9
    wait_until left 0
    dqd_stop
    lock_release
}
