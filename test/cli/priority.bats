#!/usr/bin/env bats
# Priorities as a user gives and sees them: in options, files and SQL, in what dq shows, in export and import.

load ../lib/sandbox
setup() { sandbox_clear; cd "$BATS_TEST_TMPDIR"; }

priorities() { sql 'SELECT tag, status, priority FROM dq_task ORDER BY id' | tr '\t\n' ' ;'; }

@test 'add, files and SQL give priorities; another word is refused, and nothing is stored' {
    dq -q add a --priority high
    dq -q add b --priority normal
    dq -q add c --priority low
    printf '{"tag":"%s","priority":%s}\n' d '"high"' e null f '"normal"' >n.ndjson
    printf 'tag\tpriority\ng\tlow\nh\t\n' >t.tsv
    printf 'tag,priority\ni,high\n' >c.csv
    for file in n.ndjson t.tsv c.csv; do dq -q add --from "$file"; done
    sql "$(dq add --sql j body --priority low)"
    sql "CALL dq_add_options('k', NULL, '', '{\"priority\": null}', @id)"
    [ "$(priorities)" = 'a 5 5;b 0 NULL;c 6 6;d 5 5;e 0 NULL;f 0 NULL;g 6 6;h 0 NULL;i 5 5;j 6 6;k 0 NULL;' ]
    is 1 11
    try dq add x --priority urgent
    [ "$rc" -eq 64 ]
    [[ $err == *'--priority: "urgent" is not one of '* ]]
    try dq add --from - <<<'{"tag":"x","priority":"urgent"}'
    [ "$rc" -eq 65 ]
    [[ $err == *'"priority" "urgent" is none of high, normal and low; nothing was added' ]]
    try sql "CALL dq_add_options('x', NULL, '', '{\"priority\": \"urgent\"}', @id)"
    [[ $err == *'dq: options: priority: high, normal or low' ]]
    is 1 11
}

@test 'pending tasks of each priority are listed, counted, late, forecast and checked as pending' {
    local priority number=0
    for priority in high normal low; do
        dq -q add mail --priority "$priority" --key "$priority"
        dq -q add mail --priority "$priority" --in 1h
    done
    [ "$(dq list -o tsv -c key,status,priority | tail -n +2 | sort | tr '\t\n' ',;')" = \
        ',pending,;,pending,high;,pending,low;high,pending,high;low,pending,low;normal,pending,;' ]
    [ "$(dq list --status pending -o id | wc -l)" -eq 6 ]
    [[ $(dq tags -o json) == *'"tag":"mail","pending":6,'*'"due":3,'* ]]
    dq stats -o prometheus | grep -qxF 'dq_tasks{tag="mail",status="pending"} 6'
    sql "UPDATE dq_task SET expected_time = expected_time - INTERVAL 1 HOUR, create_time = create_time - INTERVAL 1 HOUR
         WHERE task_key = 'low'"
    try dq check --max-late 30m
    [ "$rc" -eq 2 ]
    [[ $out == *mail* ]]
    [ "$(dq forecast -o json --for 2h | grep -o '"tasks":3' | wc -l)" -ge 1 ]
    [[ $(dq show "$(sql "SELECT id FROM dq_task WHERE task_key = 'low'")") == *$'\npriority      low\n'* ]]
    [[ $(dq show "$(sql "SELECT id FROM dq_task WHERE task_key = 'normal'")") != *priority* ]]
    [[ $(dq why "$(sql "SELECT id FROM dq_task WHERE task_key = 'low'")") == *'2 tasks of its tag come before it'* ]]
    [[ $(dq doctor) == *'as dq writes them'* ]]
}

@test 'a key is unique and can be cancelled and replaced, whatever the priority of its task' {
    dq -q add t one --key k --priority high
    [ "$(dq -q add t two --key k)" = "$(sql 'SELECT id FROM dq_task')" ]
    [ "$(priorities)" = 't 5 5;' ]
    try dq add t two --key k --key-conflict error
    [ "$rc" -eq 73 ] || [ "$rc" -eq 65 ]
    dq -q add t two --key k --key-conflict replace --priority low
    [ "$(priorities)" = 't 6 6;' ]
    sql "CALL dq_add_options('t', 'k', 'three', '{\"key_conflict\": \"replace\", \"priority\": \"high\"}', @id)"
    [ "$(priorities)" = 't 5 5;' ]
    sql "CALL dq_add_again('t', 'k', 'four', 0, @id)"
    [ "$(priorities)" = 't 0 NULL;' ]
    dq -q add t five --key k --key-conflict again --priority low
    [ "$(sql "CALL dq_cancel_key('t', 'k', @n); SELECT @n")" -eq 1 ]
    [ "$(priorities)" = 't 4 6;' ]
    dq -q retry 1 -y || dq -q retry "$(sql 'SELECT id FROM dq_task')" -y
    [ "$(priorities)" = 't 6 6;' ]
    dq -q reschedule "$(sql 'SELECT id FROM dq_task')" --in 1h -y
    dq -q run-now "$(sql 'SELECT id FROM dq_task')" -y
    [ "$(priorities)" = 't 6 6;' ]
    dq -q cancel --tag t -y
    [ "$(priorities)" = 't 4 6;' ]
}

@test 'export, import and the output of list keep priorities' {
    for priority in high normal low; do dq -q add t --priority "$priority"; done
    dq -q add done --priority high
    sql "UPDATE dq_task SET status = 1 WHERE tag = 'done'"
    before=$(priorities)
    dq -q export >all
    for format in ndjson tsv csv; do dq list -t t -o "$format" >"list.$format"; done
    sandbox_clear
    dq -q import all
    [ "$(priorities)" = "$before" ]
    for format in ndjson tsv csv; do
        sandbox_clear
        dq -q add --from "list.$format"
        [ "$(sql 'SELECT status FROM dq_task ORDER BY status' | tr '\n' ' ')" = '0 5 6 ' ]
    done
}

@test 'while a dqd lives that is too old, a priority is refused with its name, and nothing is stored' {
    fake_dqd '*'
    sql 'UPDATE dq_poller SET knows = 2'
    try dq add t --priority high
    [ "$rc" -eq 78 ]
    [[ $err == *vm* ]]
    try dq add --from - <<<'{"tag":"t","priority":"low"}'
    [ "$rc" -eq 78 ]
    try sql "CALL dq_add_options('t', NULL, '', '{\"priority\": \"high\"}', @id)"
    [[ $err == *'priority: a live dqd is too old for it: dq pollers lists them' ]]
    is 1 0
    dq -q add t --priority normal
    is 1 1
}
