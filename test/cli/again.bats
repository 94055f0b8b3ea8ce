# --key-conflict again: what is added while a task with the key runs is run afterwards, with what was added last.

load ../lib/sandbox

setup() { sandbox_clear; }
teardown() { dqd_reap; }

# The columns of the only task; a time as its distance from now in minutes, rounded.
row()
{
    local minutes='ROUND(TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(3), \1) / 60)'
    sql "SELECT $(sed "s|in(\([a-z_]*\))|$minutes|g" <<<"$1") FROM dq_task"
}
# The value of an expression in Python, of the first line of JSON that is read, x.
json() { python3 -c 'import json, sys; x = json.loads(sys.stdin.readline()); print(eval(sys.argv[1]))' "$1"; }
runs() { sql "UPDATE dq_task SET status = 3, attempt = 1, version = 7, claim_token = REPEAT('c', 16)"; }

@test 'a pending task gets what is added again, and the earlier of the two times; with --debounce the later' {
    id=$(dq -q add t first --key k --in 10m --max-attempts 3)
    sql 'UPDATE dq_task SET attempt = 2'
    try dq add t 'the second' --key k --key-conflict again --in 20m --max-attempts 4 -o json
    [ "$rc" -eq 0 ]
    [[ $out == "{\"id\":$id,"*'"result":"replaced"}' ]]
    columns='message_body, body_size, max_attempts, attempt, version, status, in(expected_time), again_time'
    [ "$(row "$columns")" = $'the second\t10\t4\t0\t1\t0\t10\tNULL' ]
    dq -q add t third --key k --key-conflict again --in 5m
    [ "$(row "$columns")" = $'third\t5\tNULL\t0\t2\t0\t5\tNULL' ]
    dq -q add t fourth --key k --key-conflict again --debounce --in 30m
    [ "$(row "$columns")" = $'fourth\t6\tNULL\t0\t3\t0\t30\tNULL' ]
    dq -q add t fifth --key k --key-conflict again --debounce --in 1m
    [ "$(row "$columns")" = $'fifth\t5\tNULL\t0\t4\t0\t30\tNULL' ]
    [ "$(dq -q add t new --key other --key-conflict again -o json | grep -c '"result":"added"')" -eq 1 ]
}

@test 'a running task is marked: one more run, the last body, the earliest time; its dqd notices nothing' {
    id=$(dq -q add t first --key k --max-attempts 3)
    runs
    try dq add t second --key k --key-conflict again --in 10m -o json
    [ "$rc" -eq 0 ]
    [[ $out == "{\"id\":$id,"*'"result":"again"}' ]]
    [[ $err == "task $id is running; it runs again afterwards"$'\n''due '*', in '* ]]
    dq -q add t third --key k --key-conflict again --in 20m
    columns='message_body, status, attempt, version, max_attempts, again_body, in(again_time)'
    [ "$(row "$columns")" = $'first\t3\t1\t7\t3\tthird\t10' ]
    dq -q add t fourth --key k --key-conflict again --debounce --in 20m --max-attempts 5
    [ "$(row "$columns")" = $'first\t3\t1\t7\t5\tfourth\t20' ]
    printf '{"tag":"t","key":"k","body":"%s","in":"1m"}\n' fifth sixth >"$BATS_TEST_TMPDIR/tasks"
    try dq add --from "$BATS_TEST_TMPDIR/tasks" --key-conflict again
    [ "$out" = '2 added, 0 kept' ]
    [ "$(row "$columns")" = $'first\t3\t1\t7\t5\tsixth\t1' ]
    [ "$(count)" -eq 1 ]
}

@test 'list, show, why and events know it; cancel clears it and says so; retry and the like refuse a running task' {
    id=$(dq -q add t first --key k)
    fake_dqd t
    runs
    sql "UPDATE dq_task SET claim_token = REPEAT('f', 16), execution_time = UTC_TIMESTAMP(3), host = 'vm', pid = 1,
         lease_until = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR"
    dq -q add t $'\x01second' --key k --key-conflict again --in 10m
    [ "$(dq list -c id,again -o ndjson | json 'x["again"][:2]')" = 20 ]
    [ "$(dq show "$id" -o ndjson | json 'x["again_body"]')" = $'\x01second' ]
    [[ $(dq show "$id") == *$'body when it runs again (7 bytes):\n  \\x01second'* ]]
    [[ $(dq why "$id") == *'it was added again, and runs again then'* ]]
    [ "$(dq events "$id" -o tsv | sed 1d | cut -f 3 | paste -sd' ')" = 'added started again' ]
    for verb in "retry $id" "run-now $id" "reschedule $id --in 1h" 'add t x --key k --key-conflict replace'; do
        try dq $verb
        [ "$rc" -ne 0 ]
        [[ $err == *running* ]]
    done
    [ "$(sql 'SELECT again_body FROM dq_task')" = $'\x01second' ]
    [ "$(dq export 2>/dev/null | sed 1d | json 'x["status"] + " " + x["body"]')" = $'pending \x01second' ]
    [[ $(dq cancel "$id" --dry-run) == *'it is running; it was added again meanwhile, which would be cancelled, too'* ]]
    [[ $(dq cancel "$id") == *'the rest of its batch; it was added again meanwhile, which is cancelled, too' ]]
    [ "$(row 'status, again_time, again_body')" = $'4\tNULL\tNULL' ]
}

@test 'the dqd that has run it starts it again at once, with what was added last; a failure takes it along' {
    ran=$BATS_TEST_TMPDIR/ran go=$BATS_TEST_TMPDIR/go
    write_handlers <<END
defaults: {retry: [1ms], max_running: 1}
handlers:
  t:
    run: |
      body=\$(cat); echo "\$body \$DQ_ATTEMPT" >>$ran
      while [ ! -e $go.\$body ]; do sleep 0.01; done
      exit \$(cat $go.\$body)
END
    : >"$ran"
    began() { [ "$(paste -sd, "$ran")" = "$1" ]; }
    end() { echo "$2" >"$go.new" && mv "$go.new" "$go.$1"; }
    own_ini 's/^poll_interval.*//; s/^\[dqd\].*/&\npoll_interval = 20m\nlease = 2h/'
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini dqd_start --resident
    id=$(dq -q add t a --key k)
    wait_until began 'a 1'
    dq -q add t b --key k --key-conflict again
    dq -q add t c --key k --key-conflict again
    end a 0
    wait_until began 'a 1,c 1' # in 20 minutes otherwise
    dq -q add t d --key k --key-conflict again
    end c 7
    wait_until began 'a 1,c 1,d 2'
    is 'again_time IS NULL AND status = 3 AND body_size = 1' 1
    dq -q add t e --key k --key-conflict again
    end d 65 # for good
    wait_until began 'a 1,c 1,d 2,e 1'
    end e 0
    wait_until is 'status = 1 AND live IS NULL' 1
    [ "$(sql 'SELECT outcome, attempt FROM dq_attempt ORDER BY version' | paste -sd' ')" = $'exit\t1 exit\t2' ]
    [ "$(dq -q add t f --key k --key-conflict again)" != "$id" ]
    dqd_stop
}

@test 'a run has an id of its own, in all its attempts: alone, in a batch, in a process that stays' {
    cat >"$BATS_TEST_TMPDIR/work" <<'END'
#!/usr/bin/python3
import json, os, sys, time
def ends(run, attempt):
    with open("ran", "a") as ran:
        ran.write(f"{run} {attempt}\n")
    while not os.path.exists(f"{run}.{attempt}"):
        time.sleep(0.01)
    return open(f"{run}.{attempt}").read().strip()
if "DQ_RUN_ID" in os.environ:
    sys.exit({"done": 0, "retry": 75, "fail": 65}[ends(os.environ["DQ_RUN_ID"], os.environ["DQ_ATTEMPT"])])
reply = os.fdopen(int(os.environ["DQ_REPLY_FD"]), "w")
if "DQ_BATCH" not in os.environ:
    print('{"ready":true}', file=reply, flush=True)
for line in sys.stdin:
    task = json.loads(line)
    print(json.dumps({"id": task["id"], "result": ends(task["run_id"], task["attempt"])}), file=reply, flush=True)
END
    write_handlers <<END
defaults: {retry: [1ms, 1ms], cwd: $BATS_TEST_TMPDIR}
handlers:
  alone: {run: [/usr/bin/python3, ./work]}
  batch: {run: [/usr/bin/python3, ./work], batch: 5}
  stays: {run: [/usr/bin/python3, ./work], keep: 1}
END
    cd "$BATS_TEST_TMPDIR"
    began() { [ "$(tail -n 1 ran)" = "$1" ]; }
    ends() { wait_until began "$1" && echo "$2" >new && mv new "${1/ /.}"; }
    again() { wait_until began "$1" && dq -q add "$tag" "$2" --key k --key-conflict again; }
    : >ran
    dqd_start --resident
    for tag in alone batch stays; do
        id=$(dq -q add "$tag" a --key k)
        again "$id 1" b
        ends "$id 1" retry
        ends "$id-1 2" retry
        again "$id-1 3" c
        ends "$id-1 3" "done"
        ends "$id-2 1" fail
        wait_until is "id = $id AND status = 2" 1
        rm "$id-2.1"
        dq -q retry "$id" # whom the attempt has reached that failed, it has reached in this run
        wait_until eval '[ "$(grep -c "^$id-2 1$" ran)" -eq 2 ]'
        ends "$id-2 1" "done"
        wait_until is "id = $id AND status = 1" 1
        dq -q retry "$id"
        ends "$id-3 1" "done"
        wait_until is "id = $id AND status = 1 AND run = 3" 1
    done
    dqd_stop
}

@test 'another body of a task that was claimed, or of one whose dqd died, is another run; any other change is none' {
    by_dq() { dq -q add t x --key k --key-conflict "$1" ${2+--debounce} --in 1h >/dev/null; }
    by_procedure()
    {
        sql "CALL dq_add_options('t', 'k', 'x',
            '{\"key_conflict\": \"$1\", \"debounce\": ${2:-false}, \"delay_ms\": 3600000}', @id)"
    }
    nth_run() { [ "$(sql 'SELECT run FROM dq_task')" = "$1" ] || { sql 'SELECT * FROM dq_task'; false; }; }
    for by in by_dq by_procedure; do
        sandbox_clear
        dq -q add t x --key k --in 1h
        $by replace
        $by again
        $by again true
        nth_run 0
        sql "UPDATE dq_task SET claim_token = REPEAT('c', 16)"
        $by keep
        dq -q reschedule --tag t --in 2h -y
        nth_run 0
        $by replace
        nth_run 1
        sql "UPDATE dq_task SET claim_token = NULL, execution_time = UTC_TIMESTAMP(3)" # taken back
        $by again
        nth_run 2
        $by again true
        nth_run 3
        sql 'UPDATE dq_task SET run = 4294967295'
        $by again
        nth_run 4294967295
    done
    sandbox_clear
    write_handlers <<<'handlers: {t: {run: "cat; echo \" $DQ_RUN_ID\""}}'
    id=$(dq -q add t first --key k)
    runs
    sql "UPDATE dq_task SET lease_until = '2020-01-01'"
    dq -q add t second --key k --key-conflict again
    dqd
    [ "$(dq logs "$id")" = "second $id-1" ]
    [ "$(dq list -s all -c id,run -o tsv | tail -n 1)" = "$id"$'\t1' ]
    for status in 2 4 1; do
        sql "UPDATE dq_task SET status = $status"
        dq -q retry "$id"
        nth_run $((status == 1 ? 2 : 1))
    done
}

@test 'the procedures add again as dq add does' {
    id=$(dq -q add t first --key k --in 10m)
    add()
    {
        sql "CALL dq_add_options('t', 'k', '$1', '{\"key_conflict\": \"again\", \"delay_ms\": $2$3}', @id); SELECT @id"
    }
    columns='message_body, body_size, in(expected_time), again_body, in(again_time), version'
    [ "$(add second 1200000 '')" = "$id" ]
    [ "$(row "$columns")" = $'second\t6\t10\tNULL\tNULL\t1' ]
    add third 1800000 ', "debounce": true'
    [ "$(row "$columns")" = $'third\t5\t30\tNULL\tNULL\t2' ]
    runs
    [ "$(sql "CALL dq_add_again('t', 'k', 'fourth', 600000, @id); SELECT @id")" = "$id" ]
    [ "$(row "$columns")" = $'third\t5\t30\tfourth\t10\t7' ]
    add fifth 1200000 ', "max_attempts": 9'
    [ "$(row "$columns, max_attempts")" = $'third\t5\t30\tfifth\t10\t7\t9' ]
    add sixth 1200000 ', "debounce": true'
    [ "$(row "$columns")" = $'third\t5\t30\tsixth\t20\t7' ]
    [ "$(dq events "$id" -o tsv | sed 1d | cut -f 3 | paste -sd' ')" = 'added again again again again again' ]
    sql "CALL dq_cancel_key('t', 'k', @n)"
    [ "$(row 'status, again_time, again_body')" = $'4\tNULL\tNULL' ]
    for options in '{"debounce": true}' '{"debounce": 1, "key_conflict": "again"}'; do
        run sql "CALL dq_add_options('t', 'k', '', '$options', @id)"
        [[ $output == *'dq: options: debounce: true or false; true only with "key_conflict": "again"'* ]]
    done
    [ "$(dq add --sql t x --key k --key-conflict again --in 5s)" = "CALL dq_add_again('t', 'k', 'x', 5000, @id);" ]
    [ "$(dq add --sql t x --key k --key-conflict again --debounce)" = \
        "CALL dq_add_options('t', 'k', 'x', '{\"key_conflict\": \"again\", \"debounce\": true}', @id);" ]
}

@test 'a task that is added again expires after the time at which it is due then' {
    by_dq() { dq -q add t x --key "$1" --key-conflict again --debounce --in 1m --expires 10m >/dev/null; }
    by_procedure()
    {
        sql "CALL dq_add_options('t', '$1', 'x',
            '{\"key_conflict\": \"again\", \"debounce\": true, \"delay_ms\": 60000, \"expires_ms\": 600000}', @id)"
    }
    lasts() { [ "$(sql "SELECT TIMESTAMPDIFF(SECOND, $1, expires_time) FROM dq_task")" = 600 ]; }
    for how in by_dq by_procedure; do
        sandbox_clear
        dq -q add t first --key k --in 6h
        "$how" k
        lasts expected_time
        runs
        "$how" k
        sql 'UPDATE dq_task SET again_time = again_time + INTERVAL 6 HOUR'
        "$how" k
        lasts again_time
        is 'again_time > UTC_TIMESTAMP() + INTERVAL 5 HOUR' 1
    done
}

@test 'with debounce, a task that stays due later than it is added expires as much later' {
    by_dq() { dq -q add t x --key "$1" --key-conflict again "${@:4}" --at "$2" --expires-at "$3" >/dev/null; }
    by_procedure()
    {
        local later=${4:+true}
        sql "CALL dq_add_options('t', '$1', 'x', '{\"key_conflict\": \"again\", \"debounce\": ${later:-false},
            \"utc\": \"$2\", \"expires_utc\": \"$3\"}', @id)"
    }
    due() { sql "SELECT TIME($1), TIME(expires_time) FROM dq_task"; }
    for by in by_dq by_procedure; do
        sql 'DELETE FROM dq_task'
        dq -q add t x --key k --at 2031-01-01T03:00:00Z
        $by k 2031-01-01T01:00:00Z 2031-01-01T02:00:00Z --debounce
        [ "$(due expected_time)" = $'03:00:00.000\t04:00:00.000' ]
        $by k 2031-01-01T05:00:00Z 2031-01-01T06:00:00Z --debounce
        [ "$(due expected_time)" = $'05:00:00.000\t06:00:00.000' ]
        $by k 2031-01-01T07:00:00Z 2031-01-01T08:00:00Z
        [ "$(due expected_time)" = $'05:00:00.000\t08:00:00.000' ]
        runs
        $by k 2031-01-01T03:00:00Z 2031-01-01T04:00:00Z --debounce
        $by k 2031-01-01T01:00:00Z 2031-01-01T02:00:00Z --debounce
        [ "$(due again_time)" = $'03:00:00.000\t04:00:00.000' ]
    done
}

@test 'a live dqd that is too old to know it is named, and nothing is changed' {
    id=$(dq -q add t first --key k)
    fake_dqd t
    sql "UPDATE dq_poller SET knows = 0;
         INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after, lease,
         version, knows, handlers) SELECT REPEAT('g', 16), 'new', 2, mode, slots, running, start_time, last_seen,
         stale_after, lease, 'new', 255, 0 FROM dq_poller"
    dq -q add t second --key k --key-conflict again # it does not run: nothing to know
    runs
    try dq add t third --key k --key-conflict again
    [ "$rc" -eq 78 ]
    [[ $err == "dq: add: tag t, key k: task $id is running: dqd vm/1 of version 0.1.0 is too old for that: "* ]]
    run sql "CALL dq_add_again('t', 'k', 'fourth', 0, @id)"
    [[ $output == *"(45000) "*"task $id is running, and a live dqd is too old"* ]]
    [ "$(row 'message_body, again_time, again_body')" = $'second\tNULL\tNULL' ]
    sql "UPDATE dq_poller SET last_seen = '2020-01-01 00:00:00' WHERE knows = 0"
    dq -q add t fifth --key k --key-conflict again
    sql "CALL dq_add_again('t', 'k', 'sixth', 0, @id)"
    [ "$(row 'again_body')" = sixth ]
}

@test 'a transaction that adds again, with a priority, or sets a limit keeps no heartbeat waiting' {
    id=$(dq -q add t first --key runs)
    fake_dqd t
    runs
    for level in 'REPEATABLE READ' 'READ COMMITTED'; do
        lock_task "$id"
        echo "ROLLBACK; SET SESSION TRANSACTION ISOLATION LEVEL $level; START TRANSACTION;
            CALL dq_add_again('t', 'new', 'x', 0, @id); CALL dq_add_again('t', 'runs', 'x', 0, @id);
            CALL dq_add_options('t', NULL, '', '{\"priority\": \"high\"}', @id);
            CALL dq_limit_set('t', '{\"running\": 3}'); SELECT CONCAT('called ', @id > 0);" >&9
        wait_until grep -qx 'called 1' "$BATS_TEST_TMPDIR/locked"
        # what a transaction has locked stays so until lock_release
        sql 'SET SESSION innodb_lock_wait_timeout = 1; UPDATE dq_poller SET running = running + 1'
        lock_release
    done
}

@test 'a transaction that waits for the row of a running task adds to it again' {
    strict=$(sql "SHOW VARIABLES LIKE 'innodb_snapshot_isolation'" | sed 's/\t.*/ = 1;/; s/^/SET SESSION /')
    id=$(dq -q add t first --key k)
    runs
    lock_task "$id"
    echo "UPDATE dq_task SET version = version + 1;" >&9
    sql "$strict SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION;
         CALL dq_add_again('t', 'k', 'second', 0, @id); COMMIT" 3>&- 9>&- &
    waits() { [ "$(sql "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")" -eq 1 ]; }
    wait_until waits
    echo 'COMMIT;' >&9
    lock_release
    [ "$(row 'version, again_body')" = $'8\tsecond' ]
}

@test '--debounce without again is refused' {
    for conflict in '' '--key-conflict replace'; do
        try dq add t x --key k --debounce $conflict
        [ "$rc" -eq 64 ]
        [[ $err == *'--debounce needs --key-conflict again'* ]]
    done
    [ "$(count)" -eq 0 ]
}
