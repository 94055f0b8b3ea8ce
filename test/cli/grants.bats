# The accounts of sql/grants.sql.example: what each can do, logged in as itself, and what it cannot.

load ../lib/sandbox

setup_file()
{
    sandbox_start
    sql "$(sed "s/'%'/'localhost'/; s/ IDENTIFIED BY '[^']*'//" "$DQ_TOP/sql/grants.sql.example")"
}
setup() { sandbox_clear; }

as_sql()
{
    mariadb --no-defaults --batch --skip-column-names --user="dq_$1" --database=dq --execute="$2" \
        --socket="$(readlink -f "$DQ_SANDBOX/server")/mysql.sock"
}

# denied ACCOUNT SQL...: each is refused because a right is missing.
denied()
{
    local statement
    for statement in "${@:2}"; do
        rc=0
        err=$(as_sql "$1" "$statement" 2>&1) || rc=$?
        echo "$1: $statement: $err"
        [ "$rc" -ne 0 ]
        [[ $err =~ ERROR\ (1044|1142|1143|1227|1370)\  ]]
    done
}

refused()
{
    rc=0
    as "${@}" >"$BATS_TEST_TMPDIR/out" 2>&1 || rc=$?
    echo "$*: $rc $(cat "$BATS_TEST_TMPDIR/out")"
    [ "$rc" -eq 77 ]
}

@test 'dq_application: the four procedures and nothing else' {
    as_sql application "BEGIN; CALL dq_add('t', NULL, 'b', 0, @id);
        CALL dq_add_at('t', 'k', 'b', '2031-01-01 00:00:00', @id);
        CALL dq_add_options('t', 'k2', 'b', NULL, @id); CALL dq_cancel_key('t', 'k', @n); COMMIT"
    [ "$(sql 'SELECT COUNT(*), SUM(status) FROM dq_task')" = $'3\t4' ]
    denied application 'SELECT id FROM dq_task' 'SELECT value FROM dq_meta' 'DELETE FROM dq_task' \
        'DROP PROCEDURE dq_add' \
        "INSERT INTO dq_task (tag) VALUES ('t')" \
        "CALL dq_add_task('t', NULL, 'b', 0, NULL, NULL, 'keep', @id)" \
        'CREATE TABLE x (a int)' "CALL dq_read_utc('x', @a)" "CALL dq_limit_set('t', '{}')"
    refused application dq add t
}

@test 'dq_inserter: INSERT, once while a task has the key, and nothing else' {
    as_sql inserter "INSERT INTO dq_task (tag, task_key, live, message_body, body_size, expected_time, create_time)
        VALUES ('t', 'k', 1, 'b', 1, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
    [ "$(as_sql inserter "INSERT IGNORE INTO dq_task (tag, task_key, message_body, expected_time, create_time)
        VALUES ('t', 'k', 'b', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)); SELECT ROW_COUNT()")" -eq 0 ]
    denied inserter 'SELECT id FROM dq_task' 'SELECT tag FROM dq_task FOR UPDATE' \
        'UPDATE dq_task SET live = 1' 'DELETE FROM dq_task' \
        "INSERT INTO dq_task (tag, status) VALUES ('t', 1)" "CALL dq_add('t', NULL, '', 0, @id)"
}

@test 'dq_producer: dq add, but no other command' {
    id=$(as dq_producer dq -q add t body --key k)
    [ "$(sql 'SELECT id FROM dq_task')" = "$id" ]
    refused producer dq add t --priority high
    sql 'GRANT INSERT (status, priority) ON dq.dq_task TO dq_producer@localhost'
    as dq_producer dq -q add t --priority high
    sql 'REVOKE INSERT (status, priority) ON dq.dq_task FROM dq_producer@localhost'
    for command in "show $id" "cancel $id" "delete $id" pollers; do
        refused producer dq $command
    done
    denied producer "CALL dq_add('t', NULL, '', 0, @id)" 'UPDATE dq_task SET status = 1'
}

@test 'dq_producer: replace, again and priorities with the rights that are named for them' {
    comment=$(sed -n '/^-- dq add/,/^CREATE/s/^-- //p' "$DQ_TOP/sql/grants.sql.example" | tr '\n' ' ')
    rights=('UPDATE on dq_task' 'SELECT (priority, run, claim_token, host, execution_time)' 'SELECT, INSERT on dq_event'
        'SELECT on dq_poller' 'INSERT (status, priority)')
    for right in "${rights[@]}"; do
        [[ $comment == *"$right"* ]]
        [[ $right == *\ on\ * ]] || right+=' on dq_task'
        sql "GRANT ${right/ on / ON dq.} TO dq_producer@localhost"
    done
    id=$(as dq_producer dq -q add t body --key k --in 1h)
    for word in replace again; do as dq_producer dq -q add t "$word" --key k --key-conflict "$word" --in 1h; done
    sql 'UPDATE dq_task SET status = 3, version = 9, attempt = 1'
    as dq_producer dq -q add t running --key k --key-conflict again --priority high
    [ "$(sql 'SELECT message_body, again_body FROM dq_task')" = $'again\trunning' ]
    refused producer dq cancel "$id"
    for right in "${rights[@]}"; do
        [[ $right == *\ on\ * ]] || right+=' on dq_task'
        sql "REVOKE ${right/ on / ON dq.} FROM dq_producer@localhost"
    done
}

@test 'dq_worker: dqd runs tasks, adds none but those of schedules, and changes no table' {
    write_handlers <<<"handlers: {t: {run: 'echo hi; until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.05; done'}}"
    id=$(dq -q add t)
    sql "INSERT INTO dq_output (task_id, task_version, seq, until_time) VALUES ($id, 1, 0, '9999-12-31');
         INSERT INTO dq_task (id, tag, message_body, status, expected_time, finish_time, create_time)
         VALUES ($id + 1, 't', '', 1, '2020-01-01', '2020-01-01', '2020-01-01');
         INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome)
         VALUES ($id + 1, 1, 1, '2020-01-01', 'exit')"
    own_ini 's/^user = .*/user = dq_worker/'
    dqd_start --config "$BATS_TEST_TMPDIR/own.ini"
    shown() { [ "$(sql "SELECT COUNT(*) FROM dq_output WHERE chunk = 'hi\\n'")" -eq 1 ]; }
    wait_until shown
    touch "$BATS_TEST_TMPDIR/go"
    wait "$DQD_PID"
    DQD_PID=''
    [ "$(sql "SELECT (SELECT COUNT(*) FROM dq_task WHERE id <> $id) + (SELECT COUNT(*) FROM dq_attempt)")" -eq 0 ]
    [ "$(sql "SELECT status FROM dq_task WHERE id = $id")" -eq 1 ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_output WHERE is_last')" -eq 1 ]
    refused worker dq add t
    denied worker 'DROP TABLE dq_task' 'ALTER TABLE dq_task ADD x int' "CALL dq_add('t', NULL, '', 0, @id)"
}

# Of the table, which includes its columns: an earlier test may have granted either.
worker_adds_nothing()
{
    sql 'GRANT INSERT ON dq.dq_task TO dq_worker@localhost; REVOKE INSERT ON dq.dq_task FROM dq_worker@localhost'
}

@test 'a worker that may not add tasks, as of an older release, leaves slots alone until it may' {
    write_handlers <<<'handlers: {t: {run: "true"}}'
    dq -q schedule set a t --every 1h
    sql 'UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3)'
    worker_adds_nothing
    own_ini 's/^user = .*/user = dq_worker/'
    rc=0
    dqd --config "$BATS_TEST_TMPDIR/own.ini" --once || rc=$?
    [ "$rc" -eq 77 ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_slot')" -eq 0 ]
    sql 'GRANT INSERT ON dq.dq_task TO dq_worker@localhost'
    dqd --config "$BATS_TEST_TMPDIR/own.ini" --once
    [ "$(sql 'SELECT decision FROM dq_slot')" -eq 0 ]
}

@test 'a result that cannot be recorded for want of a right keeps no other from being recorded' {
    write_handlers <<<'handlers: {ok: {run: "true"}, bad: {run: exit 65}, sad: {run: exit 65, on_failed: ok}}'
    worker_adds_nothing
    dq -q add sad
    dq -q add bad
    yes '{"tag":"ok"}' | head -n 1200 | dq -q add --from -
    own_ini 's/^user = .*/user = dq_worker/'
    dqd_start --config "$BATS_TEST_TMPDIR/own.ini" --resident
    recorded() { [ "$(sql "SELECT SUM(tag = 'ok' AND status = 1), SUM(status = 2) FROM dq_task")" = "$1" ]; }
    wait_until recorded $'1200\t1'
    [ "$(sql "SELECT status FROM dq_task WHERE tag = 'sad'")" -eq 3 ]
    sql 'GRANT INSERT ON dq.dq_task TO dq_worker@localhost'
    wait_until recorded $'1201\t2'
    dqd_stop
}

@test 'a worker that may not read dq_output keeps its leases and notices a cancel' {
    sql 'REVOKE ALL ON dq.dq_output FROM dq_worker@localhost'
    echo 'handlers: {t: {run: "exec sleep 60"}}' | write_handlers
    own_ini 's/^user = .*/user = dq_worker/; s/^\[dqd\]/&\nlease = 10s\nheartbeat = 1s\npoll_interval = 50ms/'
    dqd_start --config "$BATS_TEST_TMPDIR/own.ini" --resident
    id=$(dq -q add t)
    kept=$(dq -q add t)
    started() { [ "$(sql "SELECT COUNT(*) FROM dq_task WHERE status = 3")" -eq 2 ]; }
    wait_until started
    dq -q cancel "$id"
    wait_until grep -q 'stopping its handler.*id='"$id" "$DQD_LOG"
    renewed()
    {
        [ "$(sql "SELECT status = 3 AND lease_until > execution_time + INTERVAL 11 SECOND FROM dq_task
                  WHERE id = $kept")" -eq 1 ]
    }
    wait_until renewed
    dq -q cancel "$kept"
    dqd_stop
    cat "$DQD_LOG"
    [ "$(grep -c 'cannot read dq_output; only dq logs -f is affected' "$DQD_LOG")" -eq 1 ]
    refute grep -qE 'duty=(check|renew)' "$DQD_LOG"
    sql "$(sed "s/'%'/'localhost'/; s/ IDENTIFIED BY '[^']*'//" "$DQ_TOP/sql/grants.sql.example" | grep dq_output)"
}

@test 'dq_operator: every command of dq but init' {
    id=$(as dq_operator dq -q add t --in 1h)
    for command in "show $id" list tags stats pollers "reschedule $id --in 2h" "cancel $id" "retry $id" "cancel $id" \
        'pause t' 'resume t' "delete $id" purge; do
        as dq_operator dq -q $command >/dev/null
    done
    dq -q add t body
    as dq_operator dq -q export >"$BATS_TEST_TMPDIR/tasks"
    as dq_operator dq -q import "$BATS_TEST_TMPDIR/tasks"
    [ "$(sql "SELECT COUNT(*) FROM dq_task WHERE message_body = 'body'")" -eq 2 ]
    sql 'DELETE FROM dq_task'
    [ "$(sql 'SELECT COUNT(*) FROM dq_task')" -eq 0 ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_event')" -eq 8 ]
    id=$(as dq_operator dq -q add t)
    sql 'UPDATE dq_task SET status = 3, version = 1, attempt = 1'
    as dq_operator dq -q logs "$id"
    [ "$(sql 'SELECT task_id FROM dq_output')" -eq "$id" ]
    as_sql operator "CALL dq_limit_set('t', '{\"running\": 2}')"
    as dq_operator dq -q limit t --running 3
    [ "$(sql 'SELECT running FROM dq_limit')" -eq 3 ]
    denied operator 'DROP TABLE dq_task' 'UPDATE dq_meta SET value = 0' 'DELETE FROM dq_event' \
        "UPDATE dq_event SET actor = 'x'" 'UPDATE dq_event SET tasks = 0' \
        'REPLACE INTO dq_event SELECT * FROM dq_event' "CALL dq_add('t', NULL, '', 0, @id)"
}

@test 'dq_monitor: reads what is listed, and no body' {
    id=$(dq -q add t body)
    dq -q schedule set nightly t --every 1h
    for command in list 'list --since 1h --error x' "why $id" 'why nightly' \
        schedule 'schedule next nightly' 'why --tag t' tags stats 'stats --by hour' \
        'stats -o prometheus' "stats --html $BATS_TEST_TMPDIR/page" errors 'errors -t t --exact' forecast events \
        pollers version; do
        echo "$command"
        as dq_monitor dq -q $command >/dev/null
    done
    [ -s "$BATS_TEST_TMPDIR/page" ]
    [[ $(as dq_monitor dq check) == 'CRITICAL: no dqd is alive'* ]]
    for command in 'add t' "show $id" "cancel $id" 'pause t'; do refused monitor dq $command; done
    denied monitor 'SELECT message_body FROM dq_task' 'UPDATE dq_task SET live = 1' "CALL dq_cancel_key('t', 'k', @n)"
}

@test 'dq_owner: dq init, with tables and procedures' {
    sql 'DROP PROCEDURE dq_add'
    run as dq_owner dq init
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *'1 created or replaced'* ]]
    denied owner 'DROP TABLE dq_task' 'CREATE USER x@localhost'
    sql 'GRANT EXECUTE ON PROCEDURE dq.dq_add TO dq_application@localhost'
}
