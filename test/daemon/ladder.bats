#!/usr/bin/env bats
# Retries: the ladder to the millisecond, under a clock that the test sets on the database's side of every session.

load ../lib/sandbox
setup() { sandbox_clear; }

# at TIME CMD...: runs a command whose sessions see this instant (UTC) as now.
at()
{
    local when=$1
    shift
    sed "s/^\[mysql\]/&\ninit_command = SET timestamp=$(TZ=UTC date -d "$when" +%s.%N)/" "$DQ_SANDBOX/dq.ini" >"$BATS_TEST_TMPDIR/at.ini"
    sed -i "s|^handlers *=.*|handlers = $DQ_HANDLERS|" "$BATS_TEST_TMPDIR/at.ini"
    chmod 600 "$BATS_TEST_TMPDIR/at.ini"
    DQ_CONFIG=$BATS_TEST_TMPDIR/at.ini "$@"
}
row() { sql "SELECT status, attempt, expected_time FROM dq_task"; }

@test "stored at 10:00:00, due at :05, :35 and 10:01:35, done at the third step: the published example" {
    write_handlers <<'END'
handlers:
  pay:
    run: 'test "$DQ_ATTEMPT" -eq 4'
END
    at '2026-11-20 10:00:00.000' dq add pay order-1
    at '2026-11-20 10:00:00.000' dqd
    [ "$(row)" = $'0\t1\t2026-11-20 10:00:05.000' ]
    at '2026-11-20 10:00:04.999' dqd
    [ "$(row)" = $'0\t1\t2026-11-20 10:00:05.000' ]
    at '2026-11-20 10:00:05.000' dqd
    [ "$(row)" = $'0\t2\t2026-11-20 10:00:35.000' ]
    at '2026-11-20 10:00:35.000' dqd
    [ "$(row)" = $'0\t3\t2026-11-20 10:01:35.000' ]
    at '2026-11-20 10:01:35.000' dqd
    [ "$(row)" = $'1\t4\t2026-11-20 10:01:35.000' ]
    [ "$(sql 'SELECT GROUP_CONCAT(attempt, ":", outcome, ":", exit_code ORDER BY version) FROM dq_attempt')" = 1:exit:1,2:exit:1,3:exit:1 ]
}

@test "the default ladder: 5s 30s 60s 10m 30m 1h 6h 24h 48h, then failed" {
    write_handlers <<'END'
handlers:
  pay:
    run: exit 3
END
    local now=1795168800 steps=(5 30 60 600 1800 3600 21600 86400 172800) step
    at "@$now" dq add pay
    for step in "${steps[@]}"; do
        at "@$now" dqd
        now=$((now + step))
        [ "$(sql 'SELECT status, expected_time FROM dq_task')" = $'0\t'"$(date -u -d @$now '+%F %T').000" ]
    done
    at "@$now" dqd
    [ "$(sql 'SELECT status, attempt, exit_code, finish_time IS NOT NULL FROM dq_task')" = $'2\t10\t3\t1' ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_attempt')" = 10 ]
}

@test "a ladder of one's own, and a task's own limit of attempts" {
    write_handlers <<'END'
handlers:
  pay:
    run: exit 1
    retry: [1s, 250ms]
END
    at '2026-11-20 10:00:00' dq add pay
    at '2026-11-20 10:00:00' dqd
    [ "$(row)" = $'0\t1\t2026-11-20 10:00:01.000' ]
    at '2026-11-20 10:00:01' dqd
    [ "$(row)" = $'0\t2\t2026-11-20 10:00:01.250' ]
    at '2026-11-20 10:00:02' dqd
    [ "$(sql 'SELECT status, attempt FROM dq_task')" = $'2\t3' ]
    sandbox_clear
    at '2026-11-20 10:00:00' dq add pay --max-attempts 1
    at '2026-11-20 10:00:00' dqd
    [ "$(sql 'SELECT status, attempt FROM dq_task')" = $'2\t1' ]
}

@test "permanent exit statuses fail at once, others by the handler's own list do not" {
    write_handlers <<'END'
handlers:
  "exit.*":
    run: exit ${DQ_TAG#exit.}
  own:
    run: exit 64
    permanent_exit_codes: [3]
END
    for code in 64 65 70 76 77 78 100 112 1 75; do dq add exit.$code; done
    dq add own
    dqd
    [ "$(sql 'SELECT GROUP_CONCAT(tag ORDER BY exit_code) FROM dq_task WHERE status = 2')" = exit.64,exit.65,exit.70,exit.76,exit.77,exit.78,exit.100,exit.112 ]
    [ "$(sql 'SELECT GROUP_CONCAT(tag ORDER BY exit_code, tag) FROM dq_task WHERE status = 0 AND attempt = 1')" = exit.1,own,exit.75 ]
}

@test "jitter only ever lengthens a step" {
    write_handlers <<'END'
handlers:
  pay:
    run: exit 1
    retry: [10s]
    jitter: 50%
END
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do at '2026-11-20 10:00:00' dq add pay; done
    at '2026-11-20 10:00:00' dqd
    [ "$(sql "SELECT COUNT(*), MIN(expected_time) >= '2026-11-20 10:00:10', MAX(expected_time) <= '2026-11-20 10:00:15', COUNT(DISTINCT expected_time) > 1 FROM dq_task")" = $'12\t1\t1\t1' ]
}
