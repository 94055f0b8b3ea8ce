#!/usr/bin/env bats
# dq quiet: a dqd claims nothing, finishes what runs, and stays so when it is restarted.

load ../lib/sandbox

setup() { sandbox_clear; }

begin() { dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"; }
host() { sql 'SELECT MAX(host) FROM dq_poller'; }
logged() { [ "$(grep -c "$1" "$DQD_LOG")" -ge "${2:-1}" ]; }

@test 'a quiet dqd finishes what runs and claims nothing, also after a restart, until dq unquiet' {
    write_handlers <<ENDH
handlers:
  t: {run: 'until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.05; done'}
ENDH
    own_ini 's|^\[dqd\]|&\nheartbeat = 100ms|'
    try dq quiet web1
    [ "$rc" -eq 1 ]
    [[ $err == 'dq: quiet: no dqd of web1 is known'* ]]
    begin
    first=$(dq -q add t)
    wait_until is "id = $first AND status = 3" 1
    host=$(host)
    try dq quiet "$host"
    [ "$rc" -eq 0 ]
    [[ $err == "$host is quiet; 1 handler continues. To end it: dq unquiet $host" ]]
    logged 'this dqd is quiet'
    next=$(dq -q add t)
    touch "$BATS_TEST_TMPDIR/go"
    wait_until is "id = $first AND status = 1" 1
    [[ $(dq pollers) == *' quiet' ]]
    [[ $(dq pollers -o ndjson) == *'"quiet":true}' ]]
    [[ $(dq why "$next") == *"$host/"*' is quiet'* ]]
    [[ $(dq why "$next" -o json) == *'"quiet"'* ]]
    [[ $(dq tags -o ndjson) != *dqd* ]]
    try dq check
    [ "$rc" -eq 1 ]
    [[ $out == 'WARNING: t has due tasks, and every dqd that serves it is quiet: see dq unquiet'* ]]
    fake_dqd t
    for other in 0 zz; do # before and behind this host
        sql "UPDATE dq_poller SET host = '$other' WHERE token = REPEAT('f', 16)"
        try dq check
        [[ $out != *quiet* ]]
    done
    sql "DELETE FROM dq_poller WHERE host = 'zz'"
    dqd_stop
    begin
    wait_until logged 'this dqd is quiet'
    dqd --once --config "$BATS_TEST_TMPDIR/own.ini" 3>&-
    is "id = $next AND status = 0" 1
    [ "$(sql "SELECT GROUP_CONCAT(verb) FROM dq_event WHERE tag = 'dqd $host'")" = quiet ]
    dq unquiet "$host"
    wait_until is "id = $next AND status = 1" 1
    try dq unquiet "$host"
    [ "$rc" -eq 1 ]
    [[ $err == "dq: unquiet: $host is not quiet" ]]
    dqd_stop
}

@test 'quiet names one dqd by its process id, and ends by itself after --for' {
    write_handlers <<<'handlers: {t: {run: "true"}}'
    own_ini 's|^\[dqd\]|&\nheartbeat = 100ms|'
    begin
    seen() { [ -n "$(host | grep -v NULL)" ]; }
    wait_until seen
    try dq quiet "$(host):1"
    [ "$rc" -eq 1 ]
    try dq quiet "$(host):$DQD_PID" --for 2s
    [[ $rc$err == 0*' is quiet; '* || $rc$err == 1*' is no longer quiet: '* ]] # on a slow machine
    wait_until logged 'this dqd is quiet'
    dq add t
    wait_until is 'status = 1' 1
    logged 'this dqd claims tasks again'
    dqd_stop
}

@test 'a quiet dqd gives back what it has claimed and not started, and counts it as running until then' {
    mkfifo "$BATS_TEST_TMPDIR/boot"
    cat >"$BATS_TEST_TMPDIR/kept" <<ENDH
#!/bin/sh
touch $BATS_TEST_TMPDIR/boots
read -r line <$BATS_TEST_TMPDIR/boot
echo '{"ready":true}' >&\$DQ_REPLY_FD
while read -r line; do touch $BATS_TEST_TMPDIR/began; done
ENDH
    chmod +x "$BATS_TEST_TMPDIR/kept"
    write_handlers <<ENDH
handlers:
  k: {run: [$BATS_TEST_TMPDIR/kept], keep: 1}
ENDH
    own_ini 's|^\[dqd\]|&\nheartbeat = 1s|'
    begin
    dq add k
    wait_until test -e "$BATS_TEST_TMPDIR/boots"
    try dq quiet "$(host)"
    [ "$rc" -eq 0 ]
    logged 'this dqd is quiet'
    none() { [ "$(sql "SELECT SUM(running) FROM dq_poller")" = 0 ]; }
    wait_until none
    is 'status = 0 AND attempt = 0' 1
    echo 1<>"$BATS_TEST_TMPDIR/boot" # does not block if the process has ended
    refute test -e "$BATS_TEST_TMPDIR/began"
    dqd_stop
}

@test 'dq quiet says at a terminal what it waits for, and stops waiting for a dqd that is not alive' {
    fake_dqd t
    sql "UPDATE dq_poller SET last_seen = last_seen - INTERVAL 1 SECOND"
    local gone="UPDATE dq.dq_poller SET last_seen = last_seen - INTERVAL 2 HOUR"
    "$DQ_TOP/test/lib/terminal" 120 "$DQ_BIN/dq" quiet vm <<END >"$BATS_TEST_TMPDIR/seen"
wait waiting for dqds that have not heard of it
run '$DQ_TOP/bin/dq-sandbox' sql '$DQ_SANDBOX' -- -e '$gone'
END
    tail -n 1 "$BATS_TEST_TMPDIR/seen" | grep -q 'vm is quiet; 0 handlers continue'
}

@test 'dq quiet does not wait for a pass that has ended, and says if the time was over before all had heard of it' {
    fake_dqd t
    sql "UPDATE dq_poller SET last_seen = last_seen - INTERVAL 1 SECOND"
    dq quiet vm --for 100ms 2>"$BATS_TEST_TMPDIR/err" 3>&- & asked=$!
    over() { [ "$(sql "SELECT paused_until <= UTC_TIMESTAMP(3) FROM dq_limit WHERE name = 'dqd vm'")" = 1 ]; }
    wait_until over
    sql 'UPDATE dq_poller SET last_seen = UTC_TIMESTAMP(3)'
    rc=0
    wait $asked || rc=$?
    [ "$rc" -eq 1 ]
    grep -q '^dq: quiet: vm is no longer quiet: the time' "$BATS_TEST_TMPDIR/err"

    sql "UPDATE dq_poller SET mode = 'once', last_seen = last_seen - INTERVAL 1 SECOND, stale_after = 0,
         next_pass = UTC_TIMESTAMP(3) + INTERVAL 1 DAY"
    try timeout 100 "$DQ_BIN/dq" quiet vm
    [ "$rc" -eq 0 ]
    [[ $err == 'vm is quiet; 0 handlers continue.'* ]]
    [[ $(dq pollers) == *' quiet' ]]
    id=$(dq -q add t 2>"$BATS_TEST_TMPDIR/err")
    [[ $(dq why "$id") == *'vm/1 is quiet'*'dq unquiet vm'* ]]
}
