#!/usr/bin/env bats
# on_failed: what has failed for good, or expired, raises a task of another tag.

load ../lib/sandbox
setup() { sandbox_clear; }

bodies() { sql "SELECT message_body FROM dq_task WHERE tag = 'dead' ORDER BY id"; }

@test 'a failure, an expiry and a lost lease raise a task each, which runs at once and knows what has failed' {
    local found
    write_handlers <<END
defaults:
  retry: [10ms]
  on_failed: dead
handlers:
  pay:
    run: echo card declined; exit 1
  slow:
    run: 'true'
    on_lease_expiry: fail
  mute:
    run: exit 1
    on_failed: never
  dead:
    run: cat >>$BATS_TEST_TMPDIR/seen; exit 65
END
    sql "INSERT INTO dq_task (tag, message_body, create_time, expected_time, expires_time)
         SELECT 'slow', 'late', n - INTERVAL 1 MINUTE, n - INTERVAL 1 MINUTE, n FROM (SELECT UTC_TIMESTAMP(3) AS n) t"
    sql "INSERT INTO dq_task (tag, message_body, create_time, expected_time, status, version, attempt, lease_until)
         SELECT 'slow', 'lost', n, n, 3, 1, 1, n - INTERVAL 1 HOUR FROM (SELECT UTC_TIMESTAMP(3) AS n) t"
    own_ini '/^poll_interval/d; s/^\[dqd\]/&\npoll_interval = 5s/'
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini dqd_start --resident
    dq -q add pay 'order 7' --key o-7
    dq -q add mute
    wait_until is "tag = 'dead' AND status = 2" 3
    wait_until is "tag = 'mute' AND status = 2" 1
    dqd_stop
    is "tag = 'dead'" 3
    is "tag = 'dead' AND task_key = (SELECT CONCAT('failed-', id, '-', version) FROM dq_task WHERE tag = 'pay')" 1
    found=$(bodies)
    [[ $found == *'"status":"failed","attempts":2,"size":7,"tag":"pay","key":"o-7","error":"exit status 1: card '* ]]
    [[ $found == *'"output":"card declined\\n","body":"order 7"}'* ]]
    [[ $found == *'"status":"cancelled","attempts":0,"size":4,"tag":"slow","error":"expired: due '*'"body":"late"}'* ]]
    [[ $found == *'"status":"failed","attempts":1,"size":4,"tag":"slow","error":"the lease ended: '*'"body":"lost"}'* ]]
    [ "$(grep -o '"body":"[a-z]*' "$BATS_TEST_TMPDIR/seen" | sort)" = $'"body":"late\n"body":"lost\n"body":"order' ]
}

@test 'cancelling a task raises none' {
    write_handlers <<'END'
handlers:
  t: {run: sleep 60, on_failed: dead}
  dead: {run: 'true'}
END
    dq -q add t --key a
    dq -q add t --key b --in 1h
    dqd_start --resident
    wait_until is 'status = 3' 1
    dq -q cancel -t t -y
    dqd_stop
    is 'status = 4' 2
    is "tag = 'dead'" 0
}

@test 'dqd --check-config and dq doctor name an on_failed that no handler serves' {
    write_handlers <<'END'
handlers:
  t: {run: 'true', on_failed: dead}
  u: {run: 'true', on_failed: t}
END
    run dqd --check-config
    [ "$status" = 0 ]
    [ "${lines[0]}" = "dqd: $DQ_HANDLERS:2: warning: on_failed: no handler here serves dead" ]
    [[ ${lines[1]} == *'2 handlers, 1 warning'* ]]
    dq doctor -o tsv >"$BATS_TEST_TMPDIR/found" || true
    grep -qP '^warn\thandlers\t.*handlers.yaml:2: on_failed: no handler here serves dead$' "$BATS_TEST_TMPDIR/found"
    write_handlers <<<'handlers: {t: {run: x, on_failed: t}}'
    run dqd --check-config
    [ "$status" = 78 ]
    [ "$output" = "dqd: $DQ_HANDLERS:1:12: on_failed: t is served by this handler; name another one" ]
}
