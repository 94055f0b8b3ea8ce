#!/usr/bin/env bats
# The server's clock is set while dqd works.

load ../lib/sandbox

. "$DQ_TOP/test/lib/clock.bash"
setup() { sandbox_clear; }

@test "if the server's clock is set ahead, tasks are not taken from an owner that lives, but from a dead one" {
    write_handlers <<END
handlers:
  t: {run: 'echo >>$BATS_TEST_TMPDIR/begun; until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.1; done'}
  dead: {run: 'true'}
END
    sed "s|^\[dqd\]|&\nlease = 12s|; s|^handlers.*|handlers = $DQ_HANDLERS|" "$DQ_CONFIG" >"$BATS_TEST_TMPDIR/own.ini"
    chmod 600 "$BATS_TEST_TMPDIR/own.ini"
    for i in 1 2 3; do dq -q add t; done
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini dqd_start --resident
    wait_until is 'status = 3' 3
    set_clock +3600
    wait_until grep -q "msg=\"the database's clock was set ahead" "$DQD_LOG"
    sql "INSERT INTO dq_task (tag, message_body, status, version, attempt, claim_token, lease_until, expected_time,
         create_time) VALUES ('dead', '', 3, 1, 1, REPEAT('x', 16), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3),
         UTC_TIMESTAMP(3))"
    wait_until is "tag = 'dead' AND status = 1 AND attempt = 2" 1
    is "tag = 't' AND status = 3 AND attempt = 1 AND lease_until > UTC_TIMESTAMP(3)" 3
    touch "$BATS_TEST_TMPDIR/go"
    wait_until is "tag = 't' AND status = 1 AND attempt = 1" 3
    dqd_stop
    [ "$(sql "SELECT COUNT(*) FROM dq_attempt a JOIN dq_task t ON t.id = a.task_id WHERE t.tag = 't'")" = 0 ]
}

shows() { [ "$(sql "$1")" -gt 0 ]; }
@test "schedules and holds go on once the server's clock, which was ahead for a while, is right again" {
    write_handlers <<END
handlers:
  t: {run: 'true'}
  held: {run: 'echo "{\"result\":\"retry\",\"hold\":\"1s\"}" >&\$DQ_REPLY_FD'}
END
    set_clock +0
    dqd_start --resident
    for kind in 'every --every 1s' 'gap --gap 1s' 'cron --cron "* * * * *" --catch-up skip'; do
        eval "dq -q schedule set ${kind%% *} t ${kind#* }"
    done
    set_clock +31536000
    wait_until shows "SELECT COUNT(*) = 3 FROM dq_schedule WHERE next_slot > UTC_TIMESTAMP(3) - INTERVAL 1 HOUR
        AND (kind = 0 OR last_slot > UTC_TIMESTAMP(3) - INTERVAL 1 HOUR)"
    dq -q add held
    wait_until shows "SELECT COUNT(*) FROM dq_limit WHERE name = 'held' AND held_until IS NOT NULL"
    dqd_stop
    set_clock +0
    for name in every gap cron; do
        run dq check --schedules $name
        [ $status = 2 ]
        [[ $output = *"$name was decided while the server's clock was ahead"* ]]
    done
    run dq doctor
    [[ $output = *"was decided while the server's clock was ahead"* ]]
    ids=$(sql "SELECT COALESCE(MAX(id), 0) FROM dq_task")
    dqd_start --resident
    wait_until grep -q 'msg="what was decided .* clock was ahead holds nothing up any more".*names=' "$DQD_LOG"
    wait_until shows "SELECT COUNT(*) FROM dq_task WHERE task_key LIKE 'every@%' AND status = 1 AND id > $ids"
    wait_until shows "SELECT COUNT(*) FROM dq_task WHERE task_key LIKE 'gap@%' AND status = 1 AND id > $ids"
    shows "SELECT held_until < UTC_TIMESTAMP(3) + INTERVAL 1 MINUTE FROM dq_limit WHERE name = 'held'"
    for name in every cron; do dq check --schedules $name; done
    dqd_stop
    [ "$(sql "SELECT COUNT(*) FROM dq_schedule WHERE next_slot > UTC_TIMESTAMP(3) + INTERVAL 2 MINUTE")" = 0 ]
}

@test "a dqd that begins anew says nothing of a gap that rests" {
    write_handlers <<END
handlers:
  t: {run: 'true'}
END
    dq -q schedule set gap t --gap 1h
    for i in 1 2; do
        dqd_start --resident
        wait_until is 'status = 1' 1
        wait_until shows "SELECT COUNT(*) FROM dq_poller"
        dqd_stop
    done
    refute grep "clock was ahead" "$DQD_LOG"
}
