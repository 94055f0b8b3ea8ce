# dq wait: until tasks are finished, with the handler's own status.

load ../lib/sandbox

setup() { sandbox_clear; }

finish() # finish ID STATUS [EXIT-CODE [SIGNAL]]
{
    sql "UPDATE dq_task SET status = $2, exit_code = ${3:-NULL}, \`signal\` = ${4:-NULL}, live = NULL,
         finish_time = UTC_TIMESTAMP(3) WHERE id = $1"
}

connections() { [ "$(sql "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'dq'")" -eq "$1" ]; }

# waits STATUS ARG...
waits()
{
    local want=$1 rc=0
    shift
    dq wait "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    echo "exit $rc: $(cat "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err")"
    [ "$rc" -eq "$want" ]
}

@test 'wait for one task exits with the status of its handler' {
    id=$(dq -q add t)
    finish "$id" 1 0
    waits 0 "$id"
    [ ! -s "$BATS_TEST_TMPDIR/out" ]
    finish "$id" 2 7; waits 7 "$id"
    finish "$id" 2 NULL 9; waits 137 "$id"
    finish "$id" 2; waits 1 "$id"
    finish "$id" 4; waits 1 "$id"
    waits 1 999999
    grep -q 'dq: wait: task 999999 does not exist' "$BATS_TEST_TMPDIR/err"
}

@test 'wait for several tasks exits with 0 only if all are done, and reports each once' {
    a=$(dq -q add t) b=$(dq -q add t) c=$(dq -q add t)
    for id in "$a" "$b" "$c"; do finish "$id" 1 0; done
    waits 0 "$c" "$a" "$b" "$a"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/err")" -eq 3 ]
    finish "$b" 2 7
    waits 1 "$a" "$b" "$c"
    waits 1 "$a" 999999
    waits 1 "$a" "$b" -o json
    [[ $(cat "$BATS_TEST_TMPDIR/out") =~ ^\[\{\"id\":$a,.*\"status\":\"done\" ]]
    waits 1 "$a" "$b" -o id
    [ "$(cat "$BATS_TEST_TMPDIR/out")" = "$(printf '%s\n%s' "$a" "$b")" ]
}

@test 'wait exits soon after the task has finished' {
    id=$(dq -q add t)
    wait_until connections 0 # that of dq add, too
    dq wait "$id" --timeout 1h 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    pid=$!
    wait_until connections 1
    kill -0 "$pid"
    finish "$id" 2 5
    rc=0
    wait "$pid" || rc=$?
    [ "$rc" -eq 5 ]
}

@test 'wait exits with 75 when its timeout has expired' {
    a=$(dq -q add t) b=$(dq -q add t)
    finish "$b" 1 0
    waits 75 "$a" "$b" --timeout 100ms
    grep -q 'timeout: 1 of 2 tasks are not finished' "$BATS_TEST_TMPDIR/err"
    waits 75 "$a" --timeout 0
}

@test 'wait continues while the database is unavailable' {
    seen=$(dq -q add t) id=$(dq -q add t)
    finish "$seen" 1 0
    dq wait "$seen" "$id" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    pid=$!
    wait_until grep -q "task $seen is done" "$BATS_TEST_TMPDIR/err"
    "$DQ_TOP/bin/dq-sandbox" stop
    wait_until grep -q 'still waiting' "$BATS_TEST_TMPDIR/err"
    kill -0 "$pid"
    "$DQ_TOP/bin/dq-sandbox" start 3>&-
    finish "$id" 1 0
    wait "$pid"
}
