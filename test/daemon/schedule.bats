#!/usr/bin/env bats
# Schedules: dqd adds their tasks when their slots come, and records what became of each slot.

load ../lib/sandbox
setup() {
    sandbox_clear
    own_ini 's/^\[dqd\]/&\nheartbeat = 200ms\npoll_interval = 50ms/'
    export DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini
}

EVERY=1 GAP=2 SKIP=0 LATEST=1 ALL=2 ALLOW=2
schedule() # NAME KIND EXPRESSION NEXT [COLUMN=VALUE,...]: next slot NEXT (SQL)
{
    sql "INSERT INTO dq_schedule SET name = '$1', tag = 't', message_body = 'body of $1', kind = $2, expression = '$3',
             next_slot = $4, create_time = UTC_TIMESTAMP(3), update_time = UTC_TIMESTAMP(3), actor = 'a'${5:+, $5}"
}
decided() { sql "SELECT COALESCE(SUM(slots), 0) FROM dq_slot WHERE ${1:-1}"; }
at_least() { [ "$(decided "$2")" -ge "$1" ]; }
# Each slot from the first to the last has one decision. SECONDS: between slots
without_holes() # NAME SECONDS
{
    [ "$(sql "SELECT SUM(slots) = TIMESTAMPDIFF(SECOND, MIN(slot), MAX(slot)) / $2 + 1, COUNT(*) = COUNT(DISTINCT slot)
              FROM dq_slot WHERE name = '$1'")" = $'1\t1' ]
}
write_env_handler()
{
    echo "handlers: {t: {run: 'env | grep ^DQ_ | sort >>$BATS_TEST_TMPDIR/env; cat >>$BATS_TEST_TMPDIR/body'}}" |
        write_handlers
}

@test 'a schedule runs each second, its handler sees which slot, and how it ended is recorded' {
    write_env_handler
    schedule tick $EVERY 1s 'UTC_TIMESTAMP(0) + INTERVAL 1 SECOND' 'missed = 4'
    dqd_start --resident
    wait_until at_least 3 'result = 1'
    dqd_stop
    without_holes tick 1
    [ "$(decided 'decision <> 0')" -eq 0 ]
    [ "$(sql "SELECT missed, task_id > 0, start_time >= slot, finish_time >= start_time, COALESCE(exit_code, 0) = 0
              FROM dq_slot ORDER BY slot LIMIT 1")" = $'4\t1\t1\t1\t1' ]
    first=$(sql "SELECT DATE_FORMAT(MIN(slot), '%Y-%m-%dT%H:%i:%sZ') FROM dq_slot")
    [ "$(grep -c "^DQ_SLOT=$first\$" "$BATS_TEST_TMPDIR/env")" -eq 1 ]
    [ "$(grep -c '^DQ_SCHEDULE=tick$' "$BATS_TEST_TMPDIR/env")" -ge 3 ]
    [ "$(grep -c '^DQ_MISSED=4' "$BATS_TEST_TMPDIR/env")" -eq 1 ]
    grep -qx "DQ_KEY=tick@$first" "$BATS_TEST_TMPDIR/env"
    [[ $(cat "$BATS_TEST_TMPDIR/body") == 'body of tickbody of tick'* ]]
}

@test 'a task that no schedule added has none of their variables' {
    write_env_handler
    dq -q add t --key a@b
    dqd
    grep -qx DQ_KEY=a@b "$BATS_TEST_TMPDIR/env"
    refute grep -E 'SCHEDULE|SLOT|MISSED' "$BATS_TEST_TMPDIR/env"
}

@test 'the lines of a batch say which slot, too' {
    echo "handlers: {t: {batch: 10, run: 'cat >>$BATS_TEST_TMPDIR/lines'}}" | write_handlers
    schedule 'a"b' $EVERY 1h "'2026-01-01 07:00:00'" \
        "catch_up = $ALL, catch_up_within = 315360000000, to_time = '2026-01-01 08:00:00'"
    dq -q add t
    dqd --once
    [ "$(python3 -c '
import json, sys
for line in open(sys.argv[1]):
    t = json.loads(line)
    print(t.get("schedule"), t.get("slot"), t.get("missed"), "key" in t)
' "$BATS_TEST_TMPDIR/lines" | sort)" = 'None None None False
a"b 2026-01-01T07:00:00Z 0 True' ]
    is "tag = 't' AND status = 0" 1
}
@test 'a slot is skipped while the last run lives, and the next run stands for it' {
    write_handlers <<END
handlers:
  t:
    run: 'echo \$DQ_MISSED >>$BATS_TEST_TMPDIR/missed; until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.05; done'
END
    schedule tick $EVERY 1s 'UTC_TIMESTAMP(0) + INTERVAL 1 SECOND'
    dqd_start --resident
    wait_until at_least 2 'decision = 2'
    touch "$BATS_TEST_TMPDIR/go"
    wait_until eval '[ "$(grep -c . "$BATS_TEST_TMPDIR/missed")" -ge 2 ]'
    dqd_stop
    without_holes tick 1
    [ "$(sql 'SELECT COUNT(*) FROM dq_slot a JOIN dq_slot b ON b.decision = 0 AND a.decision = 2
              AND b.slot > a.slot')" -ge 2 ]
    [ "$(sed -n 1p "$BATS_TEST_TMPDIR/missed")" -eq 0 ]
    [ "$(sed -n 2p "$BATS_TEST_TMPDIR/missed")" -eq "$(sql 'SELECT MAX(missed) FROM dq_slot')" ]
    [ "$(sed -n 2p "$BATS_TEST_TMPDIR/missed")" -ge 2 ]
}

@test 'a gap counts from the end of the last run' {
    echo "handlers: {t: {run: 'sleep 1.2'}}" | write_handlers
    schedule rest $GAP 1s 'UTC_TIMESTAMP(3)'
    dqd_start --resident
    wait_until at_least 3 'result = 1'
    dqd_stop
    # each run begins a second after the end of the one before, and none is missing
    [ "$(sql "SELECT SUM(TIMESTAMPDIFF(MICROSECOND, a.finish_time, b.slot) = 1000000), SUM(b.start_time < b.slot),
              COUNT(*) >= 2 FROM dq_slot a
              JOIN dq_slot b ON b.slot = (SELECT MIN(slot) FROM dq_slot WHERE slot > a.slot)
              WHERE b.start_time IS NOT NULL" | sed 's/^[2-9]\t/2\t/')" = $'2\t0\t1' ]
}

@test 'the slots of a pause are recorded as skipped' {
    echo "handlers: {t: {run: 'true'}}" | write_handlers
    schedule tick $EVERY 1s 'UTC_TIMESTAMP(0) + INTERVAL 1 SECOND' 'paused_time = UTC_TIMESTAMP(3)'
    dqd_start --resident
    wait_until at_least 2 'decision = 4'
    sql 'UPDATE dq_schedule SET paused_time = NULL, version = version + 1'
    wait_until at_least 1 'decision = 0'
    dqd_stop
    without_holes tick 1
    [ "$(decided 'missed > 0')" -eq 0 ]
}

@test 'after an outage of 12 hours: skip, latest, all' {
    echo "handlers: {t: {run: 'true', max_running: 8}}" | write_handlers
    for policy in $SKIP $LATEST $ALL; do
        schedule "p$policy" $EVERY 5m 'UTC_TIMESTAMP(0) - INTERVAL 12 HOUR' \
            "catch_up = $policy, catch_up_within = $((policy == LATEST ? 1200000 : 0)),
             to_time = UTC_TIMESTAMP(0) - INTERVAL 2 MINUTE, overlap = $ALLOW"
    done
    dqd
    [ "$(decided "name = 'p$SKIP' AND decision = 3")" -eq "$(decided "name = 'p$SKIP'")" ]
    [ "$(decided "name = 'p$LATEST' AND decision = 1")" -eq 1 ]
    [ "$(sql "SELECT missed = (SELECT SUM(slots) FROM dq_slot WHERE name = 'p$LATEST' AND decision = 3)
              FROM dq_slot WHERE name = 'p$LATEST' AND decision = 1")" -eq 1 ]
    [ "$(decided "name = 'p$ALL' AND decision = 1")" -eq "$(decided "name = 'p$SKIP'")" ]
    [ "$(decided "name = 'p$ALL'")" -ge 143 ]
    is "task_key LIKE 'p$ALL@%'" "$(decided "name = 'p$ALL'")"
    is "task_key LIKE 'p$ALL@%' AND expected_time > create_time + INTERVAL 5 MINUTE" 0
    [ "$(sql 'SELECT COUNT(*) FROM dq_schedule WHERE next_slot IS NULL')" -eq 3 ]
}

@test 'a pass takes what is due when it starts' {
    echo "handlers: {t: {run: 'echo \$DQ_SCHEDULE >>$BATS_TEST_TMPDIR/ran'}}" | write_handlers
    schedule due $EVERY 1h 'UTC_TIMESTAMP(3) - INTERVAL 1 SECOND'
    schedule later $EVERY 1h 'UTC_TIMESTAMP(3) + INTERVAL 1 HOUR'
    # other dqds go first, and after a slow heartbeat claims do
    fake_dqd t
    sql "UPDATE dq_poller SET token = x'00';
         CREATE TRIGGER slow BEFORE INSERT ON dq_poller FOR EACH ROW DO SLEEP(0.05)"
    dqd --once
    sql 'DROP TRIGGER slow; DELETE FROM dq_poller'
    [ "$(cat "$BATS_TEST_TMPDIR/ran")" = due ]
    dqd --once
    [ "$(cat "$BATS_TEST_TMPDIR/ran")" = due ]
    [ "$(sql 'SELECT result FROM dq_slot')" -eq 1 ]
}

@test 'a pass takes all that is due, however much it is' {
    echo "handlers: {t: {run: 'true'}}" | write_handlers
    sql "INSERT INTO dq_schedule (name, tag, message_body, kind, expression, next_slot, create_time, update_time, actor)
         SELECT CONCAT('s', seq), 'unserved', '', $EVERY, '1h', UTC_TIMESTAMP(3) - INTERVAL 1 SECOND, UTC_TIMESTAMP(3),
             UTC_TIMESTAMP(3), 'a' FROM $(numbers 1200)"
    dqd --once
    [ "$(decided 'decision = 0')" -ge 1200 ]
    is "tag = 'unserved'" "$(decided 'decision = 0')"
}

@test 'dqd needs no poll to see the task of a slot' {
    echo "handlers: {t: {run: 'true'}}" | write_handlers
    sed -i 's/^poll_interval.*/poll_interval = 1h/; s/^heartbeat.*/heartbeat = 200ms\nlease = 24h/' \
        "$BATS_TEST_TMPDIR/own.ini"
    dqd_start --resident
    wait_until eval '[ -n "$(sql "SELECT 1 FROM dq_poller")" ]'
    schedule tick $EVERY 1s 'UTC_TIMESTAMP(3) + INTERVAL 2 SECOND'
    wait_until at_least 3 'result = 1'
    dqd_stop
}

@test 'the run of a slot starts as punctually as any task' {
    echo "handlers: {t: {run: 'true'}}" | write_handlers
    for i in 1 2 3; do
        schedule "tick$i" $EVERY 1s "UTC_TIMESTAMP(0) + INTERVAL ${i}500000 MICROSECOND" \
            "from_time = '2020-01-01 00:00:00.500'"
    done
    dqd_start --resident
    wait_until at_least 12 'result = 1'
    dqd_stop
    # taken ahead, so that the start waits for its instant; one of several tries may be late on a slow machine
    [ "$(sql 'SELECT COUNT(*) FROM dq_slot WHERE decide_time < slot')" -ge 3 ]
    [ "$(sql 'SELECT MIN(TIMESTAMPDIFF(MICROSECOND, slot, start_time)) BETWEEN 0 AND 30000
              FROM dq_slot WHERE start_time')" -eq 1 ]
}

@test 'without schedules, dqd asks nothing about them but with its heartbeat' {
    echo "handlers: {t: {run: 'true'}}" | write_handlers
    sql "SET GLOBAL log_output = 'TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log = 1"
    dqd_start --resident
    dq -q add t
    wait_until eval 'is "status = 1" 1'
    logged() { sql "SELECT COUNT(*) FROM mysql.general_log WHERE $1"; }
    wait_until eval '[ "$(logged "argument LIKE \"%INSERT INTO dq_poller%\"")" -ge 5 ]'
    dqd_stop
    sql 'SET GLOBAL general_log = 0'
    [ "$(logged "argument REGEXP 'dq_(schedule|slot)' AND user_host NOT LIKE 'root%'
                 AND argument NOT LIKE '%FROM dq_poller WHERE%'")" -eq 0 ]
}

@test 'after the clock of the server was set back, no slot comes again' {
    echo "handlers: {t: {run: 'true'}}" | write_handlers
    schedule tick $EVERY 1s 'UTC_TIMESTAMP(0) + INTERVAL 1 SECOND'
    dqd_start --resident
    wait_until at_least 2 'result = 1'
    # what was written in the hour that comes again is ahead now
    sql 'UPDATE dq_schedule SET version = version + 1, next_slot = next_slot + INTERVAL 1 HOUR,
             last_slot = last_slot + INTERVAL 1 HOUR;
         UPDATE dq_slot SET slot = slot + INTERVAL 1 HOUR, decide_time = decide_time + INTERVAL 1 HOUR'
    before=$(decided)
    until=$(sql 'SELECT UTC_TIMESTAMP(3) + INTERVAL 1500000 MICROSECOND')
    wait_until eval '[ "$(sql "SELECT MAX(last_seen) > \"$until\" FROM dq_poller")" = 1 ]'
    dqd_stop
    [ "$(decided)" -eq "$before" ]
}
