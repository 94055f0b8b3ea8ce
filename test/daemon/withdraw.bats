#!/usr/bin/env bats
# Tasks that are claimed and wait for a slot or a process when a pause, a hold or closing time comes.

load ../lib/sandbox
setup() { sandbox_clear; }
teardown() { dqd_reap; }

# Quick tasks are claimed far ahead; then they take long: two run, and many wait.
many_wait()
{
    write_handlers <<END
handlers:
  t: {run: 'while [ -e $BATS_TEST_TMPDIR/slow ]; do sleep 0.1; done', limit: l, max_running: 2}
END
    dqd_start --resident
    yes '{"tag":"t"}' | head -n 500 | dq -q add --from -
    wait_until is 'status = 1' 500
    touch "$BATS_TEST_TMPDIR/slow"
    yes '{"tag":"t"}' | head -n 100 | dq -q add --from -
    wait_until waiting
}
waiting() { [ "$(count 'status = 3')" -gt 2 ]; } # the more, the quicker this machine starts them
# Those that run go on; the others are pending, with no attempt.
given_back() { is 'status = 3' 2 && is 'status = 0 AND attempt = 0' 98; }

@test 'tasks that wait for a slot when their tag, a pattern, or their limit is paused are given back' {
    many_wait
    dq pause t
    wait_until given_back
    dq resume t
    wait_until waiting
    dq pause 't*'
    wait_until given_back
    dq resume 't*'
    wait_until waiting
    dq pause l
    wait_until given_back
    rm "$BATS_TEST_TMPDIR/slow"
    dq resume l
    wait_until is 'status = 1 AND attempt = 1' 600
    dqd_stop
}

@test 'tasks that wait for a slot when another dqd records a hold of their limit are given back' {
    many_wait
    sql "INSERT INTO dq_limit (name, held_until) VALUES ('t', UTC_TIMESTAMP(3) + INTERVAL 1 HOUR)" # is no limit
    sql "INSERT INTO dq_limit (name, held_until) VALUES ('l', UTC_TIMESTAMP(3) + INTERVAL 1 HOUR)"
    wait_until given_back
    rm "$BATS_TEST_TMPDIR/slow"
    dq resume l
    wait_until is 'status = 1 AND attempt = 1' 600
    dqd_stop
}

@test 'a task whose kept process is ready only after the hours of its limit have closed is given back' {
    mkfifo "$BATS_TEST_TMPDIR/boot"
    cat >"$BATS_TEST_TMPDIR/kept" <<END
#!/bin/sh
touch $BATS_TEST_TMPDIR/boots
read -r line <$BATS_TEST_TMPDIR/boot
echo '{"ready":true}' >&\$DQ_REPLY_FD
while read -r line; do touch $BATS_TEST_TMPDIR/began; done
END
    chmod +x "$BATS_TEST_TMPDIR/kept"
    write_handlers <<END
handlers:
  k: {run: [$BATS_TEST_TMPDIR/kept], keep: 1, limit: l, start_timeout: 1h}
END
    dqd_start --resident
    dq add k
    wait_until test -e "$BATS_TEST_TMPDIR/boots"
    hours="$(date -u -d '+2 hours' +%H:00)-$(date -u -d '+3 hours' +%H:00) UTC"
    dq -q limit k --hours "$hours" # is no limit
    dq -q limit l --hours "$hours"
    wait_until is 'status = 0 AND attempt = 0' 1
    echo 1<>"$BATS_TEST_TMPDIR/boot" # does not block if the process has ended
    refute test -e "$BATS_TEST_TMPDIR/began"
    dqd_stop
}

@test 'tasks that wait for slots because quick ones have become slow are given back, and high priority goes first' {
    many_wait
    wait_until given_back
    id=$(dq add t --priority high)
    rm "$BATS_TEST_TMPDIR/slow"
    wait_until is 'status = 1 AND attempt = 1' 601
    # the two that ran began before it, and what took their slots at the same moment
    [ "$(count "id > $id - 101 AND execution_time < (SELECT execution_time FROM dq_task WHERE id = $id)")" -le 4 ]
    dqd_stop
}
