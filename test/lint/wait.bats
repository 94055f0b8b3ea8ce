# No wait of a test goes on when what it waits for has ended: test/lib/wait.bash.

setup() { . "${DQ_TOP:-$BATS_TEST_DIRNAME/../..}/test/lib/wait.bash"; }

# The wait for $1 fails, and names what has ended.
gives_up()
{
    local began=$SECONDS
    wait_limit=60 wait_until "$1" 2>"$BATS_TEST_TMPDIR/said" && return 1
    cat "$BATS_TEST_TMPDIR/said"
    grep -qF "$2" "$BATS_TEST_TMPDIR/said"
    [ $((SECONDS - began)) -lt 60 ]
}

@test 'a wait ends with a process in the background, whether it ended before or meanwhile, and with any status' {
    (exit 1) 3>&- &
    gives_up false 'with status 1'
    (sleep 0.3) 3>&- &
    gives_up false 'with status 0'
    tail -f /dev/null 3>&- & # another one that lives
    (kill -SEGV $BASHPID) 3>&- &
    gives_up false 'with status 139'
    kill %?tail
}

@test 'what comes true by the last act of a process is seen' {
    (sleep 0.2; touch "$BATS_TEST_TMPDIR/done") 3>&- &
    wait_until [ -e "$BATS_TEST_TMPDIR/done" ]
    wait $!
    (sleep 0.2) 3>&- &
    has_ended() { ! kill -0 $! 2>/dev/null; }
    wait_until has_ended
}

@test 'what a test has waited for, or ended with TERM or KILL, is not waited for' {
    comes() { [ $((looks += 1)) -gt 3 ]; }
    for status in 0 3; do
        (exit "$status") 3>&- &
        wait $! || true
        looks=0
        wait_until comes
    done
    for signal in TERM KILL; do
        tail -f /dev/null 3>&- &
        kill -s "$signal" $!
    done
    (sleep 0.5; touch "$BATS_TEST_TMPDIR/done"; exec sleep 60) 3>&- &
    wait_until [ -e "$BATS_TEST_TMPDIR/done" ]
    kill $!
}
