#!/usr/bin/env bats
# A crontab is moved as dq-schedule(1) says, and runs for an hour of the server's clock on three hosts, one of which is
# killed.

load ../lib/sandbox
. "$DQ_TOP/test/lib/clock.bash"

setup() { sandbox_clear; }

START=$(date -ud '2031-05-06 07:00:30' +%s)
minute() { set_clock "+$((START + 60 * $1 - $(date +%s)))"; }
all_decided() { [ "$(sql 'SELECT COUNT(*) FROM dq_schedule WHERE next_slot <= UTC_TIMESTAMP(3)')" = 0 ]; }

@test 'a crontab that was moved runs each line once a slot, on three hosts with one of them killed' {
    cd "$BATS_TEST_TMPDIR"
    cat >crontab <<END
SHELL=/bin/bash
LOG=$PWD/ran

# twelve an hour
*/5 * * * * echo five >>\$LOG
1-59/7 * * * * echo seven >>"\$LOG"
13,43 * * * * cat >>\$LOG%input%of two lines
@hourly echo hour >>\$LOG
20 * * * * echo \$DQ_PID >begun; until [ -e go ]; do sleep 0.1; done; cd $PWD
5 3 * * * logrotate /etc/logrotate.conf
END
    sed -i "s|begun;|$PWD/begun;|; s|-e go|-e $PWD/go|" crontab
    minute 0
    dq -q schedule import-crontab crontab --dry-run | grep -v '^#' >handlers.yaml
    [ "$(sql 'SELECT COUNT(*) FROM dq_schedule')" = 0 ]
    dqds=()
    for host in 1 2 3; do
        sed "s|^handlers.*|handlers = $PWD/handlers.yaml|
             s|^\[dqd\]|&\nheartbeat = 200ms\npoll_interval = 50ms\nlease = 10s|" "$DQ_CONFIG" >"$host.ini"
        chmod 600 "$host.ini"
        dqd --config "$host.ini" --check-config
        "$DQ_BIN/dqd" --config "$host.ini" --resident 2>"$host.log" 3>&- &
        dqds+=($!)
    done
    wait_until eval '[ "$(sql "SELECT COUNT(*) FROM dq_poller")" = 3 ]'
    dq -q schedule import-crontab crontab >/dev/null
    [ "$(dq schedule -o id | wc -l)" = 5 ]
    dq check --schedules '*'
    for m in {1..60}; do
        minute "$m"
        wait_until all_decided
        [ "$m" != 20 ] || {
            wait_until test -s begun
            owner=$(sql 'SELECT pid FROM dq_task WHERE status = 3 AND tag = "cron.echo-4"')
            [[ " ${dqds[*]} " == *" $owner "* ]]
            kill -KILL "$owner"
        }
    done
    wait_until eval '[ "$(sql "SELECT COUNT(*) FROM dq_task WHERE status IN (0, 3)")" = 0 ]'
    touch go
    for pid in "${dqds[@]}"; do [ "$pid" = "$owner" ] || { kill "$pid" && wait "$pid"; }; done
    sql 'SELECT name, COUNT(*), SUM(slots), MAX(decision) FROM dq_slot GROUP BY name ORDER BY name' >slots
    printf '%s\t%d\t%d\t0\n' cat 2 2 echo 12 12 echo-2 9 9 echo-3 1 1 echo-4 1 1 | sort | diff - slots
    [ "$(grep -c five ran) $(grep -c seven ran) $(grep -c hour ran) $(grep -c 'of two lines' ran)" = '12 9 1 2' ]
    # a host that dies takes what runs there with it, as under cron; but that is said
    [ "$(sql 'SELECT COUNT(*), SUM(status = 1) FROM dq_task')" = $'25\t24' ]
    rc=0
    dq check --schedules '*' >check || rc=$?
    [ "$rc" = 2 ]
    grep -F 'the last run of echo-4 failed' check || { cat check; return 1; }
}
