#!/usr/bin/env bats
# dqd at work while a newer dq changes the tables in a way that it does not know: schema_compat rises above its number.

load ../lib/sandbox
setup() { sandbox_clear; }
teardown()
{
    dqd_reap
    sql "REPLACE INTO dq_meta (name, value) VALUES ('schema_version', '$OURS'), ('schema_compat', '1')"
}
OURS=$("$DQ_BIN/dq" version -o json | sed 's/.*"schema"://; s/[,}].*//')

logged() { grep -q "$1" "$DQD_LOG"; }
outgrow() { sql "UPDATE dq_meta SET value = IF(name = 'schema_compat', 98, 99)"; }
gone() { ! kill -0 "$DQD_PID" 2>/dev/null; }
ended() # and leaves the exit status in rc
{
    wait_until gone
    rc=0
    wait "$DQD_PID" || rc=$?
    DQD_PID=''
}
quick() { own_ini 's/^\[dqd\]/&\nheartbeat = 100ms/'; }

@test "dqd starts no more tasks, records what is running, logs once what to do, and exits with 78" {
    quick
    write_handlers <<END
handlers:
  t:
    run: echo >>$BATS_TEST_TMPDIR/begun; until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.05; done
    max_running: 2
END
    begun() { [ "$(cat "$BATS_TEST_TMPDIR/begun" | wc -l)" -eq 2 ]; }
    for i in 1 2 3; do dq -q add t; done
    dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"
    wait_until begun
    outgrow
    wait_until logged 'a newer dq has changed the tables'
    wait_until is 'status = 0 AND attempt = 0' 1
    is 'status = 3' 2
    touch "$BATS_TEST_TMPDIR/go"
    ended
    cat "$DQD_LOG"
    [ "$rc" -eq 78 ]
    is 'status = 1' 2
    is 'status = 0 AND attempt = 0' 1
    [ "$(grep -c ' error dqd ' "$DQD_LOG")" -eq 1 ]
    [[ $(tail -n 1 "$DQD_LOG") == *": the schema is version 99, made by a newer dq and compatible back to 98, \
this dq is made for $OURS: upgrade dq" ]]
}

@test "a --for that has nothing to do exits with 78, too" {
    quick
    write_handlers <<<'handlers: {t: {run: "true"}}'
    dqd_start --for 10m --config "$BATS_TEST_TMPDIR/own.ini"
    id=$(dq -q add t)
    wait_until is 'status = 1' 1
    outgrow
    ended
    [ "$rc" -eq 78 ]
}

@test "a newer schema that works with this dqd does not disturb it" {
    quick
    write_handlers <<<'handlers: {t: {run: "true"}}'
    dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"
    wait_until logged connected
    sql "UPDATE dq_meta SET value = IF(name = 'schema_compat', $OURS, 99)"
    seen() { [ "$(sql "SELECT COUNT(*) FROM dq_poller WHERE last_seen > '$now'")" = 1 ]; }
    for i in 1 2; do
        now=$(sql 'SELECT UTC_TIMESTAMP(3)')
        wait_until seen
    done
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         VALUES ('t', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
    wait_until is 'status = 1' 1
    dqd_stop
}

@test "tables that are being restored end a pass with 69; a resident dqd waits for them; missing ones are 78" {
    write_handlers <<<'handlers: {t: {run: "true"}}'
    id=$(dq -q add t)
    sql 'CREATE TABLE meta LIKE dq_meta; INSERT INTO meta SELECT * FROM dq_meta; DELETE FROM dq_meta'
    run dqd --once
    [ "$status" -eq 69 ]
    [[ $output == *': dq_meta lacks the schema'* && $output == *'run dq init' ]]
    run dq list
    [ "$status" -eq 69 ]
    dqd_start --resident
    wait_until logged 'the database is not available; retrying'
    sql 'INSERT INTO dq_meta SELECT * FROM meta'
    wait_until is 'status = 1' 1
    dqd_stop
    sql 'DROP TABLE meta; CREATE DATABASE bare'
    own_ini 's/^database = .*/database = bare/; s/^user = .*/user = root/'
    run dqd --once --config "$BATS_TEST_TMPDIR/own.ini"
    [ "$status" -eq 78 ]
    sql 'DROP DATABASE bare'
}
