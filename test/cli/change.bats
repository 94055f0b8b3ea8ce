# cancel, retry, reschedule, run-now, delete, purge: by id and by filter, dry runs, agreement, what is refused.

load ../lib/sandbox

setup()
{
    sandbox_clear
    exec </dev/null # no terminal that could be asked
}

# task STATUS [TAG [KEY]]: prints its id.
task()
{
    local id status
    id=$(dq -q add "${2:-t}" body --in 1h ${3:+--key "$3"})
    status=$(number "$1")
    [ "$1" = pending ] || sql "UPDATE dq_task SET status = $status, version = 1, attempt = 1,
        live = IF(task_key IS NULL OR $status <> 3, NULL, 1), claim_token = REPEAT('x', 16),
        lease_until = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR,
        finish_time = IF($status = 3, NULL, UTC_TIMESTAMP(3) - INTERVAL 1 HOUR) WHERE id = $id"
    echo "$id"
}

number()
{
    case $1 in
    pending) echo 0 ;;
    done) echo 1 ;;
    failed) echo 2 ;;
    running) echo 3 ;;
    cancelled) echo 4 ;;
    esac
}

status_of() { sql "SELECT status FROM dq_task WHERE id = $1"; }

@test 'each command changes only tasks in the states it applies to' {
    while read -r verb from to; do
        for state in pending done failed running cancelled; do
            id=$(task "$state")
            try dq $verb "$id"
            if [[ ,$from, == *,$state,* ]]; then
                [ "$rc" -eq 0 ]
                [[ $out == '1 task '* ]]
                [ "$(status_of "$id")" = "${to:+$(number "$to")}" ]
            else
                [ "$rc" -eq 1 ]
                [[ $err == "dq: ${verb%% *}: task $id is $state: only "*" tasks can be "* ]]
                [ "$(wc -l <"$BATS_TEST_TMPDIR/err")" -eq 1 ]
                [ "$(status_of "$id")" -eq "$(number "$state")" ]
            fi
        done
    done <<'END'
cancel pending,running cancelled
retry failed,cancelled,done pending
run-now pending pending
delete failed,cancelled,done
END
    id=$(task done)
    try dq reschedule "$id" --in 5m
    [ "$rc" -eq 1 ]
    [[ $err == *"task $id is done: only pending tasks can be rescheduled" ]]
}

@test 'each id that cannot be changed is reported, and the other tasks are changed' {
    a=$(task pending) b=$(task done) c=$(task pending)
    try dq cancel "$c" 999998 "$b" "$a" "$a" 999999
    [ "$rc" -eq 1 ]
    [ "$out" = '2 tasks cancelled' ]
    [ "$err" = "$(printf 'dq: cancel: task %s is done: only pending or running tasks can be cancelled\n%s\n%s' "$b" \
        'dq: cancel: task 999998 does not exist' 'dq: cancel: task 999999 does not exist')" ]
    try dq cancel "$a" -o json
    [ "$out" = '{"matched":0,"changed":0,"lost":0,"refused":1,"dry_run":false}' ]
    for id in x7 18446744073709551615 18446744073709551616; do
        try dq cancel "$id"
        [ "$rc" -eq 64 ]
    done
}

@test 'cancel prints how many tasks were running' {
    local one='its handler is killed, or goes on with the rest of its batch'
    local many='their handlers are killed, or go on with the rest of a batch'
    id=$(task running)
    try dq cancel "$id" --dry-run
    [ "${out%%$'\n'*}" = '1 task would be cancelled; it is running' ]
    try dq cancel "$id"
    [ "$out" = "1 task cancelled; it was running: $one" ]
    for state in running pending running pending pending; do task "$state" mail >/dev/null; done
    try dq cancel --tag mail -y --dry-run
    [ "${out%%$'\n'*}" = '5 tasks would be cancelled, 2 of them are running' ]
    try dq cancel --tag mail -y
    [ "$out" = "5 tasks cancelled, 2 of them were running: $many" ]
    a=$(task running) b=$(task pending)
    try dq cancel "$a" "$b"
    [ "$out" = "2 tasks cancelled, 1 of them was running: $one" ]
    try dq -q cancel "$(task running)"
    [ "$out" = '1 task cancelled' ]
    try dq cancel "$(task running)" -o json
    [ "$out" = '{"matched":1,"changed":1,"lost":0,"refused":0,"dry_run":false}' ]
}

@test 'a command accepts a thousand ids' {
    yes '{"tag":"x","in":"1h"}' | head -n 1200 | dq -q add --from - >/dev/null
    [ "$(dq list -o id | xargs "$DQ_BIN/dq" cancel)" = '1200 tasks cancelled' ]
}

@test 'standard input without ids names no task' {
    for state in pending running done failed; do task "$state" >/dev/null; done
    tasks() { sql 'SELECT id, status, version FROM dq_task ORDER BY id'; }
    before=$(tasks)
    for verb in cancel retry run-now 'reschedule --in 1h' delete show wait logs why rehearse; do
        for input in '' '\n\n'; do
            try dq $verb - < <(printf "$input")
            [ "$rc" -eq 1 ]
            [ "$err" = "dq: ${verb%% *}: no ids on standard input" ]
            [ -z "$out" ]
            [ "$(tasks)" = "$before" ]
        done
    done
}

@test 'ids separated by NUL bytes are an error, and no task is named' {
    for verb in cancel retry run-now 'reschedule --in 1h' delete show wait logs why rehearse; do
        for input in '1\0002\0' '1\n2\0003\n' '1\0' '\0'; do
            try dq $verb - < <(printf "$input")
            [ "$rc" -eq 65 ] || { echo "$verb, $input: $rc, $out"; return 1; }
            local why=' has a NUL byte; write one id per line, or use xargs -0'
            [[ $err == "dq: ${verb%% *}: standard input, line "?"$why" ]]
            [ -z "$out" ]
        done
    done
}

@test 'a filter with one match is applied at once, one with several asks for confirmation' {
    task pending mail >/dev/null
    try dq cancel --tag mail
    [ "$rc" -eq 0 ]
    [ "$out" = '1 task cancelled' ]
    task pending mail >/dev/null
    task pending mail.x >/dev/null
    try dq cancel --tag 'mail*'
    [ "$rc" -eq 64 ]
    [[ $err == 'dq: cancel: 2 tasks match; use -y to cancel them, or --dry-run to count them' ]]
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 0')" -eq 2 ]
    try dq cancel --tag 'mail*' --dry-run
    [ "${out%%$'\n'*}" = '2 tasks would be cancelled' ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 0')" -eq 2 ]
    try dq cancel --tag 'mail*' -y -o json
    [ "$out" = '{"matched":2,"changed":2,"lost":0,"refused":0,"dry_run":false}' ]
    try dq cancel --tag 'mail*' -y
    [ "$rc" -eq 1 ]
    [ "$err" = 'dq: cancel: no task matches' ]
}

@test 'confirmation is asked for on a terminal' {
    for i in 1 2 3; do task pending mail >/dev/null; done
    answer()
    {
        printf 'wait cancel 3 tasks (mail) on localhost/dq? [y/N]\ntype %s\n' "$1" |
            "$DQ_TOP/test/lib/terminal" 80 "$DQ_BIN/dq" cancel --tag mail
    }
    answer n || [ "$?" -eq 1 ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 0')" -eq 3 ]
    answer y
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 4')" -eq 3 ]
}

@test '--key selects within one tag or in all tags' {
    a=$(task pending mail k) b=$(task running sms k)
    try dq cancel --key k --tag mail
    [ "$rc" -eq 0 ]
    [ "$(status_of "$a")" -eq 4 ]
    [ "$(status_of "$b")" -eq 3 ]
    try dq cancel --key k
    [ "$rc" -eq 0 ]
    [ "$(status_of "$b")" -eq 4 ]
    try dq cancel --key k
    [ "$rc" -eq 1 ]
}

@test 'a command without ids and filters, or with both, is refused' {
    for verb in cancel retry run-now delete; do
        try dq "$verb"
        [ "$rc" -eq 64 ]
        [[ $err == "dq: $verb: no tasks named;"* ]]
    done
    try dq cancel 7 --tag x
    [ "$rc" -eq 64 ]
    try dq delete --tag x --status pending
    [ "$rc" -eq 64 ]
    [[ $err == *'--status: only done, failed or cancelled tasks can be deleted' ]]
    try dq reschedule 7
    [ "$rc" -eq 64 ]
    [ "$err" = 'dq: reschedule: no new time given; use --in D or --at TIME' ]
    for verb in reschedule retry; do
        try dq $verb 7 --in 1m --at tomorrow
        [ "$rc" -eq 64 ]
        [ "$err" = "dq: $verb: --in and --at cannot be combined" ]
    done
}

@test 'retry with a filter selects failed tasks, resets their attempts, and accepts a time' {
    task done t >/dev/null
    task cancelled t >/dev/null
    id=$(task failed t)
    try dq retry --tag t
    [ "$out" = '1 task retried' ]
    [ "$(sql "SELECT status, attempt, expected_time <= UTC_TIMESTAMP(3) FROM dq_task WHERE id = $id")" = $'0\t0\t1' ]
    try dq retry --tag t --status done,cancelled -y --in 2h
    [ "$out" = '2 tasks retried' ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_task
              WHERE status = 0 AND expected_time > UTC_TIMESTAMP(3) + INTERVAL 119 MINUTE')" -eq 2 ]
}

@test 'a task cannot be retried while another live task has its key' {
    old=$(task failed t k)
    dq -q add t new --key k
    try dq retry "$old"
    [ "$rc" -ne 0 ]
    [ "$(status_of "$old")" -eq 2 ]
}

@test 'reschedule and run-now change the due time' {
    id=$(task pending)
    TZ=Europe/Berlin try dq reschedule "$id" --at '2031-01-01 01:00'
    [ "$err" = 'due 2031-01-01 01:00:00.000 +01:00 = 2031-01-01T00:00:00.000Z' ]
    [ "$(sql 'SELECT expected_time FROM dq_task')" = '2031-01-01 00:00:00.000' ]
    dq reschedule --tag t --in 10m
    [ "$(sql 'SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(3), expected_time) BETWEEN 590 AND 600 FROM dq_task')" -eq 1 ]
    [ "$(dq run-now "$id" -o tsv)" = $'changed\n1' ]
    [ "$(sql 'SELECT expected_time <= UTC_TIMESTAMP(3) FROM dq_task')" -eq 1 ]
}

@test 'delete also deletes the attempts of a task' {
    id=$(task failed)
    sql "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome)
         VALUES ($id, 1, 1, UTC_TIMESTAMP(3), 'exit')"
    [ "$(dq delete "$id")" = '1 task deleted' ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_attempt')" -eq 0 ]
}

@test 'purge deletes by age and state, or by [retention], and --dry-run counts' {
    for state in done failed cancelled; do task "$state" >/dev/null; task "$state" >/dev/null; done
    sql 'UPDATE dq_task SET finish_time = UTC_TIMESTAMP(3) - INTERVAL 400 DAY WHERE id % 2 = 0;
         UPDATE dq_task SET expected_time = finish_time'
    task pending >/dev/null
    [ "$(dq purge --older-than 30d --dry-run)" = '3 tasks would be deleted' ]
    [ "$(dq purge --older-than 30d --status done)" = '1 task deleted' ]
    [ "$(dq purge --older-than 30d --tag 'x*')" = '0 tasks deleted' ]
    cp "$DQ_CONFIG" "$BATS_TEST_TMPDIR/dq.ini"
    printf '[retention]\ndone = 1d\nfailed = 0\ncancelled = 365d\n' >>"$BATS_TEST_TMPDIR/dq.ini"
    [ "$(dq --config "$BATS_TEST_TMPDIR/dq.ini" purge -o json)" = '{"deleted":1,"dry_run":false}' ]
    [ "$(sql 'SELECT status, COUNT(*) FROM dq_task GROUP BY status' | tr '\t\n' ' ,')" = '0 1,1 1,2 2,4 1,' ]
    [ "$(dq purge --older-than 0)" = '4 tasks deleted' ]
    try dq purge --status running
    [ "$rc" -eq 64 ]
}

@test 'a row that another session has locked is named, and the others are changed' {
    for i in $(seq 1000); do echo "{\"tag\":\"t\",\"body\":\"$i\",\"in\":\"1h\"}"; done | dq -q add --from -
    id=$(sql 'SELECT id FROM dq_task ORDER BY id LIMIT 617, 1')
    lock_task "$id"
    try dq cancel --tag t -y
    [ "$rc" -eq 75 ]
    [ "$out" = '999 tasks cancelled' ]
    [[ $err == *"task $id was not cancelled: "*'locked by an'* ]] # "other session", without SKIP LOCKED
    try dq delete --tag t --status cancelled -y
    [ "$out" = '999 tasks deleted' ]
    try dq cancel "$id"
    [ "$rc" -eq 75 ]
    [[ $err == *"task $id was not cancelled: "* ]]
    lock_release
    try dq cancel "$id"
    [ "$rc" -eq 0 ]
}

@test 'a row whose version cannot be incremented is named, and the others are changed' {
    for i in 1 2 3; do task pending >/dev/null; done
    id=$(sql 'SELECT MIN(id) + 1 FROM dq_task')
    sql "UPDATE dq_task SET version = 18446744073709551615 WHERE id = $id"
    try dq cancel --tag t -y
    [ "$out" = '2 tasks cancelled' ]
    [ "$rc" -eq 1 ]
    [[ $err == *"task $id was not cancelled: "*'out of range'* ]]
}
