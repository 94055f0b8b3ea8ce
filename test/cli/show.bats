# dq show: everything about a task.

load ../lib/sandbox

setup()
{
    sandbox_clear
    write_handlers <<'END'
handlers:
  known: {run: "true"}
  "mail.*": {run: "true"}
END
}

failed_task()
{
    id=$(dq -q add known 'the body' --key k --max-attempts 2)
    sql "UPDATE dq_task SET status = 2, live = NULL, attempt = 2, version = 4, host = 'h1', pid = 42, exit_code = 3,
         error_stack = 'exit status 3', output = 'last words', execution_time = UTC_TIMESTAMP(3),
         finish_time = UTC_TIMESTAMP(3) WHERE id = $id;
         INSERT INTO dq_attempt (task_id, version, attempt, host, pid, start_time, finish_time, outcome, exit_code,
         \`signal\`, error_stack, output) VALUES
         ($id, 1, 1, 'h1', 42, '2026-11-20 10:00:00', '2026-11-20 10:00:01.5', 'exit', 7,
          NULL, 'exit status 7', CONCAT('out', CHAR(27))),
         ($id, 3, 2, 'h1', 42, '2026-11-20 10:00:05', '2026-11-20 10:01:05', 'timeout', NULL, 15, 'timed out', NULL)"
}

@test 'show prints fields, body, output and attempts for people' {
    failed_task
    run dq show "$id"
    [ "$status" -eq 0 ]
    [[ $output == *$'\ntag           known\n'* ]]
    [[ $output == *$'\nkey           k\n'* ]]
    [[ $output == *$'\nstatus        failed\n'* ]]
    [[ $output == *$'body (8 bytes):\n  the body\n'* ]]
    [[ $output == *$'output of the last attempt (10 bytes):\n  last words\n'* ]]
    [[ $output == *$'attempts:\n'* ]]
    [[ $output =~ 1\ +2026-11-20\ .*1\.5s\ +exit\ +7\ +-\ +h1\ +42\ +exit\ status\ 7 ]]
    [[ $output =~ 2\ +2026-11-20\ .*1m\ +timeout\ +-\ +15 ]]
    run dq show "$id" --full
    [[ $output == *$'output of attempt 1 (4 bytes):\n  out\\x1B'* ]]
}

@test 'show -o json prints one object or an array, with exact bytes' {
    failed_task
    dq show "$id" -o json >"$BATS_TEST_TMPDIR/json"
    python3 - "$id" "$BATS_TEST_TMPDIR/json" <<'END'
import json, sys
with open(sys.argv[2]) as f:
    task = json.load(f)
def has(shown, **members):
    for name, value in members.items():
        assert shown[name] == value, (name, shown)
has(task, id=int(sys.argv[1]), tag="known", key="k", status="failed", exit=3, body="the body", output="last words")
first, second = task["attempts"]
has(first, attempt=1, took=1500, outcome="exit", exit=7, signal=None, output="out\x1b")
has(second, attempt=2, took=60000, outcome="timeout", exit=None, signal=15, output=None)
assert list(task)[:4] == ["id", "tag", "key", "status"] and list(task)[-1] == "attempts", list(task)
END
    other=$(dq -q add known)
    [ "$(dq show "$id" "$other" -o json | head -c 2)" = '[{' ]
    [ "$(dq show "$id" "$other" -o json | tail -c 4)" = ']}]' ]
    [ "$(dq show "$id" "$other" -o ndjson | wc -l)" -eq 2 ]
    [ "$(dq show "$id" "$other" -o id)" = "$(printf '%s\n%s' "$id" "$other")" ]
    [ "$(dq show "$id" "$other" -o tsv | wc -l)" -eq 3 ]
}

# attempt ID VERSION SECONDS OUTCOME OUTPUT: an attempt that began at 10:00:SECONDS.
attempt()
{
    sql "INSERT INTO dq_attempt (task_id, version, attempt, host, pid, start_time, finish_time, outcome, output)
         VALUES ($1, $2, 1, 'h1', 42, '2026-11-20 10:00:$3', '2026-11-20 10:01:00', '$4', $5)"
}

@test 'the output of the last attempt is that of no earlier one' {
    id=$(dq -q add known)
    attempt "$id" 1 00 exit "'of the first'"
    attempt "$id" 3 10 cancelled "'of the second'"
    sql "UPDATE dq_task SET status = 4, attempt = 2, execution_time = '2026-11-20 10:00:10' WHERE id = $id"
    run dq show "$id"
    [[ $output == *$'output of the last attempt (13 bytes):\n  of the second\n'* ]]
    [[ $output != *'of the first'* ]]
    [[ $(dq show "$id" -o json) == *'"output":"of the second","cancelled_by":null,"cancelled_with":null,"attempts":'* ]]
    # retried, and it wrote nothing
    for status in 3 1 4; do
        sql "UPDATE dq_task SET status = $status, attempt = 1, execution_time = '2026-11-20 10:00:20' WHERE id = $id"
        run dq show "$id"
        echo "$output"
        [[ $output != *'output of'* ]]
        [[ $(dq show "$id" -o json) == *'"output":null,'* ]]
    done
    # given back before it started
    sql "UPDATE dq_task SET status = 0, attempt = 1, execution_time = NULL WHERE id = $id"
    [[ $(dq show "$id") == *'  of the second'* ]]
}

@test 'show truncates a long body in a table, but not with --full or in json' {
    id=$(head -c 100000 /dev/zero | tr '\0' x | dq -q add known -)
    [[ $(dq show "$id") == *'... 96000 more bytes; --full prints all'* ]]
    [ "$(dq show "$id" --full | tr -cd x | wc -c)" -ge 100000 ]
    [ "$(dq show "$id" -o json | tr -cd x | wc -c)" -ge 100000 ]
}

@test 'show prints a body line by line and escapes each line' {
    id=$(printf 'one\ntwo\033[2J\n\nfour' | dq -q add known -)
    [[ $(dq show "$id") == *$'body (17 bytes):\n  one\n  two\\x1B[2J\n  \n  four'* ]]
}

@test 'show says what holds a pending task back: no dqd serves it, or a paused tag' {
    fake_dqd known 'mail.*'
    id=$(dq -q add unknown.tag)
    [[ $(dq show "$id") == *'no dqd serves its tag'* ]]
    [[ $(dq show "$id" -o json) == *'"handler":null,"paused":false,"paused_until":null'* ]]
    id=$(dq -q add mail.welcome)
    [[ $(dq show "$id") != *'no dqd serves'* ]]
    dq -q pause mail.welcome --reason 'provider is down'
    [[ $(dq show "$id") == *'tag paused until resumed by '*': provider is down'* ]]
    [[ $(dq show "$id" -o json) == *'"handler":"mail.*","paused":true,"paused_until":null'* ]]
    dq -q pause mail.welcome --for 1h
    [[ $(dq show "$id") == *'tag paused until 2'* ]]
    [[ $(dq show "$id" -o json) =~ \"paused\":true,\"paused_until\":\"2 ]]
}

@test 'show reports an id that does not exist and shows the others' {
    id=$(dq -q add known)
    run dq show 999999
    [ "$status" -eq 1 ]
    [[ $output == 'dq: show: '*999999* ]]
    run dq show 999999 "$id" -o id
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == 'dq: show: '*999999* ]]
    [ "${lines[1]}" = "$id" ]
    run dq show seven
    [ "$status" -eq 64 ]
    [[ $output == *'"seven" is not a task id'* ]]
    run dq show 0
    [ "$status" -eq 64 ]
}

@test 'show knows handlers from the dqds, not from the file of this host' {
    id=$(dq -q add known)
    echo 'handlers: [' >"$DQ_HANDLERS"
    run dq show "$id"
    [ "$status" -eq 0 ]
    [ "${lines[-1]}" = 'no dqd is alive' ]
    [[ $output != *'no dqd serves'* ]]
    fake_dqd other
    run dq show "$id"
    [[ $output == *'waits         no dqd serves its tag'* ]]
    [[ $output != *'is alive'* ]]
}

@test 'show, why, logs, wait and events take the key of a task: the live one, else the newest' {
    old=$(dq -q add mail --key order-7) && dq -q cancel "$old"
    id=$(dq -q add mail --key order-7 --in 1h)
    dq -q cancel "$(dq -q add mail --key order-8)"
    new=$(dq -q add mail --key order-8) && dq -q cancel "$new"
    [ "$(dq show --key order-7 -o id)" = "$id" ]
    [ "$(dq show -k order-8 -o id)" = "$new" ]
    first=$(dq -q add mail --key order-9) && dq -q cancel "$first"
    dq -q cancel "$(dq -q add mail --key order-9)" && dq -q retry "$first"
    [ "$(dq show -k order-9 -o id)" = "$first" ]
    [[ $(dq why --key order-7) == "task $id, mail, pending"* ]]
    [[ $(dq events --key order-7) == *" added "*" $id "* ]]
    run dq logs --key order-7
    [[ $output == *"task $id "* ]]
    run dq wait --key order-7 --timeout 50ms
    [ "$status" -eq 75 ]
    # which of several tags
    other=$(dq -q add sms --key order-7)
    run dq show --key order-7
    echo "$output"
    [ "$status" -eq 64 ]
    [[ $output == 'dq: show: tasks of sms and of mail have the key "order-7": add --tag' ]]
    for verb in show events; do
        [[ $(dq "$verb" --key order-7 --tag 's*' -o json) == *"\"id\":$other,"* ]]
    done
    [[ $(dq why --key order-7 --tag sms) == "task $other, sms,"* ]]
    run dq show --key order-7 --tag fax
    [ "$status" -eq 1 ]
    for options in '' '17 --key order-7' '--tag mail'; do
        # shellcheck disable=SC2086 # words
        run dq show $options
        echo "$output"
        [ "$status" -eq 64 ]
        [[ $output == *'--key'* || $output == 'dq: show: missing argument: dq show ID... [--full]' ]]
    done
}
