#!/usr/bin/env bats
# Tasks that are claimed and wait for a slot when a pause or a hold comes.

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
