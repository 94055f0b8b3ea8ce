#!/usr/bin/env bats
# Retries: the ladder to the millisecond. A task's times are moved instead of the clock, which no session can set.

load ../lib/sandbox
setup() { sandbox_clear; }

row() { sql "SELECT status, attempt, $1 FROM dq_task"; }
# The distance between a task's next time and the instant at which its attempt was settled, in microseconds.
STEP='TIMESTAMPDIFF(MICROSECOND, update_time, expected_time)'
# pass_time INTERVAL: so much later by all the task's times.
pass_time()
{
    sql "UPDATE dq_task SET expected_time = expected_time - INTERVAL $1, create_time = create_time - INTERVAL $1,
         update_time = update_time - INTERVAL $1"
}

@test "a task whose attempts fail is due again after 5 s, 30 s and 60 s" {
    write_handlers <<'END'
handlers:
  pay:
    run: 'test "$DQ_ATTEMPT" -eq 4'
END
    dq add pay order-1
    dqd
    [ "$(row "$STEP")" = $'0\t1\t5000000' ]
    pass_time '5 SECOND'
    dqd
    [ "$(row "$STEP")" = $'0\t2\t30000000' ]
    pass_time '30 SECOND'
    dqd
    [ "$(row "$STEP")" = $'0\t3\t60000000' ]
    dqd # not yet
    [ "$(row "$STEP")" = $'0\t3\t60000000' ]
    pass_time '60 SECOND'
    dqd
    [ "$(row 'expected_time <= UTC_TIMESTAMP(3)')" = $'1\t4\t1' ]
    [ "$(sql 'SELECT GROUP_CONCAT(attempt, ":", outcome, ":", exit_code ORDER BY version) FROM dq_attempt')" = \
        1:exit:1,2:exit:1,3:exit:1 ]
}

@test "a caller that has failed once at 10:00:00 adds the task: attempts at 10:00:05, :35 and 10:01:35" {
    write_handlers <<'END'
handlers:
  pay:
    run: 'test "$DQ_ATTEMPT" -eq 4'
END
    dqd # records the retry list
    dq add pay order-1 --attempted 1
    [ "$(row 'TIMESTAMPDIFF(MICROSECOND, create_time, expected_time)')" = $'0\t1\t5000000' ]
    dqd # not yet
    pass_time '5 SECOND'
    dqd
    [ "$(row "$STEP")" = $'0\t2\t30000000' ]
    pass_time '30 SECOND'
    dqd
    [ "$(row "$STEP")" = $'0\t3\t60000000' ]
    pass_time '60 SECOND'
    dqd
    [ "$(row 1)" = $'1\t4\t1' ]
    [ "$(sql 'SELECT GROUP_CONCAT(attempt ORDER BY version) FROM dq_attempt')" = 2,3 ]
    [ "$(sql 'SELECT retry FROM dq_handler')" = 5000,30000,60000,600000,1800000,3600000,21600000,86400000,172800000 ]
}

@test "the default retry list is 5s 30s 60s 10m 30m 1h 6h 24h 48h; then the task fails" {
    write_handlers <<'END'
handlers:
  pay:
    run: exit 3
END
    local steps=(5 30 60 600 1800 3600 21600 86400 172800) step attempt=0
    dq add pay
    for step in "${steps[@]}"; do
        dqd
        [ "$(row "$STEP")" = $'0\t'"$((attempt += 1))"$'\t'"${step}000000" ]
        pass_time "$step SECOND"
    done
    dqd
    [ "$(sql 'SELECT status, attempt, exit_code, finish_time IS NOT NULL FROM dq_task')" = $'2\t10\t3\t1' ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_attempt')" = 10 ]
}

@test "a handler's retry list and a task's own maximum of attempts apply" {
    write_handlers <<'END'
handlers:
  pay:
    run: exit 1
    retry: [1d, 90250ms]
END
    dq add pay
    dqd
    [ "$(row "$STEP")" = $'0\t1\t86400000000' ]
    pass_time '1 DAY'
    dqd
    [ "$(row "$STEP")" = $'0\t2\t90250000' ]
    pass_time '91 SECOND'
    dqd
    [ "$(row 1)" = $'2\t3\t1' ]
    sandbox_clear
    dq add pay --max-attempts 1
    dqd
    [ "$(sql 'SELECT status, attempt FROM dq_task')" = $'2\t1' ]
}

@test "permanent exit statuses fail at once; a handler's own list replaces the default" {
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
    [ "$(sql 'SELECT GROUP_CONCAT(tag ORDER BY exit_code) FROM dq_task WHERE status = 2')" = \
        exit.64,exit.65,exit.70,exit.76,exit.77,exit.78,exit.100,exit.112 ]
    [ "$(sql 'SELECT GROUP_CONCAT(tag ORDER BY exit_code, tag) FROM dq_task WHERE status = 0 AND attempt = 1')" = \
        exit.1,own,exit.75 ]
}

@test "tasks that fail together are retried one after the other, a lone one exactly on time" {
    write_handlers <<'END'
defaults:
  retry: [1h]
handlers:
  many:
    run: cat >/dev/null; exit 1
    batch: 50
  exact:
    run: cat >/dev/null; exit 1
    batch: 50
    jitter: 0%
  lone:
    run: exit 1
END
    for tag in many exact; do seq 50 | sed "s/.*/$tag/" | dq -q add --from -; done
    dq -q add lone
    dqd
    [ "$(sql "SELECT $STEP FROM dq_task WHERE tag = 'lone'")" = 3600000000 ]
    # those of the batch may come in two or three parts
    [ "$(sql "SELECT COUNT(*), COUNT(DISTINCT expected_time) >= 48, MIN($STEP), MAX($STEP) < 3600000000 * 1.1
              FROM dq_task WHERE tag = 'many'")" = $'50\t1\t3600000000\t1' ]
    [ "$(sql "SELECT MIN($STEP), MAX($STEP) FROM dq_task WHERE tag = 'exact'")" = $'3600000000\t3600000000' ]
}

@test "jitter only lengthens a wait" {
    write_handlers <<'END'
handlers:
  pay:
    run: exit 1
    retry: [1d]
    jitter: 50%
END
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do dq add pay; done
    dqd
    [ "$(sql "SELECT COUNT(*), MIN($STEP) >= 86400000000, MAX($STEP) <= 86400000000 * 3 / 2,
              COUNT(DISTINCT $STEP) > 1 FROM dq_task")" = $'12\t1\t1\t1' ]
}
