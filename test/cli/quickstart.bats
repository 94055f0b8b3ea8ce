# The quick start's real input does what the quick start says: orders.ndjson through its handlers, to the end.
load ../lib/sandbox

setup_file()
{
    sandbox_start_quickstart
    dq add --from "$DQ_TOP/etc/quickstart/orders.ndjson"
    "$DQ_BIN/dqd" --resident >"$BATS_FILE_TMPDIR/dqd.log" 2>&1 3>&- &
    local pid=$!
    wait_until nothing_waits || true
    kill "$pid"
    wait "$pid"
}

nothing_waits() { [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status IN (0, 3)')" = 0 ]; }

teardown() { :; }

# status, attempts and output of the task with a key
outcome() { sql "SELECT status, attempt, output FROM dq_task WHERE task_key = '$1'"; }

@test 'quickstart: every event reaches a final state' {
    [ "$(sql 'SELECT COUNT(*) FROM dq_task')" -eq "$(wc -l <"$DQ_TOP/etc/quickstart/orders.ndjson")" ]
    nothing_waits
}

@test 'quickstart: an unpaid order is cancelled, a paid one is not' {
    [[ $(outcome cancel-1001) == $'1\t1\torder 1001 was not paid: cancelled'* ]]
    [[ $(outcome cancel-1003) == $'1\t1\torder 1003 was paid in time'* ]]
}

@test 'quickstart: an order without a rating gets five stars' {
    [[ $(outcome stars-1021) == $'1\t1\torder 1021 was not rated: five stars'* ]]
    [[ $(outcome stars-1024) == $'1\t1\torder 1024 was rated'* ]]
}

@test 'quickstart: an order whose state cannot be read is neither cancelled nor rated' {
    for handler in cancel-unpaid five-stars; do
        run env SHOP=/nonexistent "$DQ_TOP/etc/quickstart/handlers/$handler" <<<1001
        [ "$status" = 75 ] && [[ $output != *order* ]] || { echo "$output"; false; }
    done
}

@test 'quickstart: a payment that fails twice succeeds at its third attempt, and both failures are kept' {
    [[ $(outcome pay-1042) == $'1\t3\t'*'120.00 captured at attempt 3'* ]]
    run sql "SELECT a.attempt, a.outcome, a.exit_code FROM dq_attempt a JOIN dq_task t ON t.id = a.task_id
             WHERE t.task_key = 'pay-1042' ORDER BY a.attempt"
    [ "$output" = $'1\texit\t75\n2\texit\t75' ]
}

@test 'quickstart: a refused payment fails at once, one whose service is down after its last attempt' {
    [[ $(outcome pay-1044) == $'2\t1\t'* ]]
    [[ $(outcome pay-1045) == $'2\t3\t'* ]]
}

@test 'quickstart: a batch handler sends the mails' {
    [ "$(sql "SELECT COUNT(*) FROM dq_task WHERE tag = 'mail.shipped' AND status = 1")" = 10 ]
}

# A tree that is built, and no packages to install.
@test 'bin/quickstart succeeds twice in a row and leaves no unexpected files' {
    cd "$BATS_TEST_TMPDIR"
    mkdir bin
    cp "$DQ_TOP/bin/quickstart" "$DQ_TOP/bin/dq-sandbox" bin/
    ln -s "$DQ_BIN/dq" "$DQ_BIN/dqd" bin/
    ln -s "$DQ_TOP/etc" etc
    printf '#!/bin/sh\n' >bin/need-packages
    chmod +x bin/need-packages
    touch -d '1 hour ago' configure.ac
    touch -d '1 minute ago' configure
    echo 'all:' >Makefile
    bin/quickstart 3>&- </dev/null
    [ -z "$(find sandbox/ -name '*~')" ]
    cp sandbox/handlers.yaml kept
    bin/quickstart 3>&- </dev/null
    cmp sandbox/handlers.yaml kept
    [ -z "$(find sandbox/ -name '*~')" ]
    bin/dq-sandbox destroy --force sandbox
    [ ! -e sandbox ]
}

# Among the examples of an installation, with the installed programs; in a directory of the user's own.
@test 'the installed quick start succeeds, and makes nothing but ./sandbox' {
    cd "$BATS_TEST_TMPDIR"
    mkdir programs examples own
    ln -s "$DQ_BIN/dq" "$DQ_BIN/dqd" "$DQ_TOP/bin/dq-sandbox" programs/
    cp -R "$DQ_TOP/bin/quickstart" "$DQ_TOP"/etc/quickstart/* examples/
    cd own
    PATH=$BATS_TEST_TMPDIR/programs:$PATH ../examples/quickstart 3>&- </dev/null
    [ "$(ls)" = sandbox ]
    ../programs/dq-sandbox destroy --force sandbox
}
