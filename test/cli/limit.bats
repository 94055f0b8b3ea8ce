#!/usr/bin/env bats
# dq limit: what it stores, lists and refuses; pauses by a glob.

load ../lib/sandbox
setup() { sandbox_clear; cd "$BATS_TEST_TMPDIR"; }

refused()
{
    try dq limit "${@:3}"
    [ "$rc" -eq "$1" ]
    [[ $err == "dq: limit: "*"$2"* ]]
    [ -z "$(sql 'SELECT name FROM dq_limit')" ]
}

@test 'a limit is set, listed in every format, changed and cleared, and each act is recorded' {
    try dq limit stripe --running 4 --rate 100/m --burst 10 --reason 'the contract'
    [ "$rc" -eq 0 ]
    [[ $err == *'limit stripe is set from the next claim on'* ]]
    [[ $err == *'no handler of a live dqd serves a tag stripe or has limit: stripe'* ]]
    [[ $(dq limit) == *$'LIMIT'*'stripe'*' 4 '*'100/m'*' 10 '*'the contract'* ]]
    dq -q limit stripe --hours 'Mon-Fri 08:00-18:00 Europe/Berlin' --hours 'Sat 10:00-12:00 Europe/Berlin'
    json=$(dq limit stripe -o json)
    [[ $json == '[{"limit":"stripe","running":4,"rate":"100/m","burst":10,"hours":"Mon-Fri 08:00-18:00 '* ]]
    [[ $json == *' Europe/Berlin\nSat 10:00-12:00 Europe/Berlin",'* ]]
    dq -q limit stripe --clear --rate 5/s
    [ "$(sql 'SELECT running, rate, rate_period, burst, hours FROM dq_limit')" = $'NULL\t5\t1000\t1\tNULL' ]
    [ "$(sql "SELECT COUNT(*) FROM dq_event WHERE verb = 'limit'
              AND arguments LIKE 'stripe --running 4 --rate 100/m --burst 10%'")" -eq 1 ]
    dq -q limit stripe --clear
    [[ $(dq limit 2>&1) == *'there is no limit' ]]
    try dq limit stripe --clear
    [ "$rc" -eq 1 ]
    [[ $err == *'there is nothing to clear: stripe has no limit' ]]
}

@test 'what is no limit is refused in one line, and nothing is stored' {
    refused 65 'use dq pause' t --rate 0/m
    refused 65 '10/fortnight' t --rate 10/fortnight
    refused 65 'burst 0 is out of range: 1 to 1000000' t --rate 10/m --burst 0
    refused 64 '--burst needs --rate' t --burst 3
    refused 65 '25:00' t --hours '25:00-26:00'
    refused 65 'Europe/Berlin' t --hours '08:00-18:00 Europe/Berlim'
    refused 65 '' t --hours '08:00-08:00'
    refused 64 'a limit has one name' 'mail.*' --running 1
    refused 64 'missing argument' --running 1
    refused 64 '--reason needs something to set' t --reason why
    refused 65 'white space' 'a b' --running 1
    refused 1 'there is no limit of the name t' t
}

@test 'a live dqd that is too old for limits is named, and nothing is changed' {
    fake_dqd t
    sql 'UPDATE dq_poller SET knows = 1'
    try dq limit t --running 1
    [ "$rc" -eq 78 ]
    [ -z "$(sql 'SELECT name FROM dq_limit')" ]
}

@test 'pauses are listed, too; resume ends a hold and names what still holds the tag' {
    dq -q pause 'mail.*' --reason moving
    [[ $(dq limit) == *'mail.*'*'paused until resumed: moving'* ]]
    sql "INSERT INTO dq_limit (name, held_until, hold_reason)
         VALUES ('mail.a', UTC_TIMESTAMP(3) + INTERVAL 1 HOUR, 'HTTP 429')"
    [[ $(dq limit mail.a) == *'held for 59m'*': HTTP 429'* ]]
    try dq resume mail.a
    [[ $err == *'mail.a is resumed'*'mail.*'* ]]
    [[ $(dq limit) != *HTTP* ]]
}

# CALL dq_limit_set, which is refused with that text; nothing is stored.
refused_sql()
{
    sql_refuses "$1" "CALL dq_limit_set($2)"
    [ -z "$(sql 'SELECT name FROM dq_limit')" ]
}

@test 'CALL dq_limit_set stores what dq limit stores, and leaves what is not named' {
    for rate in 100/m 5/s 1/10s 20/2d 3/500ms 7/h; do
        dq -q limit cli --rate $rate --burst 3 --running 4
        sql "CALL dq_limit_set('sql', '{\"rate\": \"$rate\", \"burst\": 3, \"running\": 4}')"
        [ "$(sql 'SELECT COUNT(DISTINCT running, rate, rate_period, burst) FROM dq_limit')" -eq 1 ]
    done
    dq -q limit sql --hours '08:00-18:00 UTC'
    sql "SET sql_mode = 'ANSI_QUOTES';
         CALL dq_limit_set('sql', '{\"running\": null, \"reason\": \"a \\\\\"b\\\\\"\"}')"
    [ "$(sql "SELECT running, rate, burst, hours, reason FROM dq_limit WHERE name = 'sql'")" = \
        $'NULL\t7\t3\t08:00-18:00 UTC\ta "b"' ]
    sql "CALL dq_limit_set('sql', '{\"rate\": null}')"
    [ "$(sql "SELECT rate, rate_period, burst FROM dq_limit WHERE name = 'sql'")" = $'NULL\tNULL\tNULL' ]
    dq events | grep -qE 'limit +sql .*CALL dq_limit_set \{"rate": null\}' || { dq events && false; }
}

@test 'a limit that is set anew heeds the starts that were reserved, and keeps its reason' {
    dq -q limit t --rate 1/h --reason contract
    sql "UPDATE dq_limit SET next_at = UTC_TIMESTAMP(6) + INTERVAL 25 MINUTE"
    at=$(sql 'SELECT next_at FROM dq_limit')
    dq -q limit t --clear --rate 2/h --reason 'new contract'
    sql "CALL dq_limit_set('t', '{\"rate\": \"4/h\", \"burst\": 2}')"
    [ "$(sql 'SELECT rate, next_at, reason FROM dq_limit')" = $'4\t'"$at"$'\tnew contract' ]
    # as soon as the new rate and what is reserved at most allow
    most='ROUND((6 * 3600 / %s + 2 - TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), next_at) / 1000000) / 20)'
    dq -q limit t --rate 18/h --burst 6
    [ "$(sql "SELECT ${most/\%s/18} FROM dq_limit")" -eq 0 ]
    sql "CALL dq_limit_set('t', '{\"rate\": \"36/h\", \"burst\": 6}')"
    [ "$(sql "SELECT ${most/\%s/36} FROM dq_limit")" -eq 0 ]
    sql "CALL dq_limit_set('t', '{\"rate\": null}')"
    [ "$(sql 'SELECT next_at FROM dq_limit')" = NULL ]
    dq -q limit t --rate 1/h
    [ "$(sql 'SELECT next_at FROM dq_limit')" = NULL ]
    dq -q limit t --clear --running 1
    [ "$(sql 'SELECT next_at, reason FROM dq_limit')" = $'NULL\tNULL' ]
}

@test 'CALL dq_limit_set refuses what is no limit in one line, and stores nothing' {
    refused_sql 'name: ' "'mail.*', '{\"running\": 1}'"
    refused_sql 'name: ' "NULL, '{\"running\": 1}'"
    for bad in NULL "'x'" "'[1]'" "'{\"hours\": \"08:00-18:00\"}'" "'7'"; do
        refused_sql 'options: a JSON object' "'t', $bad"
    done
    [ -z "$(sql "SHOW VARIABLES LIKE 'default_regex_flags'")" ] || # MySQL reads the escape
        refused_sql 'options: a JSON object' "'t', '{\"run\\\\u006eing\": 1}'"
    for bad in 0 -1 1.5 '"2"' 4294967296 true; do
        refused_sql 'options: running: ' "'t', '{\"running\": $bad}'"
    done
    for bad in '"0/m"' '"10/fortnight"' '"1000001/s"' '"1/32d"' '"/s"' '"1/99999999999s"' 5 '"5/s "'; do
        refused_sql 'options: rate: ' "'t', '{\"rate\": $bad}'"
    done
    refused_sql 'options: burst: ' "'t', '{\"burst\": 2}'"
    for bad in 0 '"x"' 1000001 400; do
        refused_sql 'options: burst: ' "'t', '{\"rate\": \"1/d\", \"burst\": $bad}'"
    done
    refused_sql 'options: reason: ' "'t', CONCAT('{\"reason\": \"', REPEAT('x', 256), '\"}')"
    fake_dqd t
    sql 'UPDATE dq_poller SET knows = 1'
    refused_sql 'a live dqd is too old for limits' "'t', '{\"running\": 1}'"
}

@test 'the metrics of Prometheus tell what limits are and whether they let nothing start' {
    dq -q limit stripe --rate 5/s --running 4
    dq -q pause 'mail.*'
    sql "UPDATE dq_limit SET breaker = 2 WHERE name = 'stripe'"
    dq stats -o prometheus | grep '^dq_limit_' | sort >metrics
    printf '%s\n' 'dq_limit_breaker{limit="mail.*"} 0' 'dq_limit_breaker{limit="stripe"} 2' \
        'dq_limit_rate{limit="stripe"} 300' 'dq_limit_running_max{limit="stripe"} 4' \
        'dq_limit_stops{limit="mail.*"} 1' 'dq_limit_stops{limit="stripe"} 0' | diff - metrics
    # the breaker's rest is over: what is due waits for the task that tries, however long that takes
    dq -q add stripe
    dq stats -o prometheus | grep -qxF 'dq_limit_stops{limit="stripe"} 1'
}

@test 'what --export prints sets the same limits again' {
    dq -q limit stripe --rate 3/500ms --burst 2 --reason "the \$contract's"
    dq -q limit mail --running 7 --hours 'Mon-Fri 08:00-18:00 Europe/Berlin' --hours '22:00-06:00 UTC'
    dq -q pause other
    all="SELECT name, running, rate, rate_period, burst, hours, reason FROM dq_limit ORDER BY name"
    before=$(sql "$all")
    dq limit --export >limits
    [ "$(wc -l <limits)" -eq 2 ]
    [ "$(dq limit mail --export)" = "$(head -n 1 limits)" ]
    sql 'DELETE FROM dq_limit; INSERT INTO dq_limit (name, running) VALUES ("stripe", 9), ("other", NULL)'
    PATH=$DQ_BIN:$PATH sh limits
    sql "$all" | diff <(echo "$before") -
    try dq limit --export --clear
    [ "$rc" -eq 64 ]
}

@test 'dq forecast names limits that are closed or held, and until when' {
    from=$(date -u -d '+2 hours' +%H:00)
    dq -q limit night --hours "$from-$(date -u -d '+3 hours' +%H:00) UTC"
    dq -q limit open --running 3
    sql "UPDATE dq_limit SET held_until = UTC_TIMESTAMP(3) + INTERVAL 90 SECOND, hold_reason = 'HTTP 429'
         WHERE name = 'open'"
    try dq forecast
    [[ $err == *"limit night: closed until "*" $from "*": what is due before starts then"* ]]
    [[ $err == *"limit open: held for 1m"*": HTTP 429: what is due before starts then"* ]]
    sql 'DELETE FROM dq_limit'
    try dq forecast
    [ -z "$err" ]
}

@test 'check tells of a breaker while its limit rests, or tasks wait for the one that tries, which are not late' {
    fake_dqd t
    dq -q add t --in 1h
    dq -q limit t --running 9
    rests() { sql "UPDATE dq_limit SET breaker = 1, held_until = UTC_TIMESTAMP(3) + INTERVAL $1 SECOND"; }
    warns() { try dq check --max-late 1s; [[ $out == *"WARNING"*"limit t: $1"* ]]; }
    rests 3600
    warns 'resting for '
    rests -60
    dq check --max-late 1s
    [[ $(dq limit) == *' one task tries whether the others may follow '* ]]
    sql 'UPDATE dq_task SET expected_time = UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, create_time = expected_time'
    warns 'one task tries whether the others may follow'
}
