# dqd as process 1 of a container: a process namespace of its own, without systemd.

load ../lib/sandbox

# Becomes process 1 of a process namespace. In a chroot, / is no mount point, and has no propagation to be changed.
contain() { exec unshare --pid --fork --kill-child --mount-proc --propagation unchanged "$@"; }

# Only a refusal is a reason to skip.
setup()
{
    refused=$( (contain true) 2>&1) || [[ $refused != *': Operation not permitted' ]] ||
        skip "namespaces are refused here: $refused"
    sandbox_clear
}
teardown()
{
    [ -z "${SHELL_PID:-}" ] || kill -KILL "$SHELL_PID" 2>/dev/null || true
    [ -n "${BATS_TEST_COMPLETED:-}" ] || cat "$BATS_TEST_TMPDIR/log"
}

inside() { nsenter --target "$INIT" --pid --mount --root --wd=/ "$@"; }
has_init() { INIT=$(pgrep -P "$SHELL_PID") && [ -n "$INIT" ]; }
counts() { [ "$(sql "SELECT COUNT(*) FROM dq_task WHERE status = $1")" = "$2" ]; }
# Zombies, too: ps shows them as "[sleep] <defunct>".
only_dqd() { [ "$(inside ps -eo args= | grep -cv -e '/dqd --resident$' -e '^ps -eo')" = 0 ]; }

# bats test_tags=bare
@test 'as process 1, dqd reaps orphans, of handlers and of others, and TERM drains' {
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
