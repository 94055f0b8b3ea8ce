# dq top, in a real terminal (tmux) of several sizes.

load ../lib/sandbox
load ../lib/screen

setup() { sandbox_clear; }

teardown()
{
    screen_end
    dqd_reap
}

# top_start COLUMNS ROWS ARG...: the shell that runs it prints its exit status
top_start()
{
    local columns=$1 rows=$2
    shift 2
    screen_start "$columns" "$rows" \
        "LC_ALL=C.UTF-8 '$DQ_BIN/dq' top $*; echo \"ended \$?\"; stty -a | grep -ow -- '-*echo'; exec cat"
    sees '^dqd [0-9]'
}

fill()
{
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT 'slow.export', '', UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, UTC_TIMESTAMP(3) - INTERVAL 1 HOUR
         FROM $(numbers 25);
         INSERT INTO dq_task (tag, message_body, expected_time, create_time) VALUES
         ('later', '', UTC_TIMESTAMP(3) + INTERVAL 1 DAY, UTC_TIMESTAMP(3)),
         (X'C3A96E6F726D6F75736C796C6F6E676E616D656F66617461677468617469736375747368656E6E6565646564',
          '', UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE, UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE)"
}

# Whole ones, those that matter most, and how to leave.
keys_at_bottom()
{
    local some='w why  e errors  ' list='enter list  ' acts='p pause  c cancel  ' most='t retry  r resume  ' line
    line=$(screen | tail -n 1)
    case $1 in
    30) [ "$line" = "${some}q quit" ] ;;
    40) [ "$line" = "$some${list}q quit" ] ;;
    60) [ "$line" = "$some$list${acts}q quit" ] ;;
    80) [ "$line" = "$some$list$acts${most}q quit" ] ;;
    *) [ "$line" = "$some$list$acts${most}s sort  / filter  q quit" ] ;;
    esac
}

@test 'top shows tags, why they wait, and fits 60, 80, 120 and 200 columns and a small window' {
    fill
    for columns in 40 60 80 120 200; do
        top_start "$columns" 24
        screen
        sees '^TAG  *RUN  *DUE  *LATE'
        sees '^slow.ex.*  *0  *25  *1h'
        [ "$columns" -lt 80 ] || sees 'no dqd is'
        [ "$columns" -lt 80 ] || sees "/dq  [0-9:]*\$"
        wait_until keys_at_bottom "$columns"
    done
    top_start 80 5
    sees '^slow.export'
    wait_until keys_at_bottom 80
    screen_resize 120 30
    sees '^later'
    screen_resize 30 3
    wait_until hides '^later'
    wait_until keys_at_bottom 30
    keys q
    screen_resize 80 24
    sees '^ended 0'
}

@test 'top names a tag with a task that no dqd takes' {
    fake_dqd odd fine
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT tag, '', UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, UTC_TIMESTAMP(3) - INTERVAL 1 HOUR
         FROM (SELECT 'odd' tag UNION ALL SELECT 'fine') tags"
    for column in 'attempt = 4294967295' 'attempt = 0, version = 18446744073709551615'; do
        sql "UPDATE dq_task SET $column WHERE tag = 'odd'"
        for only in '' '--tag odd'; do
            top_start 120 24 $only
            sees '^odd  *0  *1  *1h .*a task is refused: see dq why'
            screen | refute grep '^fine.*refused'
            keys q
            sees '^ended 0'
        done
        [[ $(dq why -t odd) == *'no dqd claims it: its version or attempt is too large'* ]]
    done
}

@test 'keys sort, filter and choose, and q leaves the terminal as it was' {
    fill
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT 'many', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM $(numbers 30)"
    top_start 120 24
    sees 'by late'
    tags_are() { [ "$(screen | grep -oE '^(slow.export|many|later)' | xargs)" = "$1" ]; }
    wait_until tags_are 'slow.export many later'
    keys s
    sees 'by due'
    wait_until tags_are 'many slow.export later'
    asks() # asks TAG: the chosen one is the one that would be paused
    {
        keys p
        sees "pause $1 on .*\? \[y/N\]"
        wait_until given_up # an earlier question may still be there, and what is typed before a question does not count
    }
    given_up() { keys Escape; shows 'q quit'; }
    asks many
    keys Down
    asks slow.export
    keys Up
    asks many
    keys / later Enter
    wait_until hides '^slow.export'
    sees '^later'
    sees 'tag later'
    keys / Enter
    sees '^slow.export'
    keys / a,b Enter
    sees '^dq: top: --tag: a comma does not separate tags; write --tag a --tag b, or '
    keys x
    sees '^slow.export'
    hides 'tag a,b'
    keys q
    sees '^ended 0'
    sees '^echo'
}

@test 'keys show why the first task of a tag waits, its errors, and how many tasks have failed; a lock is named' {
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT 'one,two', '', UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, UTC_TIMESTAMP(3) - INTERVAL 1 HOUR"
    id=$(sql 'SELECT id FROM dq_task')
    sql "INSERT INTO dq_task (tag, status, message_body, expected_time, create_time, finish_time, attempt, error_stack)
         SELECT 'one,two', 2, '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 1,
                'exit status 65: no such order' FROM $(numbers 7);
         INSERT INTO dq_attempt (task_id, version, attempt, start_time, finish_time, outcome, error_stack)
         SELECT id, 1, 1, UTC_TIMESTAMP(3), finish_time, 'exit', error_stack FROM dq_task WHERE status = 2"
    fake_dqd 'one?two'
    top_start 160 24
    sees ' handlers 0 of 32   failed 7   done/s '
    keys w
    sees "^task $id, one,two, pending, 1h"
    sees 'nothing holds it back'
    keys x
    sees 'q quit'
    keys e
    sees '^one,two .* no such order '
    keys x
    sees 'q quit'
    hides 'locked by'
    lock_task "$id"
    sees '^one,two .*  locked by another session$'
    new_account dq_doctor
    sql 'GRANT ALL ON dq.* TO dq_doctor@localhost; GRANT PROCESS ON *.* TO dq_doctor@localhost'
    own_ini 's/^user = .*/user = dq_doctor/'
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini top_start 160 24 9>&- # which lock_release closes
    sees '^one,two .*  locked by connection [0-9]+, root@localhost, open for '
    lock_release
    wait_until hides 'locked by'
    keys q
    sees '^ended 0'
}

@test 'a table that another session has locked costs a look at ten late tags a few seconds, not each of them 20' {
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT CONCAT('tag', seq), '', UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, UTC_TIMESTAMP(3) - INTERVAL 1 HOUR
         FROM $(numbers 10)"
    fake_dqd 'tag*'
    mkfifo "$BATS_TEST_TMPDIR/lock"
    mariadb --no-defaults --unbuffered --socket="$(readlink -f "$DQ_SANDBOX/server")/mysql.sock" --user=root \
        --database=dq --skip-column-names <"$BATS_TEST_TMPDIR/lock" >"$BATS_TEST_TMPDIR/locked" 3>&- &
    exec 9>"$BATS_TEST_TMPDIR/lock"
    echo 'LOCK TABLES dq_task READ; SELECT "locked";' >&9
    wait_until grep -q locked "$BATS_TEST_TMPDIR/locked"
    run timeout 1m "$DQ_BIN/dq" stats --html "$BATS_TEST_TMPDIR/page.html" 9>&-
    exec 9>&-
    wait
    echo "$output"
    [ "$status" -eq 0 ]
    grep -q 'locked by another session' "$BATS_TEST_TMPDIR/page.html"
}

@test 'an act asks first, and is that of the command' {
    fill
    top_start 120 24 --tag slow.export
    keys p
    sees 'pause slow.export on localhost/dq\? \[y/N\]'
    keys y # that is all
    sees 'any key: back to dq top'
    keys x
    sees 'paused until resumed'
    keys r
    sees 'resume slow.export on localhost/dq\? \[y/N\]'
    keys Escape
    sees 'q quit'
    [ "$(sql 'SELECT COUNT(*) FROM dq_limit WHERE paused_until IS NOT NULL')" -eq 1 ]
    keys c
    sees 'cancel 25 tasks'
    keys y
    sees '25 tasks cancelled'
    keys x
    sees '^slow.export  *0  *0'
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 4')" -eq 25 ]
    keys q
    sees '^ended 0'
}

@test 'an act on a tag with one task asks, too' {
    dq -q add one --in 1h
    top_start 120 24
    keys c
    sees 'cancel 1 task \(one\) on localhost/dq\? \[y/N\]'
    keys Escape
    sees 'dq: cancel: nothing was changed'
    [ "$(sql 'SELECT status FROM dq_task')" -eq 0 ]
    sql 'UPDATE dq_task SET status = 2'
    keys x
    sees 'q quit'
    keys t
    sees 'retry 1 task \(one\) on localhost/dq\? \[y/N\]'
    keys y
    sees '1 task retried'
    [ "$(sql 'SELECT status FROM dq_task')" -eq 0 ]
    keys x
    sees 'q quit'
    keys q
    sees '^ended 0'
}

@test 'an interrupt of an act ends the act, and the tag in a question is inert' {
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT 'one\ntwo', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM $(numbers 2)"
    top_start 100 24
    keys p
    sees 'pause one\\ntwo on localhost/dq\? \[y/N\]'
    keys n
    sees 'q quit'
    keys c
    sees 'cancel 2 tasks'
    keys C-c
    back() { keys C-d; shows 'q quit'; } # also the end of the input brings back, and again
    for _ in 1 2; do
        sees 'back to dq top'
        wait_until back
        keys Enter
    done
    sees 'back to dq top'
    wait_until back
    keys q
    sees '^ended 0'
}

@test 'top waits for a database that is away, and an interrupt ends it cleanly' {
    fill
    top_start 100 24
    "$DQ_TOP/bin/dq-sandbox" stop >/dev/null 2>&1 3>&-
    sees 'database away, retrying'
    sees '^slow.export'
    "$DQ_TOP/bin/dq-sandbox" start >/dev/null 2>&1 3>&-
    wait_until hides 'database away'
    sees '^slow.export'
    keys C-c
    sees '^ended 0'
    sees '^echo'
}

@test 'top shows what runs, and needs a terminal' {
    echo 'handlers: {work: {run: "sleep 1000", max_running: 2}}' | write_handlers
    for _ in 1 2 3 4 5; do dq -q add work >/dev/null; done
    DQ_DQD_DRAIN_TIMEOUT=0s dqd_start --resident
    top_start 100 24
    sees '^work  *2  *3 .* max_running 2 is full'
    sees '^dqd 1 of 1 alive   handlers 2 of '
    for elsewhere in '</dev/null' '>/dev/null'; do
        rc=0
        "$DQ_TOP/test/lib/terminal" 80 bash -c "exec '$DQ_BIN/dq' top $elsewhere" </dev/null \
            >"$BATS_TEST_TMPDIR/out" || rc=$?
        [ "$rc" -eq 64 ]
        grep -q 'must be a terminal; dq tags and dq stats show the same numbers' "$BATS_TEST_TMPDIR/out"
    done
    for term in dumb ''; do
        rc=0
        echo clean | TERM=$term "$DQ_TOP/test/lib/terminal" 80 "$DQ_BIN/dq" top >"$BATS_TEST_TMPDIR/out" || rc=$?
        [ "$rc" -eq 64 ]
        grep -q "TERM = ${term:-(not set)} is not a terminal whose screen can be redrawn; dq tags and dq stats show" \
            "$BATS_TEST_TMPDIR/out"
    done
}

# left_clean NAME SCRIPT-LINE...: a top that ends so leaves the terminal as it was, and the screen to the shell.
left_clean()
{
    rc=0
    printf '%s\n' clean 'wait dqd 0 of' "$@" |
        TERM=xterm "$DQ_TOP/test/lib/terminal" 100x24 "$DQ_BIN/dq" top >"$BATS_TEST_TMPDIR/seen" || rc=$?
    python3 - "$BATS_TEST_TMPDIR/seen" <<'END'
import sys
shown = open(sys.argv[1], "rb").read()
assert 0 <= shown.rfind(b"\x1b[?1049h") < shown.rfind(b"\x1b[?1049l"), shown[-200:]
END
}

@test 'a signal ends top, and the terminal is left as it was, even if the database does not answer' {
    left_clean 'signal INT'
    [ "$rc" -eq 0 ]
    # An answer that does not come: another session has locked the table.
    local client lock=$BATS_TEST_TMPDIR/lock
    client="mariadb --no-defaults --user=root --database=dq --socket=$(readlink -f "$DQ_SANDBOX/server")/mysql.sock"
    mkfifo "$lock"
    $client <"$lock" 3>&- &
    exec 9>"$lock"
    # the look of top that has begun to wait
    waits="SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'dq' AND state LIKE 'Waiting for table%'"
    waits="until [ \$($client --skip-column-names --execute=\"$waits\") = 1 ]; do sleep 0.05; done"
    for name in TERM HUP QUIT INT; do
        left_clean "run echo 'LOCK TABLES dq_task WRITE;' >$lock" "run $waits" "signal $name"
        echo 'UNLOCK TABLES;' >&9
        [ "$rc" -eq 0 ] || [ "$name" != INT ]
    done
    exec 9>&-
    wait
}
