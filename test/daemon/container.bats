# dqd in a container: as process 1 of a process namespace of its own, without systemd, and the health check.

load ../lib/sandbox

# Becomes process 1 of a process namespace. In a chroot, / is no mount point, and has no propagation to be changed.
contain() { exec unshare --pid --fork --kill-child --mount-proc --propagation unchanged "$@"; }

setup() { sandbox_clear; }

# Only a refusal is a reason to skip.
needs_namespaces()
{
    refused=$( (contain true) 2>&1) || [[ $refused != *': Operation not permitted' ]] ||
        skip "namespaces are refused here: $refused"
}
teardown()
{
    [ -z "${SHELL_PID:-}" ] || kill -KILL "$SHELL_PID" 2>/dev/null || true
    [ -n "${BATS_TEST_COMPLETED:-}" ] || [ ! -e "$BATS_TEST_TMPDIR/log" ] || cat "$BATS_TEST_TMPDIR/log"
    dqd_reap
}

inside() { nsenter --target "$INIT" --pid --mount --root --wd=/ "$@"; }
has_init() { INIT=$(pgrep -P "$SHELL_PID") && [ -n "$INIT" ]; }
counts() { [ "$(sql "SELECT COUNT(*) FROM dq_task WHERE status = $1")" = "$2" ]; }
# Zombies, too: ps shows them as "[sleep] <defunct>".
only_dqd() { [ "$(inside ps -eo args= | grep -cv -e '/dqd --resident$' -e '^ps -eo')" = 0 ]; }

# bats test_tags=bare
@test 'as process 1, dqd reaps orphans, of handlers and of others, and TERM drains' {
    needs_namespaces
    write_handlers <<YAML
handlers:
  orphan: {run: "(setsid sleep 0.3 &) ; true"}
  long: {run: "touch $BATS_TEST_TMPDIR/long; until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.05; done"}
YAML
    contain "$DQ_BIN/dqd" --resident >"$BATS_TEST_TMPDIR/log" 2>&1 3>&- &
    SHELL_PID=$!
    wait_until has_init
    dq -q add orphan
    wait_until counts 1 1
    inside sh -c '(setsid sleep 0.3 &) ; true'
    wait_until only_dqd
    dq -q add long
    wait_until [ -e "$BATS_TEST_TMPDIR/long" ]
    kill -TERM "$INIT"
    wait_until grep -q 'asked to stop; waiting for running handlers' "$BATS_TEST_TMPDIR/log"
    touch "$BATS_TEST_TMPDIR/go"
    rc=0
    wait "$SHELL_PID" || rc=$?
    SHELL_PID=''
    [ "$rc" = 0 ]
    counts 1 2
}

has_ended() { ! kill -0 "$SHELL_PID" 2>/dev/null; }

# bats test_tags=bare
@test 'as process 1, dqd kills handlers that ignore TERM at the second TERM, long before drain_timeout' {
    needs_namespaces
    write_handlers <<YAML
handlers:
  deaf: {run: "trap '' TERM; touch $BATS_TEST_TMPDIR/deaf; while :; do sleep 0.1; done", timeout: 1h, kill_grace: 100ms}
YAML
    DQ_DQD_DRAIN_TIMEOUT=1h contain "$DQ_BIN/dqd" --resident >"$BATS_TEST_TMPDIR/log" 2>&1 3>&- &
    SHELL_PID=$!
    wait_until has_init
    dq -q add deaf
    wait_until [ -e "$BATS_TEST_TMPDIR/deaf" ]
    kill -TERM "$INIT"
    wait_until grep -q 'asked to stop; waiting for running handlers' "$BATS_TEST_TMPDIR/log"
    kill -TERM "$INIT"
    wait_until has_ended
    rc=0
    wait "$SHELL_PID" || rc=$?
    SHELL_PID=''
    [ "$rc" = 0 ]
    grep -q 'asked to stop again; killing handlers' "$BATS_TEST_TMPDIR/log"
    counts 0 1
}

# The command of the image's HEALTHCHECK, in the shell form: continued lines are one.
health_command()
{
    awk '/^HEALTHCHECK / { on = 1 }
         on { more = sub(/\\$/, ""); printf "%s", $0; if (!more) exit }' "$DQ_TOP/etc/container/Containerfile" |
        sed 's/.* CMD //'
}
healthy() { PATH=$DQ_BIN:$PATH sh -c "$(health_command)"; }
unhealthy()
{
    local rc=0
    healthy || rc=$?
    [ "$rc" = 1 ]
}

@test 'the health check of the image follows the heartbeat of a dqd, which need not be process 1' {
    [[ $(health_command) == *'dq pollers '* ]]
    unhealthy
    fake_dqd hello
    sql "UPDATE dq_poller SET host = 'another'"
    unhealthy
    dqd_start --resident
    wait_until healthy
    kill -STOP "$DQD_PID"
    sql 'UPDATE dq_poller SET last_seen = UTC_TIMESTAMP(3) - INTERVAL 1 HOUR'
    unhealthy
    kill -CONT "$DQD_PID"
    wait_until healthy
    dqd_stop
    unhealthy
}

@test 'the health check of the image does not fail without a database, but with wrong settings' {
    export DQ_MYSQL_SOCKET=$BATS_TEST_TMPDIR/none.sock
    try dq pollers
    [ "$rc" = 69 ]
    healthy
    unset DQ_MYSQL_SOCKET
    DQ_MYSQL_PORT=none unhealthy
}
