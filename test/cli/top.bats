# dq top, in a real terminal (tmux) of several sizes.

load ../lib/sandbox

setup()
{
    sandbox_clear
    TMUX_SOCKET=$BATS_TEST_TMPDIR/tmux
}

teardown()
{
    terminal kill-server 2>/dev/null || true
    dqd_reap
}

terminal() { tmux -f /dev/null -S "$TMUX_SOCKET" "$@" 3>&-; }

# top_start COLUMNS ROWS ARG...: the shell that runs it prints its exit status
top_start()
{
    local columns=$1 rows=$2
    shift 2
    terminal new-session -d -x "$columns" -y "$rows" \
        "LC_ALL=C.UTF-8 '$DQ_BIN/dq' top $*; echo \"ended \$?\"; stty -a | grep -ow -- '-*echo'; exec cat"
    wait_until shows '^dqd [0-9]'
}

screen() { terminal capture-pane -p; }
shows() { screen | grep -q -- "$1"; }
hides() { ! shows "$1"; }
keys() { terminal send-keys "$@"; }

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

@test 'top shows tags, why they wait, and fits 80, 120 and 200 columns and a small window' {
    fill
    for columns in 40 80 120 200; do
        top_start "$columns" 24
        screen
        shows '^TAG  *RUN  *DUE  *LATE'
        shows '^slow.ex.*  *0  *25  *1h'
        [ "$columns" -lt 80 ] || shows 'no dqd is'
        [ "$columns" -lt 80 ] || shows "/dq  [0-9:]*\$"
        [ "$(screen | grep -c .)" -le 24 ]
        terminal kill-server
    done
    top_start 80 5
    shows '^slow.export'
    terminal resize-window -x 120 -y 30
    wait_until shows '^later'
    terminal resize-window -x 30 -y 3
    wait_until hides '^later'
    keys q
    terminal resize-window -x 80 -y 24
    wait_until shows '^ended 0'
}

@test 'keys sort, filter and choose, and q leaves the terminal as it was' {
    fill
    top_start 120 24
    shows 'by late'
    keys s
    wait_until shows 'by due'
    keys / later Enter
    wait_until hides '^slow.export'
    shows '^later'
    shows 'tag later'
    keys / Enter
    wait_until shows '^slow.export'
    keys q
    wait_until shows '^ended 0'
    wait_until shows '^echo'
}

@test 'an act asks first, and is that of the command' {
    fill
    top_start 120 24 --tag slow.export
    keys p
    wait_until shows 'pause slow.export? \[y/N\]'
    keys n Enter
    wait_until shows 'q quit'
    [ "$(sql 'SELECT COUNT(*) FROM dq_tag')" -eq 0 ]
    keys p
    wait_until shows 'pause slow.export? \[y/N\]'
    keys y Enter
    wait_until shows 'back to dq top'
    keys Enter
    wait_until shows 'paused until resumed'
    keys c
    wait_until shows 'cancel 25 tasks'
    keys y Enter
    wait_until shows 'back to dq top'
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 4')" -eq 25 ]
    keys Enter
    wait_until shows '^slow.export  *0  *0'
    keys q
    wait_until shows '^ended 0'
}

@test 'top waits for a database that is away, and an interrupt ends it cleanly' {
    fill
    top_start 100 24
    "$DQ_TOP/bin/dq-sandbox" stop >/dev/null 2>&1 3>&-
    wait_until shows 'database away, retrying'
    shows '^slow.export'
    "$DQ_TOP/bin/dq-sandbox" start >/dev/null 2>&1 3>&-
    wait_until hides 'database away'
    shows '^slow.export'
    keys C-c
    wait_until shows '^ended 0'
    wait_until shows '^echo'
}

@test 'top shows what runs, and needs a terminal' {
    echo 'handlers: {work: {run: "sleep 60", max_running: 2}}' | write_handlers
    for _ in 1 2 3 4 5; do dq -q add work >/dev/null; done
    dqd_start --resident
    top_start 100 24
    wait_until shows '^work  *2  *3 .* max_running 2 is full'
    wait_until shows '^dqd 1 of 1 alive   handlers 2 of '
    rc=0
    dq top </dev/null >"$BATS_TEST_TMPDIR/out" 2>&1 || rc=$?
    [ "$rc" -eq 64 ]
    grep -q 'must be a terminal' "$BATS_TEST_TMPDIR/out"
}
