#!/usr/bin/env bats
# dqd as a service: on time, signals, reload, a database that goes away, owners that die.

load ../lib/sandbox
setup() { sandbox_clear; }

logged() { grep -q "$1" "$DQD_LOG"; }
# begun N: so many handlers run that write a line to the file. A task that is running for the database may not have been
# started yet; if dqd is told to stop then, it gives it back.
begun() { [ "$(cat "$BATS_TEST_TMPDIR/begun" 2>/dev/null | wc -l)" -eq "$1" ]; }
ini() { # ini KEY=VALUE...: a copy of the configuration with these in [dqd]
    local out=$BATS_TEST_TMPDIR/own.ini line
    sed "s|^handlers *=.*|handlers = $DQ_HANDLERS|" "$DQ_CONFIG" >"$out"
    for line; do sed -i "s/^\[dqd\]/&\n$line/" "$out"; done
    chmod 600 "$out"
    echo "$out"
}

# The bound is for the median, and grows with what a bare sleep and a start take here at the same time.
@test "tasks start when they are due: never before, and half of them within milliseconds" {
    printf '#!/bin/sh\necho "$(date +%%s%%3N) $1"\n' >"$BATS_TEST_TMPDIR/say"
    chmod +x "$BATS_TEST_TMPDIR/say"
    write_handlers <<END
handlers:
  t:
    run: $BATS_TEST_TMPDIR/say \$DQ_EXPECTED_TIME >>$BATS_TEST_TMPDIR/starts
END
    DQ_CONFIG=$(ini 'poll_interval = 20m' 'lease = 2h' 'heartbeat = 30m') # nothing else wakes dqd
    dqd_start --resident
    seq 21 | awk '{ print "{\"tag\":\"t\",\"in\":\"" 500 + 150 * $1 "ms\"}" }' | dq -q add --from -
    for _ in {1..21}; do
        due=$((${EPOCHREALTIME/[.,]/} + 150000))
        sleep 0.15 # the measure
        sh -c "$BATS_TEST_TMPDIR/say @${due%??????}.${due: -6}"
    done >"$BATS_TEST_TMPDIR/sleeps"
    wait_until is 'status = 1' 21
    dqd_stop
    late() { while read -r start due; do echo $((start - $(date -d "$due" +%s%3N))); done <"$1" | sort -n; }
    late "$BATS_TEST_TMPDIR/starts" >"$BATS_TEST_TMPDIR/late"
    late "$BATS_TEST_TMPDIR/sleeps" >"$BATS_TEST_TMPDIR/slept"
    paste "$BATS_TEST_TMPDIR/late" "$BATS_TEST_TMPDIR/slept"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/late")" -eq 21 ]
    [ "$(head -n 1 "$BATS_TEST_TMPDIR/late")" -ge 0 ]
    [ "$(sed -n 11p "$BATS_TEST_TMPDIR/late")" -le $((10 + 2 * $(sed -n 11p "$BATS_TEST_TMPDIR/slept"))) ]
}

@test "on TERM dqd claims nothing more, gives unstarted tasks back, lets the others finish, and exits with 0" {
    mkfifo "$BATS_TEST_TMPDIR/go"
    write_handlers <<END
handlers:
  t:
    run: echo >>$BATS_TEST_TMPDIR/begun; read x <$BATS_TEST_TMPDIR/go
    max_running: 2
END
    for i in 1 2 3 4 5; do dq add t; done
    dqd_start --resident
    wait_until begun 2
    kill "$DQD_PID"
    wait_until logged 'asked to stop'
    dq add t
    is 'status = 3' 2
    exec 9<>"$BATS_TEST_TMPDIR/go"
    printf 'a\nb\n' >&9
    wait "$DQD_PID"
    DQD_PID=''
    is 'status = 1' 2
    is 'status = 0 AND attempt = 0' 4
    [ "$(sql 'SELECT COUNT(*) FROM dq_poller')" = 0 ]
}

@test "a second TERM, or ^C, kills running handlers and gives their tasks back" {
    write_handlers <<END
handlers:
  t:
    run: echo >$BATS_TEST_TMPDIR/begun; exec sleep 1000
END
    dq add t
    dqd_start --resident
    wait_until begun 1
    kill -INT "$DQD_PID"
    wait_until logged 'asked to stop'
    kill "$DQD_PID"
    wait "$DQD_PID"
    DQD_PID=''
    is 'status = 0 AND attempt = 1' 1
    [ "$(sql 'SELECT outcome FROM dq_attempt')" = killed ]
}

@test "after drain_timeout, running handlers are killed, and with on_lease_expiry: fail their tasks fail" {
    write_handlers <<END
handlers:
  t: {run: "echo >>$BATS_TEST_TMPDIR/begun; exec sleep 1000", kill_grace: 100ms}
  pay: {run: "echo >>$BATS_TEST_TMPDIR/begun; exec sleep 1000", kill_grace: 100ms, on_lease_expiry: fail}
END
    dq add t
    dq add pay
    dqd_start --resident --config "$(ini 'drain_timeout = 200ms')"
    wait_until begun 2
    dqd_stop
    is "tag = 't' AND status = 0 AND attempt = 1" 1
    is "tag = 'pay' AND status = 2 AND attempt = 1" 1
}

@test "HUP loads a new handlers file, or keeps the old one if the new one is invalid" {
    write_handlers <<'END'
handlers:
  t:
    run: echo one
END
    dqd_start --resident
    dq add t
    wait_until is "output = 'one\n'" 1
    write_handlers <<'END'
handlers:
  t:
    rum: echo two
END
    kill -HUP "$DQD_PID"
    wait_until logged 'not reloaded'
    logged 'handlers.yaml:3:5: unknown key'
    dq add t
    wait_until is "output = 'one\n'" 2
    write_handlers <<'END'
handlers:
  t:
    run: echo three
END
    kill -HUP "$DQD_PID"
    wait_until logged 'handlers reloaded'
    dq add t
    wait_until is "output = 'three\n'" 1
    dqd_stop
}

@test "HUP while the handlers file changes uses the version that was read, and tasks are done" {
    local n changing
    write_handlers <<'END'
handlers:
  t: {run: ':'}
END
    dqd_start --resident
    wait_until logged connected # before it has begun it is bash, which a HUP ends
    python3 - "$DQ_HANDLERS" 3>&- <<'END' &
import os, sys
n = 0
while os.getppid() != 1 and not os.path.exists(sys.argv[1] + '.enough'):
    n += 1
    with open(sys.argv[1] + '.new', 'w') as f:
        f.write("handlers:\n  t: {run: ': %d'}\n" % n)
    os.replace(sys.argv[1] + '.new', sys.argv[1])
END
    changing=$!
    answers() { [ "$(grep -c 'handlers reloaded\|not reloaded' "$DQD_LOG")" -ge "$1" ]; }
    for n in $(seq 20); do
        kill -HUP "$DQD_PID"
        wait_until answers "$n"
        dq add -q t
    done
    : >"$DQ_HANDLERS.enough"
    wait "$changing"
    rm "$DQ_HANDLERS.enough"
    wait_until is 'status = 1 AND attempt = 1' 20
    [ "$(grep -c 'not reloaded' "$DQD_LOG")" = 0 ]
    # Many in a row: the last of them reads the file as it is then.
    write_handlers <<'END'
handlers:
  t: {run: echo last}
END
    for n in $(seq 50); do
        kill -HUP "$DQD_PID"
    done
    last_is_used()
    {
        dq add -q t
        [ "$(sql "SELECT COUNT(*) FROM dq_task WHERE output = 'last\\n'")" -ge 1 ]
    }
    wait_until last_is_used
    dqd_stop
}

@test "HUP applies the settings that can change at run time, and names one that cannot" {
    write_handlers <<'END'
handlers:
  t:
    run: 'true'
END
    dqd_start --resident --config "$(ini 'poll_interval = 100ms')"
    wait_until logged connected
    ini 'log_level = debug' 'slots = 3'
    kill -HUP "$DQD_PID"
    wait_until logged 'only after a restart" section=dqd key=slots'
    dq add t
    wait_until logged 'debug dqd msg="task done"'
    dqd_stop
}

@test "the handler of a cancelled task is killed, and of its result only the output is recorded" {
    write_handlers <<END
handlers:
  t:
    run: echo half done; echo \$\$ >$BATS_TEST_TMPDIR/pid; exec sleep 1000
END
    id=$(dq add t)
    dqd_start --resident
    wait_until test -s "$BATS_TEST_TMPDIR/pid"
    wait_until is 'status = 3' 1
    dq cancel "$id"
    gone() { ! kill -0 "$(cat "$BATS_TEST_TMPDIR/pid")" 2>/dev/null; }
    wait_until gone
    dqd_stop
    is 'status = 4' 1
    [ "$(sql 'SELECT GROUP_CONCAT(outcome) FROM dq_attempt')" = cancelled ]
    logged "attempt ended, but its task was cancelled or taken back"
    [ "$(sql 'SELECT output FROM dq_attempt')" = 'half done\n' ]
    [[ $(dq show "$id") == *$'output of the last attempt (10 bytes):\n  half done'* ]]
    refute logged 'attempt failed'
}

@test "a task that is cancelled while it runs, and retried, is not stopped with its former attempt" {
    write_handlers <<END
handlers:
  t:
    run: 'echo \$DQ_TOKEN >>$BATS_TEST_TMPDIR/begun; until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.1; done'
END
    # The loss of the first attempt is noticed a second after its start at the earliest.
    DQ_CONFIG=$(ini 'poll_interval = 2s' 'lease = 2h')
    id=$(dq add t)
    dqd_start --resident
    wait_until begun 1
    dq cancel "$id"
    dq retry "$id"
    wait_until begun 2
    wait_until logged 'attempt ended, but its task was cancelled'
    touch "$BATS_TEST_TMPDIR/go"
    wait_until is 'status = 1 AND attempt = 1' 1
    dqd_stop
    begun 2
    [ "$(sql 'SELECT GROUP_CONCAT(outcome) FROM dq_attempt')" = cancelled ]
}

@test "in a storm of failures the log has a line a second for each kind, and these add up" {
    write_handlers <<'END'
handlers:
  a: {run: 'echo "no account: $DQ_ID"; exit 65'}
  b: {run: 'cat; echo {\"id\":x}; exit 65', batch: 50, retry: never}
END
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT IF(seq % 2, 'a', 'b'), '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM $(numbers 600)"
    DQ_CONFIG=$(ini 'slots = 4')
    local began=$SECONDS
    dqd_start --resident
    wait_until is 'status = 2' 600
    dqd_stop
    grep -c 'attempt failed' "$DQD_LOG"
    [ "$(grep 'attempt failed' "$DQD_LOG" | sed 's/.* repeated=\([0-9]*\).*/\1/; /attempt failed/s/.*/0/' |
        awk '{ sum += 1 + $1 } END { print sum }')" -eq 600 ]
    [ "$(grep -c 'attempt failed' "$DQD_LOG")" -lt $((20 + 2 * (SECONDS - began))) ]
    grep -q 'info dqd msg="attempt failed" id=[0-9]* tag=a .*error="exit status 65: no account: ' "$DQD_LOG"
}

@test "leases are renewed, so a handler may run longer than a lease" {
    write_handlers <<END
handlers:
  t:
    run: until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.1; done
END
    dq add t
    dqd_start --resident --config "$(ini 'lease = 6s' 'heartbeat = 1s')"
    wait_until is 'status = 3 AND UTC_TIMESTAMP(3) > execution_time + INTERVAL 7 SECOND' 1
    touch "$BATS_TEST_TMPDIR/go"
    wait_until is 'status = 1' 1
    is 'attempt = 1' 1
    dqd_stop
}

# A dqd runs a task of tag t and is killed; another one is started.
kill_and_replace()
{
    dq add t
    dqd_start --resident --config "$(ini 'lease = 2s' 'heartbeat = 500ms')"
    wait_until is 'status = 3' 1
    kill -9 "$DQD_PID"
    wait "$DQD_PID" || true
    dqd_start --resident --config "$(ini 'lease = 2s' 'heartbeat = 500ms')"
}

@test "tasks of a dead dqd run on another one, and their history shows it" {
    write_handlers <<END
handlers:
  t:
    run: test \$DQ_ATTEMPT -gt 1 || exec sleep 1000
END
    kill_and_replace
    wait_until is 'status = 1' 1
    [ "$(sql 'SELECT outcome, attempt, host IS NOT NULL FROM dq_attempt')" = $'lease-expired\t1\t1' ]
    dqd_stop
}

@test "tasks of a dead dqd are taken back even behind very many whose tag has no handler" {
    write_handlers <<'END'
handlers:
  zzz:
    run: 'true'
END
    sql "INSERT INTO dq_task (tag, message_body, status, version, attempt, claim_token, lease_until, expected_time,
                              create_time, execution_time)
         SELECT IF(seq = 601, 'zzz', 'aaa'), '', 3, 1, 1, REPEAT('x', 16), UTC_TIMESTAMP(3) - INTERVAL 5 SECOND,
                UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM $(numbers 601) ORDER BY seq"
    dqd_start --resident
    wait_until is "tag = 'zzz' AND status = 1" 1
    is "tag = 'aaa' AND status = 3" 600
    dqd_stop
}

@test "with on_lease_expiry: fail, a task of a dead dqd fails" {
    write_handlers <<'END'
handlers:
  t:
    run: exec sleep 1000
    on_lease_expiry: fail
END
    kill_and_replace
    wait_until is 'status = 2' 1
    dqd_stop
}

# bats test_tags=bare
@test "if the runner dies, its handlers die with it, their tasks run again, and dqd continues" {
    write_handlers <<END
handlers:
  t:
    run: |
      [ \$DQ_ATTEMPT -gt 1 ] || { echo \$\$ >$BATS_TEST_TMPDIR/pid.1; exec sleep 1000; }
      echo "first: \$(ps -o stat= -p "\$(cat $BATS_TEST_TMPDIR/pid.1)")" >$BATS_TEST_TMPDIR/first
END
    dq add t
    dqd_start --resident
    wait_until test -s "$BATS_TEST_TMPDIR/pid.1"
    wait_until is 'status = 3' 1
    pkill -9 -P "$DQD_PID" dqd-runner
    wait_until is 'status = 1' 1
    [ "$(cat "/proc/$DQD_PID/comm")" = dqd ]
    [[ $(cat "$BATS_TEST_TMPDIR/first") == 'first: '@(|Z*) ]]
    [ "$(sql 'SELECT outcome FROM dq_attempt')" = runner-died ]
    dqd_stop
}

@test "a missing privilege is logged once, and again when it works; other work continues" {
    write_handlers <<'END'
handlers:
  a: {run: 'true'}
  b: {run: 'true', global_max_running: 3}
  c: {run: 'true'}
END
    new_account worker
    local rights="s/'dq_worker'@'%'/worker@localhost/; /^GRANT.* TO worker@/{/dq_limit/!p}"
    sql "$(sed -n "$rights" "$DQ_TOP/sql/grants.sql.example")
         GRANT SELECT ON dq.dq_limit TO worker@localhost"
    dq add b
    own_ini 's/^user *=.*/user = worker/'
    dqd_start --resident --log-level debug --config "$BATS_TEST_TMPDIR/own.ini"
    refused() { [ "$(grep 'the server refused' "$DQD_LOG" | grep -c " $1 dqd ")" -ge "$2" ]; }
    wait_until refused error 1
    for tag in a c a c; do dq add "$tag"; done
    wait_until is 'status = 1' 4
    wait_until refused debug 3
    [ "$(grep -c ' error dqd ' "$DQD_LOG")" = 1 ]
    logged ' error dqd .*INSERT.*denied.*dq_limit.*grant it'
    [ "$(grep -c 'works again' "$DQD_LOG")" = 0 ]
    sql 'GRANT INSERT, UPDATE ON dq.dq_limit TO worker@localhost'
    wait_until is 'status = 1' 5
    wait_until logged 'works again.*duty=claim'
    dqd_stop
}

@test "while the database is away handlers continue, and their results are recorded when it is back" {
    mkfifo "$BATS_TEST_TMPDIR/go"
    write_handlers <<END
handlers:
  t:
    run: read x <$BATS_TEST_TMPDIR/go; echo done
END
    dq add t
    dqd_start --resident
    wait_until is 'status = 3' 1
    "$DQ_TOP/bin/dq-sandbox" stop
    wait_until logged 'lost the database\|database is not available'
    exec 9<>"$BATS_TEST_TMPDIR/go"
    echo >&9
    "$DQ_TOP/bin/dq-sandbox" start 3>&-
    wait_until is 'status = 1' 1
    is 'attempt = 1' 1
    dqd_stop
}

@test "running dqds are in the list of pollers" {
    write_handlers <<'END'
handlers: {}
END
    dqd_start --resident
    local pid=$DQD_PID
    listed() { dq pollers -o tsv | grep -qw "$pid"; }
    wait_until listed
    dq pollers | grep -q resident
    dqd_stop
    refute listed
}

@test "several pollers share a tag and run every task once" {
    write_handlers <<END
handlers:
  t:
    run: echo \$DQ_ID >>$BATS_TEST_TMPDIR/ran
END
    for i in $(seq 600); do echo '{"tag":"t"}'; done | dq add --from -
    for i in 1 2 3 4; do "$DQ_BIN/dqd" --resident 3>&- & pids[$i]=$!; done
    all_are_up() { [ "$(sql 'SELECT COUNT(*) FROM dq_poller')" -eq 4 ]; } # and not still the shell that starts dqd
    wait_until is 'status = 1' 600
    wait_until all_are_up
    kill "${pids[@]}"
    wait "${pids[@]}"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/ran")" = 600 ]
    [ "$(sort -u "$BATS_TEST_TMPDIR/ran" | wc -l)" = 600 ]
}

slots_are() { [ "$(sql 'SELECT slots FROM dq_poller')" = "$1" ]; }

@test "--for exits by itself and lets running handlers finish, and meanwhile has no share of the work" {
    mkfifo "$BATS_TEST_TMPDIR/go"
    write_handlers <<END
handlers:
  t:
    run: read x <$BATS_TEST_TMPDIR/go
END
    dq add t
    dqd_start --for 3s --slots 7
    wait_until is 'status = 3' 1
    wait_until logged 'time is up'
    wait_until slots_are 0
    dq -q add t >"$BATS_TEST_TMPDIR/second"
    dq -o json why "$(cat "$BATS_TEST_TMPDIR/second")" | grep -F 'is ending'
    is 'status = 3' 1
    kill "$DQD_PID" # the first signal is not the second
    wait_until logged 'asked to stop; waiting for running handlers'
    echo >"$BATS_TEST_TMPDIR/go"
    wait "$DQD_PID"
    DQD_PID=''
    slots_are 7 # the next run is expected to have as many
    [ "$(sql 'SELECT GROUP_CONCAT(status, attempt ORDER BY id) FROM dq_task')" = 11,00 ]
}

@test "a body too long for a claim reaches its handler" {
    write_handlers <<END
handlers:
  t:
    run: sha256sum
END
    head -c 5000000 /dev/urandom >"$BATS_TEST_TMPDIR/big"
    for i in 1 2 3 4 5; do dq add t @"$BATS_TEST_TMPDIR/big"; done
    dqd_start --resident
    wait_until is 'status = 1' 5
    [ "$(sql 'SELECT DISTINCT LEFT(output, 64) FROM dq_task')" = "$(sha256sum <"$BATS_TEST_TMPDIR/big" | cut -c1-64)" ]
    dqd_stop
}

@test "dqd sends READY, STOPPING and with each heartbeat its status to systemd" {
    write_handlers <<'END'
handlers:
  slow: {run: sleep 1000, max_running: 1}
  missing: {run: /no/such/program}
END
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT 'slow', '', UTC_TIMESTAMP(3) - INTERVAL 29 MINUTE, UTC_TIMESTAMP(3) FROM $(numbers 3);
         INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         VALUES ('missing', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
    DQ_CONFIG=$(ini 'heartbeat = 100ms' 'slots = 8' 'drain_timeout = 0s')
    perl -MSocket -e '$| = 1; socket(S, PF_UNIX, SOCK_DGRAM, 0); bind(S, pack_sockaddr_un($ARGV[0])) or die;
        print "$text\n" while defined recv(S, $text, 4096, 0);' \
        "$BATS_TEST_TMPDIR/notify" >"$BATS_TEST_TMPDIR/said" 3>&- &
    listener=$!
    wait_until test -S "$BATS_TEST_TMPDIR/notify"
    NOTIFY_SOCKET=$BATS_TEST_TMPDIR/notify dqd_start --resident
    wait_until grep -q READY=1 "$BATS_TEST_TMPDIR/said"
    # the tag that cannot be started is late, too, after a second
    wait_until grep -qxE 'STATUS=1 of 8 busy, [12] tags? late \(slow 29m.*\), 1 tag rests' "$BATS_TEST_TMPDIR/said"
    dqd_stop
    wait_until grep -q STOPPING=1 "$BATS_TEST_TMPDIR/said"
    kill "$listener"
}

# bats test_tags=bare
@test 'a body for which there is not enough memory fails its own attempt' {
    echo 'handlers: {"*": {run: "wc -c", retry: []}}' | write_handlers
    DQ_CONFIG=$(ini)
    dqd_start --resident
    dq -q add short x
    wait_until is 'status = 1' 1
    kb=$(sed -n 's/^VmSize:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$DQD_PID/status")
    prlimit --pid "$DQD_PID" --as=$(((kb + 20000) * 1024)):
    head -c 15000000 /dev/zero | dq -q add long -
    dq -q add short x
    wait_until is 'status IN (1, 2)' 3
    [ "$(sql 'SELECT tag, status, attempt, error_stack FROM dq_task WHERE id = (SELECT MIN(id) + 1 FROM dq_task)')" = \
        $'long\t2\t1\tthere is not enough memory (ulimit -v, LimitAS= of systemd)' ]
    is 'status = 1' 2
    # lines of a batch, and bodies that become longer in them
    echo 'handlers: {"*": {run: cat >/dev/null, batch: 20, retry: []}}' | write_handlers
    kill -HUP "$DQD_PID"
    wait_until logged 'handlers reloaded'
    head -c 7000000 /dev/urandom >"$BATS_TEST_TMPDIR/body"
    for more in 32000 40000 48000; do
        prlimit --pid "$DQD_PID" --as=$(((kb + more) * 1024)):
        for i in 1 2 3 4; do dq -q add long @"$BATS_TEST_TMPDIR/body"; done
        wait_until is 'status IN (0, 3)' 0
    done
    dqd_stop
}
