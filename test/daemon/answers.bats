#!/usr/bin/env bats
# What becomes of a task when its handler answers on DQ_REPLY_FD. runner_answer has every form of an answer.

load ../lib/sandbox
setup() { sandbox_clear; }

row() { sql "SELECT status, attempt, $1 FROM dq_task"; }
# How long after the end of an attempt its task is due again, in microseconds.
STEP='TIMESTAMPDIFF(MICROSECOND, update_time, expected_time)'
ini() { own_ini "s/^\[dqd\]/&\n$1/" && echo "$BATS_TEST_TMPDIR/own.ini"; }
# answers TEXT...: a handler of the tag t that writes these lines and exits with 1.
answers()
{
    printf 'handlers:\n  t:\n    jitter: 100%%\n    retry: [1s]\n    run: |\n'
    printf "      echo '%s' >&3\n" "$@"
    echo '      exit 1'
}

@test "a time that a handler asks for is kept to the millisecond, whatever the retry list and the jitter say" {
    answers '{"result":"retry","after":"2m"}' | write_handlers
    for _ in 1 2 3 4 5; do dq add t; done
    dqd
    [ "$(sql "SELECT DISTINCT $STEP, status, attempt, error_stack FROM dq_task")" = \
        $'120000000\t0\t1\tasked to wait 2m' ]
    id=$(sql 'SELECT MIN(id) FROM dq_task')
    dq why "$id" >"$BATS_TEST_TMPDIR/why"
    grep -q 'attempt 1: asked to wait 2m' "$BATS_TEST_TMPDIR/why" || { cat "$BATS_TEST_TMPDIR/why"; false; }
    dq show "$id" | grep -q 'asked to wait 2m'
    [ "$(sql 'SELECT DISTINCT outcome, exit_code FROM dq_attempt')" = $'verdict\t1' ]
    sql 'UPDATE dq_task SET expected_time = UTC_TIMESTAMP(3)'
    dqd # no attempt is left
    is 'status = 2 AND attempt = 2' 5
}

@test "a snooze gives the attempt back, at most until 7 days after the task was first due" {
    answers '{"result":"snooze","after":"1h","error":"closed"}' | write_handlers
    dq add t
    for _ in 1 2 3; do
        dqd
        [ "$(row "$STEP, error_stack")" = $'0\t0\t3600000000\tsnoozed for 1h: closed' ]
        sql 'UPDATE dq_task SET expected_time = UTC_TIMESTAMP(3)'
    done
    [ "$(sql 'SELECT COUNT(*) FROM dq_attempt')" = 0 ]
    dqd --config "$(ini 'history = all')"
    [ "$(sql 'SELECT outcome, attempt, error_stack FROM dq_attempt')" = $'snoozed\t1\tsnoozed for 1h: closed' ]
    id=$(sql 'SELECT id FROM dq_task')
    dq why "$id" >"$BATS_TEST_TMPDIR/why"
    grep -q 'it is snoozed, and runs again in .*snoozed for 1h: closed' "$BATS_TEST_TMPDIR/why"
    dq show "$id" | grep -q 'snoozed for 1h: closed'

    # the last hour that is within the 7 days, and one that is not
    sql 'UPDATE dq_task SET create_time = create_time - INTERVAL 10019 MINUTE, expected_time = UTC_TIMESTAMP(3)'
    dqd
    [ "$(row "$STEP")" = $'0\t0\t3600000000' ]
    sql 'UPDATE dq_task SET create_time = create_time - INTERVAL 2 MINUTE, expected_time = UTC_TIMESTAMP(3)'
    dqd
    [ "$(row "$STEP, error_stack")" = \
        $'0\t1\t3600000000\ta snooze beyond 7 days counts as an attempt: snoozed for 1h: closed' ]
    [ "$(sql "SELECT COUNT(*) FROM dq_attempt WHERE outcome = 'verdict'")" = 1 ]
    sql 'UPDATE dq_task SET expected_time = UTC_TIMESTAMP(3)'
    dqd
    [ "$(row 1)" = $'2\t2\t1' ]
}

@test "the 7 days of snoozes begin when a task was due, not when it was added" {
    answers '{"result":"snooze","after":"6d"}' | write_handlers
    dq add t --in 100d
    dq add t --at +100d
    sql 'UPDATE dq_task SET create_time = create_time - INTERVAL 100 DAY,
                            expected_time = expected_time - INTERVAL 100 DAY'
    dqd
    is 'attempt = 0 AND expected_time > UTC_TIMESTAMP(3)' 2
    sql 'UPDATE dq_task SET expected_time = UTC_TIMESTAMP(3)'
    dqd # today is their first day still
    is 'attempt = 0 AND expected_time > UTC_TIMESTAMP(3)' 2
    sql 'UPDATE dq_task SET create_time = create_time - INTERVAL 2 DAY, expected_time = UTC_TIMESTAMP(3)'
    dqd
    is 'attempt = 1' 2
    dq -q run-now --tag t -y # another time was given
    dqd
    is "attempt = 1 AND error_stack LIKE 'snoozed for 6d%'" 2
}

@test "an answer whose dqd dies before it is recorded is an attempt that was interrupted" {
    write_handlers <<END
handlers:
  t:
    run: |
      echo >>$BATS_TEST_TMPDIR/begun
      [ \$DQ_ATTEMPT = 1 ] || exit 0
      until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.05; done
      echo '{"result":"snooze","after":"1d"}' >&3
END
    id=$(dq -q add t)
    dqd_start --resident --log-level debug --config "$(ini 'lease = 2s\nheartbeat = 500ms')"
    wait_until test -s "$BATS_TEST_TMPDIR/begun"
    lock_task "$id"
    touch "$BATS_TEST_TMPDIR/go"
    wait_until grep -q 'task snoozed' "$DQD_LOG"
    kill -9 "$DQD_PID"
    wait "$DQD_PID" || true
    # MySQL may still wait for the lock, and would record it
    waiting="SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'UPDATE dq_task%'"
    given_up() { [ "$(sql "$waiting")" = 0 ]; }
    wait_until given_up
    lock_release
    is "status = 3 AND attempt = 1" 1
    dqd_start --resident --config "$(ini 'lease = 2s\nheartbeat = 500ms')"
    wait_until is 'status = 1 AND attempt = 2' 1
    dqd_stop
    [ "$(sql 'SELECT outcome, attempt FROM dq_attempt')" = $'lease-expired\t1' ]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/begun")" = 2 ]
}

@test "a handler finds the dq of its dqd by DQ_CONFIG, which is its path and no more" {
    write_handlers <<'END'
handlers:
  t:
    run: |
      env | grep ^DQ_CONFIG
      dq -q add from-handler
END
    own_ini ''
    dq add t
    PATH=$DQ_BIN:$PATH
    sed -i "s|run: .|env: {PATH: \"$PATH\"}\n    &|" "$DQ_HANDLERS"
    env -u DQ_CONFIG "$DQ_BIN/dqd" --config "$BATS_TEST_TMPDIR/own.ini"
    is "tag = 't' AND status = 1" 1
    is "tag = 'from-handler'" 1
    dq logs "$(sql "SELECT id FROM dq_task WHERE tag = 't'")" | grep -qx "DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini"
}

@test "a rehearsal shows the answer" {
    answers '{"result":"snooze","after":"5m","error":"closed"}' | write_handlers
    refute dq rehearse --tag t x 2>"$BATS_TEST_TMPDIR/err"
    grep -q 'dqd would give the attempt back: snoozed for 5m: closed' "$BATS_TEST_TMPDIR/err"
    answers '{"result":"retry","after":"5m"}' | write_handlers
    refute dq rehearse --tag t x 2>"$BATS_TEST_TMPDIR/err"
    grep -q 'dqd would retry in 5m (attempt 2 of 2): asked to wait 5m' "$BATS_TEST_TMPDIR/err"
    answers '{"result":"retry","after":"5"}' | write_handlers
    refute dq rehearse --tag t x 2>"$BATS_TEST_TMPDIR/err"
    grep -q 'unreadable answer (duration "5"' "$BATS_TEST_TMPDIR/err"
    answers '{"result":"done"}' | write_handlers
    dq rehearse --tag t x 2>&1 | grep -q 'would record: done'
}

@test 'a hold gives back what was claimed ahead under its limit' {
    mkfifo "$BATS_TEST_TMPDIR/go"
    cat >"$BATS_TEST_TMPDIR/worker" <<'END'
    # it stays, so that a slow machine, too, does several tasks in the time for which dqd claims ahead
    chdir $ARGV[0];
    open my $answer, '>&=', $ENV{DQ_REPLY_FD} or die;
    syswrite $answer, qq({"ready":true}\n);
    while (<STDIN>) {
        my ($id) = /"id": ?(\d+)/;
        if (/stop/) { open my $at, '>', 'at'; open my $go, '<', 'go'; <$go> }
        syswrite $answer, qq({"id":$id,"result":"done"}\n);
    }
END
    write_handlers <<END
handlers:
  pay:
    limit: stripe
    keep: 1
    max_running: 1
    run: [/usr/bin/perl, $BATS_TEST_TMPDIR/worker, $BATS_TEST_TMPDIR]
  refund: {limit: stripe, run: 'echo "{\"result\":\"retry\",\"hold\":\"1h\"}" >&3'}
END
    for i in {1..400}; do
        [ "$i" = 200 ] && echo '{"tag":"pay","body":"stop"}' || echo '{"tag":"pay"}'
    done | dq -q add --from - >/dev/null
    dqd_start --resident
    wait_until [ -e "$BATS_TEST_TMPDIR/at" ]
    ahead() { [ "$(sql "SELECT COUNT(*) $1 FROM dq_task WHERE status = 3 AND tag = 'pay'")" = 1 ]; }
    wait_until ahead '> 1' # which gives 1, for true
    dq -q add refund
    wait_until ahead
    echo >"$BATS_TEST_TMPDIR/go"
    wait_until is "tag = 'pay' AND status = 3" 0
    is "tag = 'pay' AND attempt > 0 AND status <> 1" 0
}

@test 'dqd does not end before the hold of a task that has failed for good is recorded' {
    write_handlers <<'END'
handlers:
  t: {run: 'echo "{\"result\":\"retry\",\"hold\":\"1h\",\"after\":\"1h\",\"error\":\"429\"}" >&3'}
END
    sql "INSERT INTO dq_limit (name) VALUES ('t')"
    mkfifo "$BATS_TEST_TMPDIR/lock"
    mariadb --no-defaults --unbuffered --user=root --database=dq \
        --socket="$(readlink -f "$DQ_SANDBOX/server")/mysql.sock" \
        <"$BATS_TEST_TMPDIR/lock" >"$BATS_TEST_TMPDIR/locked" 3>&- &
    local lock=$!
    exec 9>"$BATS_TEST_TMPDIR/lock"
    echo 'BEGIN; SELECT name FROM dq_limit FOR UPDATE;' >&9
    wait_until [ -s "$BATS_TEST_TMPDIR/locked" ]
    dq -q add t --expires 10m 9>&-
    dqd_start 9>&-
    wait_until is 'status = 2' 1
    exec 9>&-
    wait "$lock"
    wait "$DQD_PID"
    DQD_PID=''
    [ "$(sql 'SELECT hold_reason FROM dq_limit')" = 429 ]
}
