#!/usr/bin/env bats
# The evening of a shop: three tags share a provider that allows 20 calls a second, asks to wait, goes away and comes
# back; urgent tasks come among ordinary ones; a printer works until a window closes.

load ../lib/sandbox
setup() { sandbox_clear; cd "$BATS_TEST_TMPDIR"; }
teardown()
{
    [ -z "${other_pid:-}" ] || kill "$other_pid"
    dqd_reap
}

# a call never finds it empty
mode() { echo "$1" >mode.new && mv mode.new mode; }
calls() { cat calls 2>/dev/null | wc -l; }
called() { [ "$(calls)" -ge "$1" ]; }
# why ID TEXT: dq why gives this reason
why() { [[ $(dq why "$1") == *"$2"* ]]; }
# merely_waits: dq check says nothing, although the tasks have been due for an hour
merely_waits() { try dq check --max-late 5s && [ "$rc $err" = '0 ' ] || { echo "$out" && false; }; }
# rests: it says that a breaker has opened, and nothing else
rests() { try dq check --max-late 5s && [[ $rc == 1 && $out == 'WARNING: limit shop: '* && $out != *'late, more'* ]]; }
# add N TAG PRIORITY
add()
{
    for ((i = 0; i < $1; i++)); do echo "{\"tag\":\"$2\",\"body\":\"$3\",\"priority\":\"$3\"}"; done |
        dq -q add --from - >/dev/null
}

@test 'an evening of the shop: every call is made once, urgent ones first, never over the rate, nothing after hours' {
    cat >call <<'END'
read -r body
mode=$(cat mode)
echo "$DQ_TAG $body $DQ_ID $(date +%s%3N) $mode" >>calls
case $mode in
busy) echo '{"result":"retry","hold":"3s","error":"HTTP 429"}' >&3 ;;
away) echo 'no route to the provider'; exit 1 ;;
esac
END
    provider="run: 'exec sh call', cwd: $BATS_TEST_TMPDIR, limit: shop, retry: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s]"
    write_handlers <<END
handlers:
  pay: {$provider, breaker: {failures: 5, rest: 4s}}
  refund: {$provider}
  ship: {$provider}
  print: {run: 'date +%s%3N >>$BATS_TEST_TMPDIR/printed'}
END
    own_ini 's/^\[dqd\]/&\nheartbeat = 2s/'
    export DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini
    dq -q limit shop --rate 20/s --burst 3
    mode open
    for tag in pay refund ship; do add 120 $tag normal; done
    last=$(sql "SELECT MAX(id) FROM dq_task WHERE tag = 'pay'")

    hours() { dq -q limit print --hours "$(date -u -d "@$(($1 - 7200))" +%H:%M)-$(date -u -d "@$1" +%H:%M) UTC"; }
    dq -q limit print --rate 5/s
    hours $(($(date +%s) + 7200))
    add 5000 print normal
    sql 'UPDATE dq_task SET expected_time = expected_time - INTERVAL 1 HOUR, create_time = expected_time;
         UPDATE dq_limit SET update_time = update_time - INTERVAL 1 HOUR'
    dqd_start --resident
    other_pid=$DQD_PID
    dqd_start --resident

    wait_until called 20
    wait_until why "$last" 'limit shop: the rate of 20/s is used up: the next start is in '
    wait_until merely_waits # a slow machine may not use the rate up at first
    add 2 print high
    add 4 pay high
    before=$(calls)
    # those that were reserved before; on a slow machine dqd reserves starts further ahead
    ahead=$(count 'status = 3 AND priority IS NULL')
    urgent() { [ "$(grep -c ' high ' calls)" -eq 4 ]; }
    wait_until urgent
    # and one in eight of the ordinary ones of its tag
    [ "$(tail -n +"$((before + 1))" calls | awk '$2 == "high" && ++n == 4 { exit } $1 == "pay" && $2 != "high"' |
        wc -l)" -le $((6 + ahead)) ]

    wait_until is "tag = 'print' AND priority = 5 AND status = 1" 2
    urgent=$(sql "SELECT MIN(create_time), MAX(execution_time) FROM dq_task WHERE tag = 'print' AND priority = 5")
    [ "$(count "tag = 'print' AND priority IS NULL
                AND execution_time BETWEEN '${urgent%$'\t'*}' AND '${urgent#*$'\t'}'")" -le $((6 + ahead)) ]

    mode busy
    wait_until why "$last" 'limit shop: held for '
    why "$last" ': HTTP 429'
    mode open
    wait_until merely_waits
    n=$(calls)
    wait_until called $((n + 20))

    mode away
    wait_until why "$last" 'limit shop: resting for '
    why "$last" 'attempts failed within 1m: exit status 1: no route to the provider'
    n=$(calls)
    rests
    twice() { [ "$(sql "SELECT breaker FROM dq_limit WHERE name = 'shop'")" -ge 2 ]; }
    wait_until twice
    [ "$(calls)" -le $((n + 6)) ] # but for those that ran, one has tried
    why "$last" ': the task that tried failed: '
    mode open
    wait_until is "tag <> 'print' AND status = 1" 364
    [ "$(awk '$5 == "open" { print $3 }' calls | sort | uniq -d)" = '' ]
    [ "$(awk '$5 == "open"' calls | wc -l)" -eq 364 ]
    # in any window, no more than burst + rate * t; a start may be as late as a process takes to begin
    sort -k 4n calls | awk '{ at[NR] = $4 } END {
        for (i = 1; i <= NR; i++) for (j = i + 4; j <= NR; j++)
            if (j - i + 1 > 3 + 1 + (at[j] - at[i] + 400) / 50) { print i, j, at[j] - at[i]; exit 1 } }'

    close=$((($(date +%s) + 5) / 60 * 60 + 60)) # hours end with a minute
    hours $close
    wait_until after_hours
    print=$(dq -q add print)
    wait_until why "$print" 'closed until '
    [ "$(sort -n printed | tail -n 1)" -lt $((close * 1000 + 2000)) ] # when its process began
    [ "$(wc -l <printed)" -gt 20 ]
    merely_waits
}
after_hours() { [ "$(date +%s)" -gt $((close + 3)) ]; }
