#!/usr/bin/env bats
# A dqd that begins while the last one of its host is ending: what that one still runs counts.

load ../lib/sandbox
setup() { sandbox_clear; cd "$BATS_TEST_TMPDIR"; }
teardown()
{
    touch go
    [ -z "${other_pid:-}" ] || kill "$other_pid"
    dqd_reap
}

# slow writes its starts and ends down, and ends when there is a file named go.
slow()
{
    write_handlers <<END
handlers:
  slow:
    run: 'cd $BATS_TEST_TMPDIR; echo + >>j; until [ -e go ]; do sleep 0.02; done; echo - >>j'
    max_running: $1
    timeout: 1h
  other: {run: ':'}
END
    for ((i = 0; i < $2; i++)); do echo '{"tag":"slow"}'; done | dq -q add --from - >/dev/null
}
at_once() { awk '/\+/ { n++ } /-/ { n-- } n > most { most = n } END { print most }' j; }
begun() { [ "$(grep -c + j)" -eq "$1" ]; }
let_go() { touch go; wait "$other_pid"; other_pid=''; }
is_ending() # and has left its lock to the next run, which it does when its row says so
{
    [ "$(sql "SELECT slots, running > 0 FROM dq_poller WHERE pid = $1")" = $'0\t1' ] &&
        flock -n "${DQ_CONFIG%/*}/dqd.lock" true
}
# Beside the tasks of slow, another tag starts: twice, as the first may be claimed before those.
others_start()
{
    local n
    for n in 1 2; do
        dq -q add other >/dev/null
        wait_until is "tag = 'other' AND status = 1" "$n"
    done
}

@test 'a run counts for max_running what the last one of its host still runs, and so does dq why' {
    own_ini 's/^\[dqd\]/&\ndrain_timeout = 1h/'
    slow 2 6
    dqd_start --for 10m --config "$BATS_TEST_TMPDIR/own.ini"
    other_pid=$DQD_PID
    wait_until begun 2
    kill "$other_pid"
    wait_until is_ending "$other_pid"
    dqd_start --for 10m
    others_start
    begun 2
    wait_until grep -q 'still run handlers.*processes=2' "$DQD_LOG"
    id=$(sql "SELECT MAX(id) FROM dq_task WHERE tag = 'slow'")
    [[ $(dq why "$id") == *'all 2 places of the tag on '*'handlers.yaml:2, also for those of a dqd that is ending'* ]]
    [ "$(sql "SELECT running FROM dq_poller WHERE pid = $DQD_PID")" -eq 0 ]
    let_go
    wait_until is "status = 1" 8
    [ "$(at_once)" -eq 2 ]
}

@test 'a run counts for keep what the last one still runs of all tags that share the processes' {
    own_ini 's/^\[dqd\]/&\ndrain_timeout = 1h/'
    write_handlers <<END
handlers:
  'k*':
    keep: 3
    timeout: 1h
    run: |
      cd $BATS_TEST_TMPDIR; echo '{"ready":true}' >&3
      while read -r line; do
        id=\${line#*'"id":'}; echo + >>j; until [ -e go ]; do sleep 0.02; done; echo - >>j
        echo "{\"id\":\${id%%,*},\"result\":\"done\"}" >&3
      done
  other: {run: ':'}
END
    dq -q add k1 && dq -q add k2
    dqd_start --for 10m --config "$BATS_TEST_TMPDIR/own.ini"
    other_pid=$DQD_PID
    wait_until begun 2
    kill "$other_pid"
    wait_until is_ending "$other_pid"
    dq -q add k3 && dq -q add k4
    dqd_start --for 10m
    others_start
    wait_until begun 3
    let_go
    wait_until is "status = 1" 6
    [ "$(at_once)" -eq 3 ]
}

@test 'a new dqd counts for slots what the one before it still runs, unless one of them has other tags' {
    own_ini 's/^\[dqd\]/&\ndrain_timeout = 1h/'
    slow 8 9
    dqd_start --resident --slots 4 --config "$BATS_TEST_TMPDIR/own.ini"
    other_pid=$DQD_PID
    wait_until begun 3
    kill "$other_pid"
    wait_until is_ending "$other_pid"
    dqd_start --resident --slots 4 --config "$BATS_TEST_TMPDIR/own.ini"
    others_start
    begun 3
    dqd_stop
    dqd_start --resident --slots 4 --config "$BATS_TEST_TMPDIR/own.ini" --tag slow
    wait_until begun 6
    let_go
    wait_until is "status = 1" 11
}

@test 'each run begins with another tag, so that all have their turn' {
    write_handlers <<'END'
handlers: {'t*': {run: 'sleep 0.2'}}
END
    for n in 1 2 3 4 5 6; do yes "{\"tag\":\"t$n\"}" | head -n 200; done | dq -q add --from - >/dev/null
    for ((n = 0; n < 150; n++)); do
        dqd --for 100ms --slots 1
        [ "$(sql 'SELECT COUNT(DISTINCT tag) FROM dq_task WHERE status = 1')" -lt 6 ] || return 0
    done
    false
}

locked() { [[ $(dqd --config "$BATS_TEST_TMPDIR/own.ini" 2>&1) == *'is already running'* ]]; }
@test 'a run that cannot say that it is ending keeps the next one waiting only until it counts as dead' {
    own_ini 's/^\[dqd\]/&\nheartbeat = 200ms\ndrain_timeout = 1h/'
    slow 2 2
    dqd_start --for 10m --config "$BATS_TEST_TMPDIR/own.ini"
    other_pid=$DQD_PID
    wait_until begun 2
    locked
    sql "CREATE TRIGGER refused BEFORE UPDATE ON dq_poller FOR EACH ROW
         SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'"
    kill "$other_pid"
    wait_until refute locked
    sql 'DROP TRIGGER refused'
    is 'status = 3' 2
    let_go
}
