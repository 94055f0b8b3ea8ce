#!/usr/bin/env bats
# Limits with real dqds: how many tasks run, how fast they start, in which hours; holds and pauses.

load ../lib/sandbox
setup() { sandbox_clear; cd "$BATS_TEST_TMPDIR"; }

# tasks N TAG...: N of each
tasks()
{
    awk 'BEGIN { for (t = 2; t < ARGC; t++) for (i = 0; i < ARGV[1]; i++) print "{\"tag\":\"" ARGV[t] "\"}" }' "$@" |
        dq -q add --from - >/dev/null
}
started() { cat starts 2>/dev/null | wc -l; }
all_started() { [ "$(started)" -ge "$1" ]; }

# Two of them; the first one ends with the test, too.
dqds()
{
    dqd_start --resident
    other_pid=$DQD_PID
    dqd_start --resident
}
teardown()
{
    [ -z "${other_pid:-}" ] || kill "$other_pid"
    dqd_reap
}

# Two tags under one limit, whose starts are written down.
two_tags()
{
    write_handlers <<END
handlers:
  pay: {run: 'date +%s%N >>$BATS_TEST_TMPDIR/starts', limit: stripe}
  refund: {run: 'date +%s%N >>$BATS_TEST_TMPDIR/starts', limit: stripe}
  other: {run: ':'}
END
}

@test 'two tags and two dqds share a rate: 20 starts a second, 3 at once, in turns; other tags do not wait' {
    two_tags
    dq -q limit stripe --rate 20/s --burst 3
    tasks 12 pay refund
    dq -q add other
    dqds
    wait_until is 'status = 1 AND attempt = 1' 25
    # in any window, no more than burst + rate * t; a start may be as late as a process takes to begin
    sort -n starts | awk '{ at[NR] = $1 / 1e6 } END {
        for (i = 1; i <= NR; i++) for (j = i + 4; j <= NR; j++)
            if (j - i + 1 > 3 + 1 + (at[j] - at[i] + 300) / 50) { print i, j, at[j] - at[i]; exit 1 } }'
    # neither tag has waited for the end of the other, nor has a third one for that of both
    start_of() { echo "(SELECT $1(execution_time) FROM dq_task WHERE tag $2)"; }
    [ "$(count "tag = 'pay' AND execution_time > $(start_of MIN "= 'refund'")")" -gt 0 ]
    is "tag = 'other' AND execution_time < $(start_of MAX "<> 'other'")" 1
}

# Each limit has its dqd, which has made the last 40 of its starts.
one_each() { a=$(claimed_by pay) b=$(claimed_by mail); [[ $a && $b && $a != "$b" && $a$b != *$'\n'* ]]; }
claimed_by()
{
    sql "SELECT DISTINCT pid FROM
         (SELECT pid FROM dq_task WHERE tag = '$1' AND status = 1 ORDER BY execution_time DESC LIMIT 40) t"
}

@test 'the starts of a rate are the business of one dqd, whose rank is the hash of the name' {
    echo "handlers: {'*': {run: 'echo >>$BATS_TEST_TMPDIR/starts'}}" | write_handlers
    for name in pay mail; do dq -q limit "$name" --rate 20/s; done
    tasks 6000 pay mail
    dqds
    wait_until all_started 150
    wait_until one_each
}

@test 'two tags share how many run: never more than two at a time on two dqds' {
    write_handlers <<END
handlers:
  pay: {run: 'echo + >>$BATS_TEST_TMPDIR/j; sleep 0.1; echo - >>$BATS_TEST_TMPDIR/j', limit: stripe}
  refund: {run: 'echo + >>$BATS_TEST_TMPDIR/j; sleep 0.1; echo - >>$BATS_TEST_TMPDIR/j', limit: stripe}
END
    dq -q limit stripe --running 2
    tasks 6 pay refund
    dqds
    wait_until is "status = 1" 12
    [ "$(awk '/\+/ { n++ } /-/ { n-- } n > most { most = n } END { print most }' j)" -eq 2 ]
}

@test 'a tag that has the name of a limit is under it with the tags that name it' {
    write_handlers <<END
handlers:
  stripe: {run: ':'}
  refund: {run: 'until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.05; done', limit: stripe}
  other: {run: ':'}
END
    dq -q limit stripe --running 2
    dqd_start --resident
    tasks 2 refund
    wait_until is "tag = 'refund' AND status = 3" 2
    tasks 1 stripe
    tasks 1 other
    wait_until is "tag = 'other' AND status = 1" 1
    is "tag = 'stripe' AND attempt = 0" 1
    touch go
    wait_until is "status = 1" 4
}

@test 'outside its hours nothing starts, dq why says when it opens, and dq check does not ring' {
    two_tags
    # closed now, whatever the time is: open in an hour that begins in two
    from=$(date -u -d '+2 hours' +%H:00) to=$(date -u -d '+3 hours' +%H:00)
    dq -q limit stripe --hours "$from-$to UTC"
    id=$(dq -q add pay)
    dqd_start --resident
    dq -q add other
    wait_until is "tag = 'other' AND status = 1" 1
    [ "$(started)" -eq 0 ]
    [[ $(dq why "$id") == *"limit stripe: closed until "*" $from "* ]]
    dq check --max-late 1ms
    dq -q limit stripe --clear # on this host at once
    wait_until is "id = $id AND status = 1" 1
}

@test 'a heartbeat sees that another host has opened a limit, which nobody asks before' {
    two_tags
    printf '[dqd]\nheartbeat = 500ms\n' >>"$DQ_CONFIG"
    dq -q limit stripe --hours "$(date -u -d '+2 hours' +%H:00)-$(date -u -d '+3 hours' +%H:00) UTC"
    dqd_start --resident
    id=$(dq -q add pay)
    dq -q add other
    wait_until is "tag = 'other' AND status = 1" 1
    sql 'UPDATE dq_limit SET hours = NULL, version = version + 1'
    wait_limit=40 wait_until is "id = $id AND status = 1" 1 # a minute is the longest wait
}

@test 'a handler that is told to wait holds its limit for all tags, and uses no attempt' {
    write_handlers <<END
handlers:
  pay:
    limit: stripe
    run: |
      if [ ! -e $BATS_TEST_TMPDIR/told ]; then
          touch $BATS_TEST_TMPDIR/told
          echo '{"result":"retry","hold":"1h","error":"HTTP 429"}' >&3
      fi
  refund: {run: ':', limit: stripe}
END
    dqd_start --resident
    id=$(dq -q add pay)
    wait_until is "status = 0 AND attempt = 0 AND error_stack LIKE 'snoozed%HTTP 429'" 1
    id2=$(dq -q add refund)
    [[ $(dq why "$id2") == *'limit stripe: held for '*': HTTP 429'* ]]
    [[ $(dq limit) == *'stripe'*'held for '*': HTTP 429'* ]]
    is "status = 0" 2
    dq -q resume stripe
    wait_until is "status = 1 AND attempt = 1" 2
}

@test 'each task of a batch and each retry is a start; run-now does not pass by a rate, and a rehearsal is none' {
    write_handlers <<END
handlers:
  many: {run: 'cat >>$BATS_TEST_TMPDIR/got', batch: 10}
  again: {run: 'echo >>$BATS_TEST_TMPDIR/starts; false', retry: [1ms, 1ms, 1ms]}
  other: {run: ':'}
END
    dq -q limit many --rate 1/h --burst 3
    dq -q limit again --rate 1/h --burst 2
    tasks 5 many
    id=$(dq -q add again)
    dqd_start --resident
    wait_until is "tag = 'many' AND status = 1" 3
    wait_until is "tag = 'again' AND status = 0 AND attempt = 2" 1
    before=$(sql 'SELECT name, next_at FROM dq_limit ORDER BY name')
    dq -q run-now -t many --yes
    dq -q run-now "$id" --yes
    dq rehearse --tag again x || true
    [ "$(started)" -eq 3 ]
    dq -q add other
    wait_until is "tag = 'other' AND status = 1" 1
    [[ $(dq why "$id") == *'the rate of 1/h is used up'* ]]
    dqd_stop
    [ "$(wc -l <got) $(started)" = '3 3' ]
    [ "$(sql 'SELECT name, next_at FROM dq_limit ORDER BY name')" = "$before" ]
}

@test 'a hold without a reason is said as such' {
    write_handlers <<'END'
handlers:
  t: {run: 'echo "{\"result\":\"retry\",\"hold\":\"30s\"}" >&3'}
END
    dq -q add t
    dqd
    [ "$(sql 'SELECT error_stack FROM dq_task')" = 'snoozed for 30s' ]
    [ "$(sql 'SELECT hold_reason FROM dq_limit')" = NULL ]
}

# All rows of dq_limit, until descriptor 9 is closed.
lock_limits() { lock_rows dq_limit; }
# lock_rows TABLE [DESCRIPTOR]
lock_rows()
{
    local fd=${2:-9}
    mkfifo "lock.$fd"
    mariadb --no-defaults --unbuffered --user=root --database=dq \
        --socket="$(readlink -f "$DQ_SANDBOX/server")/mysql.sock" <"lock.$fd" >"locked.$fd" 3>&- 9>&- &
    lock_pid=$!
    eval "exec $fd>lock.$fd"
    echo 'START TRANSACTION; SELECT "locked" FROM '"$1"' FOR UPDATE;' >&"$fd"
    wait_until grep -q locked "locked.$fd"
}
unlock_limits()
{
    exec 9>&-
    wait "$lock_pid"
    jobs >/dev/null
}

@test 'while a reload is not recorded, others see the limits of the handlers before it' {
    write_handlers <<<'handlers: {pay: {limit: stripe, run: ":"}}'
    dq -q limit stripe --hours "$(date -u -d '+2 hours' +%H:00)-$(date -u -d '+3 hours' +%H:00) UTC"
    dq -q add pay
    dqd_start --resident
    named() { [ "$(sql 'SELECT COUNT(*) FROM dq_poller JOIN dq_handler USING (handlers)')" -eq 1 ]; }
    wait_until named
    lock_rows dq_handler
    write_handlers <<<'handlers: {pay: {limit: stripe, run: "true"}, other: {run: ":"}}'
    kill -HUP "$DQD_PID" 9>&-
    before=$(sql 'SELECT MAX(last_seen) FROM dq_poller')
    beats() { [[ $(sql 'SELECT MAX(last_seen) FROM dq_poller') > $before ]]; }
    wait_until grep -q 'handlers reloaded' "$DQD_LOG"
    wait_until beats
    dq check --max-late 1ms
    unlock_limits
}

@test 'a hold is recorded before the result that asks for it, when the row of its limit is no longer locked' {
    write_handlers <<END
handlers:
  t: {run: 'echo >>$BATS_TEST_TMPDIR/calls; echo "{\"result\":\"retry\",\"hold\":\"1h\",\"error\":\"429\"}" >&3'}
  other: {run: ':'}
END
    sql "INSERT INTO dq_limit (name) VALUES ('t')"
    dqd_start --resident
    lock_limits
    dq -q add t 9>&-
    wait_until test -s calls
    for i in 1 2 3; do
        dq -q add other 9>&-
        wait_until is "tag = 'other' AND status = 1" $i
    done
    is "tag = 't' AND status = 3" 1 # its result waits, or it would be called again and again
    unlock_limits
    wait_until held_for_429
    wait_until is "status = 0 AND attempt = 0 AND error_stack LIKE 'snoozed%'" 1
    [ "$(wc -l <calls)" -eq 1 ]
}
held_for_429() { [ "$(sql 'SELECT hold_reason FROM dq_limit')" = 429 ]; }

@test 'a limit whose row is locked keeps no hold of another one waiting' {
    write_handlers <<'END'
handlers:
  "?": {run: 'echo "{\"result\":\"retry\",\"hold\":\"1h\",\"after\":\"1h\",\"error\":\"429\"}" >&3'}
END
    sql "INSERT INTO dq_limit (name) VALUES ('a'), ('b')"
    dqd_start --resident
    lock_rows "dq_limit WHERE name = 'a'"
    local first=$lock_pid
    lock_rows "dq_limit WHERE name = 'b'" 8
    # the one that stays locked is tried first
    for tag in b a; do
        dq -q add $tag 8>&- 9>&-
        wait_until grep -q "task snoozed.* tag=$tag " "$DQD_LOG"
    done
    exec 8>&-
    wait "$lock_pid"
    held() { [ "$(sql 'SELECT GROUP_CONCAT(name) FROM dq_limit WHERE hold_reason = 429')" = "$1" ]; }
    wait_until held b
    wait_until is "tag = 'b' AND error_stack LIKE 'snoozed%'" 1
    is "tag = 'a' AND status = 3" 1
    exec 9>&-
    wait "$first"
    jobs >/dev/null
    wait_until held a,b
}

@test 'a hold that is no hold is a failed attempt that quotes it' {
    write_handlers <<'END'
handlers:
  t: {run: 'echo "{\"result\":\"retry\",\"hold\":\"400d\"}" >&3', retry: never}
END
    dq -q add t
    dqd
    [[ $(sql 'SELECT error_stack FROM dq_task') == *'"hold" goes from 1ms to 1d'* ]]
}

@test 'tags of a pattern that is paused start nothing, those that do not match start' {
    write_handlers <<<'handlers: {"mail.*": {run: ":"}, other: {run: ":"}}'
    dq -q pause 'mail.*'
    dqd_start --resident
    tasks 1 mail.a mail.b other
    wait_until is "tag = 'other' AND status = 1" 1
    is "tag LIKE 'mail.%' AND status = 0" 2
    dq -q resume 'mail.*'
    wait_until is "status = 1" 3
}

@test 'a tag without a limit is claimed without a statement more' {
    write_handlers <<<'handlers: {t: {run: ":"}}'
    dq -q limit another --rate 1/s
    dqd_start --resident
    dq -q add t
    wait_until is "status = 1" 1
    dq -q add t
    wait_until is "status = 1" 2
    # the row of a limit is locked, and so added, only for tags that have one
    [ "$(sql 'SELECT GROUP_CONCAT(name) FROM dq_limit')" = another ]
}

@test 'a pass obeys limits, too: it waits for starts of the next seconds, not for hours' {
    two_tags
    dq -q limit stripe --rate 1/s
    dq -q limit other --hours "$(date -u -d '+2 hours' +%H:00)-$(date -u -d '+3 hours' +%H:00) UTC"
    tasks 4 pay
    dq -q add other
    began=$(date +%s%N)
    dqd
    [ "$(started)" -eq 4 ]
    # from the beginning, because a slow machine starts one late and not the next
    sort -n starts | awk -v began="$began" '($1 - began) / 1e6 < 1000 * (NR - 1) - 10 { exit 1 }'
    is "tag = 'other' AND status = 0 AND attempt = 0" 1
    # a start is late from when the rate lets it be: the last one 3 s after the first
    [ "$(sql "SELECT MAX(late_max) FROM dq_minute WHERE tag = 'pay'")" -lt 3000 ]
}

@test 'a hold that cannot be recorded costs no result' {
    write_handlers <<END
handlers:
  pay: {limit: stripe, run: 'echo "{\\"result\\":\\"retry\\",\\"hold\\":\\"1h\\"}" >&3'}
  other: {run: ':'}
END
    sql "CREATE TRIGGER dq_refuses BEFORE INSERT ON dq_limit FOR EACH ROW
         SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'"
    dqd_start --resident
    dq -q add pay
    dq -q add other
    wait_until is "tag = 'other' AND status = 1" 1
    wait_until is "tag = 'pay' AND attempt = 0 AND error_stack LIKE 'snoozed%'" 1
    grep -q 'cannot hold a limit as a handler asked' "$DQD_LOG"
    sql 'DROP TRIGGER dq_refuses'
    dq -q pause pay # it would go on
}

@test 'a rate that somebody broke in the table stops its own tag, with the reason, and nothing else' {
    two_tags
    dq -q limit stripe --rate 20/s
    sql "UPDATE dq_limit SET rate_period = 0 WHERE name = 'stripe'"
    id=$(dq -q add pay)
    dqd_start --resident
    dq -q add other
    wait_until is "tag = 'other' AND status = 1" 1
    is "tag = 'pay' AND status = 0" 1
    [[ $(dq why "$id") == *'rate of 20 in 0 ms: counts go from 1 to 1000000, periods from 1 ms to 31 d'* ]]
    dq -q limit stripe --rate 20/s
    wait_until is "tag = 'pay' AND status = 1" 1
}

# Two tags of a provider that is away while there is a file `away`; heartbeats are half a second apart.
breaking()
{
    touch away
    write_handlers <<END
handlers:
  pay: {limit: shop, run: 'echo >>$BATS_TEST_TMPDIR/starts; [ ! -e $BATS_TEST_TMPDIR/away ]',
        retry: [1h], breaker: {failures: 3, rest: ${1:-1h}}}
  refund: {limit: shop, run: 'echo refund >>$BATS_TEST_TMPDIR/starts'}
  other: {run: ':'}
END
    grep -q '^heartbeat = 500ms' "$DQ_CONFIG" ||
        printf '[dqd]\nheartbeat = 500ms\n' >>"$DQ_CONFIG"
}
is_open() { [ "$(sql "SELECT breaker > 0 AND held_until > UTC_TIMESTAMP(3) FROM dq_limit WHERE name = 'shop'")" = 1 ]; }

@test 'a breaker opens once for all hosts, a task tries, and its failure doubles the rest' {
    breaking
    dqds
    tasks 3 pay
    wait_until is_open
    [ "$(sql "SELECT COUNT(*) FROM dq_event WHERE verb = 'breaker-open' AND tag = 'shop'")" -eq 1 ]
    [ "$(dq events --event breaker-open -o ndjson | wc -l)" -eq 1 ]
    id=$(dq -q add refund)
    [[ $(dq why "$id") == *'limit shop: resting for '*': 3 of 3 attempts failed within 1m: exit status 1'* ]]
    dq -q add other
    wait_until is "tag = 'other' AND status = 1" 1
    tasks 2 pay
    dq -q cancel -t refund --yes
    end_rest
    wait_until breaker_is 2
    # one task has tried; more, while the other dqd held the row of the limit, for 5 ms and then twice as long
    [ "$(started)" -le 6 ]
    [[ $(dq limit shop) == *'resting for '*': the task that tried failed: exit status 1'* ]]
    try dq check
    [[ $out == *'limit shop: resting for '* ]]
    rm away
    end_rest
    wait_until is "status = 1 AND tag = 'pay'" 1
    wait_until breaker_is 0
    [ "$(sql "SELECT COUNT(*) FROM dq_event WHERE verb = 'breaker-close' AND tag = 'shop'")" -eq 1 ]
}
end_rest() { sql "UPDATE dq_limit SET held_until = UTC_TIMESTAMP(3), version = version + 1 WHERE name = 'shop'"; }
breaker_is() { [ "$(sql "SELECT breaker FROM dq_limit WHERE name = 'shop'")" -eq "$1" ]; }

@test 'dq resume ends the rest of a breaker, and what failed before does not open it again' {
    breaking
    dqd_start --resident
    tasks 3 pay
    wait_until is_open
    tasks 2 refund
    dq -q resume shop
    wait_until is "tag = 'refund' AND status = 1" 2
    tasks 1 pay
    wait_until all_started 6
    wait_until sum_failed 4
    breaker_is 0
}
sum_failed() { [ "$(sql "SELECT SUM(retried) FROM dq_minute WHERE tag = 'pay'")" -eq "$1" ]; }

@test 'permanent failures and successes do not open a breaker' {
    breaking
    rm away
    write_handlers <<END
handlers:
  pay: {limit: shop, run: 'read -r n; exit \$n', retry: [1h], breaker: {failures: 3, rest: 1h}}
END
    for n in 64 64 64 64 0 0 0 0 1 1 1; do
        echo "{\"tag\":\"pay\",\"body\":\"$n\\n\"}"
    done | dq -q add --from - >/dev/null
    dqd
    [ "$(sql 'SELECT SUM(excused), SUM(failed), SUM(retried), SUM(done) FROM dq_minute')" = $'4\t4\t3\t4' ]
    [ -z "$(sql 'SELECT name FROM dq_limit')" ]
    # one more, and half of those that count have failed
    dq -q add pay 1
    dqd
    is_open # a pass judges, too
}

@test 'a process that ends with a batch is one failure for a breaker' {
    write_handlers <<END
handlers:
  pay: {limit: shop, batch: 50, retry: [1h], run: 'exit 1', breaker: {failures: 3, rest: 1h}}
END
    for failures in 1 2; do
        tasks 20 pay
        dqd
        [ "$(sql 'SELECT SUM(retried), SUM(failures) FROM dq_minute')" = "$((20 * failures))"$'\t'"$failures" ]
    done
    [ -z "$(sql 'SELECT name FROM dq_limit')" ]
    tasks 20 pay
    dqd
    is_open
}

@test 'a breaker opens if more tasks end with their batches than are done' {
    write_handlers <<END
handlers:
  pay: {limit: shop, batch: 20, retry: [1h], run: '[ ! -e $BATS_TEST_TMPDIR/away ]',
        breaker: {failures: 3, within: 1h, rest: 1h}}
END
    tasks 20 pay
    dqd
    is "status = 1" 20
    touch away
    for failures in 1 2 3; do
        [ -z "$(sql 'SELECT name FROM dq_limit')" ]
        tasks 20 pay
        sql 'UPDATE dq_task SET max_attempts = 1 WHERE status = 0 AND id % 2'
        dqd
    done
    is_open
    # each of the tasks counts, on its last attempt, too
    [ "$(sql "SELECT COUNT(*) FROM dq_limit WHERE hold_reason LIKE '60 of 80 attempts %'")" = 1 ]
}

@test 'tasks that a dead dqd has left do not open a breaker' {
    breaking
    tasks 2 refund
    sql "UPDATE dq_task SET status = 3, version = 1, attempt = 1, claim_token = REPEAT('f', 16), host = 'web9', pid = 1,
         execution_time = UTC_TIMESTAMP(3) - INTERVAL 2 MINUTE, lease_until = UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE"
    tasks 1 pay
    dqd
    is "tag = 'refund' AND status = 1" 2
    [ "$(sql 'SELECT SUM(retried), SUM(excused) FROM dq_minute')" = $'3\t2' ]
    [ -z "$(sql 'SELECT name FROM dq_limit')" ]
}

@test 'attempts that ended with their dqd, or with its runner, do not open a breaker' {
    breaking
    write_handlers <<END
handlers:
  pay: {limit: shop, run: 'echo >>$BATS_TEST_TMPDIR/starts; exec sleep 1000', breaker: {failures: 3, rest: 1h}}
END
    dqd_start --resident
    tasks 3 pay
    wait_until all_started 3
    pkill -9 -P "$DQD_PID" dqd-runner
    wait_until all_started 6
    kill "$DQD_PID"
    wait_until grep -q 'asked to stop' "$DQD_LOG"
    try dqd_stop
    is "status = 0 AND attempt = 2" 3
    [ "$(sql 'SELECT SUM(retried), SUM(excused) FROM dq_minute')" = $'6\t6' ]
    [ -z "$(sql 'SELECT name FROM dq_limit')" ]
}

@test 'a breaker whose limit is locked keeps no result and no other tag waiting' {
    breaking
    sql "INSERT INTO dq_limit (name) VALUES ('shop')"
    dqd_start --resident
    tasks 3 pay
    wait_until all_started 3
    lock_limits
    for n in 1 2 3; do
        dq -q add other 9>&-
        wait_until is "tag = 'other' AND status = 1" $n
    done
    before=$(sql 'SELECT MAX(last_seen) FROM dq_poller')
    beats() { [[ $(sql 'SELECT MAX(last_seen) FROM dq_poller') > $before ]]; }
    wait_until beats
    unlock_limits
    wait_until is_open
}

@test 'behind a rate that does not bind a backlog is late, behind one that does it is not' {
    write_handlers <<END
handlers:
  pay: {limit: stripe, max_running: 1, run: 'until [ -e $PWD/go ]; do sleep 0.05; done'}
END
    dq -q limit stripe --rate 600/m
    tasks 30 pay
    sql 'UPDATE dq_task SET expected_time = expected_time - INTERVAL 1 HOUR, create_time = expected_time;
         UPDATE dq_limit SET update_time = update_time - INTERVAL 1 HOUR'
    dqd_start --resident
    wait_until is 'status = 3' 1
    try dq check --max-late 1m
    [[ $out == *'pay is 1h'* ]] || { echo "$out" && false; }
    touch go
    write_handlers <<<"handlers: {pay: {limit: stripe, max_running: 8, run: ':'}}"
    kill -HUP "$DQD_PID"
    full() { [ "$(sql 'SELECT rate_full FROM dq_limit')" -eq 1 ]; }
    wait_until full
    dq check --max-late 1m
}
