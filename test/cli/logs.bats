# dq logs: the output of attempts, those that have ended and those that run.

load ../lib/sandbox

setup() { sandbox_clear; }

# A handler that writes a line for each file that it finds: say NAME makes it write NAME.
write_steps()
{
    export STEPS=$BATS_TEST_TMPDIR/steps
    mkdir -p "$STEPS"
    write_handlers <<END
handlers:
  steps:
    run: |
      for step in one two three; do
        until [ -e $STEPS/\$step ]; do sleep 0.02; done
        echo \$step
      done
      exit 3
    retry: []
  many:
    run: "cat >/dev/null; echo both >&2; until [ -e $STEPS/one ]; do sleep 0.02; done"
    batch: 100
END
}

# refused STATUS TEXT ARG...
refused()
{
    local rc=0
    dq logs "${@:3}" >"$BATS_TEST_TMPDIR/out" 2>&1 || rc=$?
    cat "$BATS_TEST_TMPDIR/out"
    [ "$rc" -eq "$1" ]
    grep -qF "$2" "$BATS_TEST_TMPDIR/out"
}

say() { touch "$STEPS/$1"; }
status_is() { [ "$(sql "SELECT status FROM dq_task WHERE id = $1")" = "$2" ]; }
nothing_kept() { [ "$(sql 'SELECT COUNT(*) FROM dq_output')" -eq 0 ]; }
marked() { [ "$(sql 'SELECT COUNT(*) FROM dq_output WHERE seq = 0')" -eq "$1" ]; }

# follow ID: in the background, its pid in $follower
follow()
{
    fresh "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err"
    "$DQ_BIN/dq" logs -f "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    follower=$!
}

followed() { grep -qx "$1" "$BATS_TEST_TMPDIR/out"; }

teardown()
{
    local pid
    for pid in ${follower:-} ${follower2:-}; do kill "$pid" 2>/dev/null || true; done
    dqd_reap
}

@test 'logs prints the output of the last attempt, byte by byte' {
    id=$(dq -q add t)
    sql "UPDATE dq_task SET status = 2, attempt = 2, output = X'61000affc3a90a1b5b' WHERE id = $id"
    dq logs "$id" | od -An -tx1 | grep -qx ' 61 00 0a ff c3 a9 0a 1b 5b'
    sql "UPDATE dq_task SET output = NULL WHERE id = $id"
    [ "$(dq logs "$id" 2>"$BATS_TEST_TMPDIR/err")" = '' ]
    [ "$(cat "$BATS_TEST_TMPDIR/err")" = "attempt 2 of task $id has no output" ]
}

@test 'on a terminal the output is inert' {
    id=$(dq -q add t)
    sql "UPDATE dq_task SET status = 1, attempt = 1, output = X'6f6e650a1b5b33316d74776fc3a90a' WHERE id = $id"
    "$DQ_TOP/test/lib/terminal" 80 "$DQ_BIN/dq" logs "$id" </dev/null >"$BATS_TEST_TMPDIR/out"
    cat -v "$BATS_TEST_TMPDIR/out"
    [ "$(tr -d '\r' <"$BATS_TEST_TMPDIR/out")" = $'one\n\\x1B[31mtwoé' ]
}

@test 'logs --attempt prints that of an earlier attempt' {
    id=$(dq -q add t)
    sql "UPDATE dq_task SET status = 1, attempt = 3, output = 'third' WHERE id = $id;
         INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome, output)
         VALUES ($id, 1, 1, UTC_TIMESTAMP(3), 'exit', 'first'), ($id, 3, 2, UTC_TIMESTAMP(3), 'exit', NULL)"
    [ "$(dq logs "$id" --attempt 1)" = first ]
    [ "$(dq logs "$id" --attempt 3)" = third ]
    [ "$(dq logs "$id" --attempt 2 2>&1)" = "attempt 2 of task $id has no output" ]
    refused 1 "attempt 4 of task $id is not recorded" "$id" --attempt 4
}

@test 'logs prints what an attempt wrote that was cancelled or taken back' {
    id=$(dq -q add t)
    sql "UPDATE dq_task SET status = 4, attempt = 1, version = 2, finish_time = UTC_TIMESTAMP(3) WHERE id = $id;
         INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome, output)
         VALUES ($id, 1, 1, UTC_TIMESTAMP(3), 'cancelled', 'half of it')"
    [ "$(dq logs "$id")" = 'half of it' ]
    sql "UPDATE dq_task SET status = 0, finish_time = NULL WHERE id = $id;
         UPDATE dq_attempt SET outcome = 'lease-expired'"
    [ "$(dq logs "$id")" = 'half of it' ]
    # tried again since, from attempt 1, with nothing to say: the history does not have that attempt
    sql "UPDATE dq_task SET status = 1, version = 5, finish_time = UTC_TIMESTAMP(3) WHERE id = $id"
    [ "$(dq logs "$id" 2>&1)" = "attempt 1 of task $id has no output" ]
}

@test 'without an attempt, or without a task, logs fails' {
    id=$(dq -q add t)
    refused 1 'has not been started yet' "$id"
    refused 1 'task 999999 does not exist' 999999
    refused 64 'missing argument'
    refused 64 'json is not available' "$id" -o json
}

@test 'logs -f waits for the start, shows what is written while it runs, and ends with the outcome' {
    write_steps
    id=$(dq -q add steps)
    follow "$id"
    wait_until grep -q 'waiting until it starts' "$BATS_TEST_TMPDIR/err"
    dqd_start --resident
    say one
    wait_until followed one
    say two
    wait_until followed two
    status_is "$id" 3
    refute followed three
    [ "$(dq logs "$id")" = $'one\ntwo' ]
    say three
    wait "$follower"
    [ "$(cat "$BATS_TEST_TMPDIR/out")" = $'one\ntwo\nthree' ]
    [ "$(tail -n 1 "$BATS_TEST_TMPDIR/err")" = "task $id is failed: exit status 3: three" ]
    wait_until nothing_kept
    follow "$id"
    wait "$follower"
    [ "$(cat "$BATS_TEST_TMPDIR/out")" = $'one\ntwo\nthree' ]
}

@test 'logs -f ends if the task has run, or was cancelled, between two looks' {
    write_handlers <<<'handlers: {quick: {run: "echo done"}}'
    for act in 'run-now -y' 'cancel -y'; do
        id=$(dq -q add quick --in 1h)
        follow "$id"
        wait_until grep -q 'waiting until it starts' "$BATS_TEST_TMPDIR/err"
        kill -STOP "$follower"
        # shellcheck disable=SC2086 # words
        dq -q $act "$id"
        dqd
        kill -CONT "$follower"
        ended() { ! kill -0 "$follower" 2>/dev/null; }
        wait_until ended
        wait "$follower"
        if [ "$act" = 'run-now -y' ]; then followed 'done'; else [ ! -s "$BATS_TEST_TMPDIR/out" ]; fi
        grep -qE "task $id is (done|cancelled)" "$BATS_TEST_TMPDIR/err"
    done
}

@test 'nothing is written while nobody follows, and a follower that was killed leaves nothing' {
    write_steps
    # beside a task that nobody follows
    sql 'CREATE TABLE written (id bigint, n int AUTO_INCREMENT PRIMARY KEY);
         CREATE TRIGGER output_written AFTER INSERT ON dq_output FOR EACH ROW
             INSERT INTO written (id) VALUES (NEW.task_id)'
    other=$(dq -q add steps) id=$(dq -q add steps)
    dqd_start --resident
    say one
    wait_until status_is "$other" 3
    wait_until status_is "$id" 3
    follow "$id"
    wait_until followed one
    kill -9 "$follower"
    wait_until nothing_kept
    say two
    wait_until eval '[ "$(dq logs "$id")" = "$(printf "one\ntwo")" ]'
    wait_until nothing_kept
    follow "$id"
    wait_until followed two
    [ "$(cat "$BATS_TEST_TMPDIR/out")" = $'one\ntwo' ]
    say three
    wait "$follower"
    wait_until status_is "$other" 2
    [ "$(sql 'SELECT DISTINCT id FROM written')" = "$id" ]
    sql 'DROP TRIGGER output_written; DROP TABLE written'
}

@test 'tasks of a batch share the output, each to its own follower' {
    write_steps
    a=$(dq -q add many) b=$(dq -q add many)
    dqd_start --resident
    wait_until status_is "$b" 3
    follow "$a"
    wait_until followed both
    "$DQ_BIN/dq" logs -f "$b" >"$BATS_TEST_TMPDIR/other" 3>&- &
    follower2=$!
    wait_until grep -qx both "$BATS_TEST_TMPDIR/other"
    say one
    wait "$follower" "$follower2"
    [ "$(cat "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/other")" = $'both\nboth' ]
}

@test 'the 65th follower of a dqd is told that it has to wait, and gets the output when one of the others goes' {
    write_steps
    for ((n = 0; n < 65; n++)); do echo '{"tag":"many"}'; done | dq -q add --from - >"$BATS_TEST_TMPDIR/added"
    id=$(dq list -s all --sort -id -n 1 -o id)
    dqd_start --resident
    wait_until status_is "$id" 3
    sql "INSERT INTO dq_output (task_id, task_version, seq, until_time)
         SELECT id, version, 0, UTC_TIMESTAMP(3) + INTERVAL 1 HOUR FROM dq_task WHERE id < $id"
    wait_until eval '[ "$(sql "SELECT COUNT(DISTINCT task_id) FROM dq_output WHERE seq = 1")" -eq 64 ]'
    follow "$id"
    full='passes on the output of 64 attempts at a time'
    wait_until grep -q "$full; waiting until one of the others is not followed any more" "$BATS_TEST_TMPDIR/err"
    try dq logs "$id"
    [[ $err == *"$full" ]]
    [ -z "$out" ]
    sql "UPDATE dq_output SET until_time = UTC_TIMESTAMP(3) WHERE task_id = $((id - 1)) AND seq = 0"
    wait_until followed both
    say one
    wait "$follower"
}

@test 'a follower outlives the database, and a dqd that dies' {
    write_steps
    id=$(dq -q add steps)
    own_ini 's/^lease *=.*//; s/^\[dqd\]/[dqd]\nlease = 2s\nheartbeat = 500ms/'
    dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"
    say one
    wait_until status_is "$id" 3
    follow "$id"
    wait_until followed one
    sql 'SELECT id FROM information_schema.processlist WHERE user = "dq"' | while read -r connection; do
        sql "KILL $connection" || true
    done
    say two
    wait_until followed two
    kill -9 "$DQD_PID"
    wait "$DQD_PID" || true
    dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"
    wait "$follower"
    [ "$(cat "$BATS_TEST_TMPDIR/out")" = $'one\ntwo' ]
    grep -q 'the end of the output is missing' "$BATS_TEST_TMPDIR/err"
}

@test 'a follower of a task that waits outlives the database, too' {
    id=$(dq -q add steps)
    follow "$id"
    wait_until grep -q 'waiting until it starts' "$BATS_TEST_TMPDIR/err"
    "$DQ_TOP/bin/dq-sandbox" stop
    wait_until grep -q 'still following' "$BATS_TEST_TMPDIR/err"
    "$DQ_TOP/bin/dq-sandbox" start 3>&-
    dq -q cancel "$id"
    wait "$follower"
}

@test 'dqd deletes what a dqd that died has left, but nothing that is followed' {
    sql "INSERT INTO dq_output (task_id, task_version, seq, until_time, chunk) VALUES
         (1, 1, 0, UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE, NULL), (1, 1, 1, NULL, 'x'), (2, 1, 1, NULL, 'y'),
         (3, 1, 0, UTC_TIMESTAMP(3) + INTERVAL 1 HOUR, NULL), (3, 1, 1, NULL, 'z')"
    dqd_start --resident
    wait_until marked 1
    wait_until eval '[ "$(sql "SELECT GROUP_CONCAT(task_id, seq ORDER BY task_id, seq) FROM dq_output")" = 30,31 ]'
}
