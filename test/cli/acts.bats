# What verbs that change many tasks do at a terminal and in scripts: filters, dry runs, questions, progress, interrupts;
# and the record that they leave.

load ../lib/sandbox

setup() { sandbox_clear; }

# tasks N TAG STATUS [SET]: that many, one second apart, the first one due now.
tasks()
{
    sql "INSERT INTO dq_task (tag, message_body, body_size, status, expected_time, create_time)
         SELECT '$2', CONCAT('body ', seq), 8, $3, UTC_TIMESTAMP(3) + INTERVAL seq SECOND, UTC_TIMESTAMP(3)
         FROM $(numbers "$1") ORDER BY seq"
    [ -z "${4:-}" ] || sql "UPDATE dq_task SET $4 WHERE tag = '$2'"
}

terminal() { "$DQ_TOP/test/lib/terminal" "$@" >"$BATS_TEST_TMPDIR/seen"; }
seen() { tr -d '\r' <"$BATS_TEST_TMPDIR/seen"; }

# What dq_event says of the last act.
event()
{
    sql "SELECT $1 FROM (SELECT actor, verb, arguments, tag, task_id,
             (SELECT SUM(s.tasks) FROM dq_event s WHERE s.token = e.token) AS tasks
         FROM dq_event e WHERE step = 0 ORDER BY event_time DESC LIMIT 1) last"
}

@test 'tasks are selected by error, host, body, and each of their times' {
    tasks 3 b 2 "error_stack = '100% wrong_', host = 'web2', finish_time = UTC_TIMESTAMP(3) - INTERVAL 3 HOUR,
        execution_time = UTC_TIMESTAMP(3) - INTERVAL 4 HOUR, create_time = UTC_TIMESTAMP(3) - INTERVAL 5 HOUR"
    tasks 4 a 2 "error_stack = 'connect to db7: refused', host = 'web1',
        finish_time = UTC_TIMESTAMP(3) - INTERVAL 1 HOUR"
    sql "UPDATE dq_task SET task_key = CONCAT('key-', id) WHERE id <= 2"
    while read -r count filter; do
        echo "$filter: $(eval "dq list -o id $filter" | wc -l)"
        [ "$(eval "dq list -o id -n 0 $filter" | wc -l)" -eq "$count" ]
        [ "$(eval "dq list -o id -n 100 $filter" | wc -l)" -eq "$count" ]
        if [ "$count" -gt 0 ]; then
            [[ $(eval "dq delete --dry-run -q $filter") == "$count task"*' would be deleted' ]]
        fi
    done <<'END'
4 --error '*refused'
0 --error 'refused'
4 --error 'connect to db?: *'
3 --error '100% w*'
3 --error '*_'
0 --error '%'
0 --error '100_ wrong_'
4 --host web1
7 --host 'web*'
1 --body 'body 1' --tag a
7 --body ody
0 --body BODY
0 --body '%'
3 --started-before 3h
0 --started-since 3h
4 --finished-since 2h
3 --finished-before 2h
7 --finished-since 4h
0 --finished-before 5h
7 --tag a --tag b
3 -t nothing -t 'b*'
7 --error '*refused' --error '100*'
3 --host web3 --host web2
2 -k key-1 -k nosuch -k key-2
7 -s done -s failed
0 -s done -s running
3 -t a -t b --host web2 --host web3
4 --since 4h
3 --created-before 4h
3 --since 6h --created-before 4h
END
    [ "$(dq delete -y --error '*refused' -n 3)" = '3 tasks deleted' ]
    [ "$(sql "SELECT message_body FROM dq_task WHERE tag = 'a'")" = 'body 4' ]
    run dq delete 7 -n 3
    [ "$status" -eq 64 ]
    # a variable that is not set selects no task; an empty text is in every body
    for option in --tag --key --error --host --body; do
        rc=0
        dq retry "$option" '' -y >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || rc=$?
        [ "$rc" -eq "$([ "$option" = --body ] && echo 64 || echo 1)" ]
    done
    [ "$(cat "$BATS_TEST_TMPDIR/err")" = 'dq: retry: --body is empty and would match every task' ]
}

@test 'what was cancelled before it ran is found by the time of that' {
    sandbox_clear
    dq -q add a x --in 1h --key k >/dev/null
    dq -q cancel --key k --tag a
    [ "$(dq list --status cancelled --finished-since 1h -o id | wc -l)" = 1 ]
    dq -q retry --status cancelled --finished-since 1h -y
    is "status = 0" 1
}

@test 'a search with a limit ends after 10,000 tasks that do not match, and says so' {
    tasks 10600 many 2
    sql "UPDATE dq_task SET error_stack = 'rare' WHERE message_body IN ('body 10590', 'body 5')"
    bodies() { dq list -c body --no-header "$@" 2>"$BATS_TEST_TMPDIR/notes"; }
    marked()
    {
        grep -qx 'only 10000 tasks were searched, there may be more; a narrower filter or -n 0 finds all' \
            "$BATS_TEST_TMPDIR/notes"
    }
    [ "$(bodies -n 2 --error rare --sort expected)" = 'body 5' ]
    marked
    [ "$(bodies -n 0 --error rare --sort expected)" = $'body 5\nbody 10590' ]
    refute marked
    [ "$(bodies -n 2 --since 1h --error rare)" = 'body 10590' ]
    marked
    [ "$(bodies -n 2 --since 1h --sort -id)" = $'body 10600\nbody 10599' ]
    refute marked
    [ "$(dq retry -y --error rare)" = '2 tasks retried' ]
}

@test 'a dry run shows the tags, how many tasks each has, and some of the tasks' {
    tasks 12 mail 0
    tasks 30 "sms" 0
    run dq cancel --tag '*' --dry-run
    echo "$output"
    [ "${lines[0]}" = '42 tasks would be cancelled' ]
    [[ ${lines[1]} =~ ^TAG\ +TASKS$ ]]
    [[ ${lines[2]} =~ ^sms\ +30$ ]]
    [[ ${lines[3]} =~ ^mail\ +12$ ]]
    [[ ${lines[4]} =~ ^\ *ID\ +TAG\  ]]
    [ "${lines[10]}" = '... and 37 more tasks' ]
    dq cancel --tag '*' --dry-run -o json >"$BATS_TEST_TMPDIR/json"
    python3 -m json.tool "$BATS_TEST_TMPDIR/json" >/dev/null
    members='{"matched":42,"changed":0,"lost":0,"refused":0,"dry_run":true,'
    members+='"tags":[{"tag":"sms","tasks":30},{"tag":"mail","tasks":12}],"sample":[{"id":'
    [[ $(cat "$BATS_TEST_TMPDIR/json") == "$members"* ]]
    [ "$(dq cancel --tag '*' --dry-run -o tsv)" = $'matched\n42' ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_event')" -eq 0 ]
}

@test 'the ids of another command come on standard input' {
    tasks 700 mail 0
    [ "$(dq list -o id -n 600 | dq cancel -)" = '600 tasks cancelled' ]
    rc=0
    printf '1\n\n2\nx7\n' | dq cancel - 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    [ "$rc" -eq 65 ]
    [ "$(cat "$BATS_TEST_TMPDIR/err")" = \
        'dq: cancel: standard input, line 4: "x7" is not a task id; dq list -o id prints ids' ]
    [ "$(dq list -o id | dq show - -o ndjson | wc -l)" -eq 100 ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 4')" -eq 600 ]
}

@test '--over spreads tasks evenly: retry, run-now, reschedule, resume' {
    for verb in retry run-now "reschedule --in 1h"; do
        sandbox_clear
        tasks 700 mail "$([ "$verb" = retry ] && echo 2 || echo 0)"
        [[ $(dq -q $verb --tag mail --over 70m -y) == '700 tasks '* ]]
        [ "$(sql 'SELECT COUNT(DISTINCT expected_time), TIMESTAMPDIFF(SECOND, MIN(expected_time), MAX(expected_time)),
            MIN(expected_time) > UTC_TIMESTAMP(3) + INTERVAL 30 MINUTE FROM dq_task WHERE status = 0')" = \
            "700"$'\t'"4194"$'\t'"$([[ $verb == resch* ]] && echo 1 || echo 0)" ]
    done
    sandbox_clear
    tasks 100 mail 0 "expected_time = UTC_TIMESTAMP(3) + INTERVAL IF(SUBSTR(message_body, 6) <= 60, -1, 10) HOUR"
    tasks 10 mail.x 0 "expected_time = '2020-01-01'"
    dq -q pause mail
    run dq resume mail --over 1h -y
    [ "${lines[0]}" = '60 due tasks are spread evenly over 1h' ]
    [ "${lines[1]}" = 'mail is resumed' ]
    [ "$(sql "SELECT COUNT(DISTINCT expected_time), TIMESTAMPDIFF(SECOND, MIN(expected_time), MAX(expected_time))
        FROM dq_task WHERE tag = 'mail' AND SUBSTR(message_body, 6) <= 60")" = $'60\t3540' ]
    [ "$(sql "SELECT COUNT(*) FROM dq_task WHERE expected_time = '2020-01-01'")" -eq 10 ]
}

@test 'a question says how many tasks of which tags, and where; for many the name has to be typed' {
    tasks 30 mail 0
    own_ini '$a [dq]\nname = prod'
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini
    terminal 80 "$DQ_BIN/dq" cancel --tag mail <<'END' || [ "$?" -eq 1 ]
wait cancel 30 tasks (mail) on prod, localhost/dq? [y/N]
type n
wait nothing was changed
END
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 0')" -eq 30 ]
    terminal 80 "$DQ_BIN/dq" cancel --tag mail <<'END'
wait cancel 30 tasks (mail) on prod, localhost/dq? [y/N]
type y
wait 30 tasks cancelled
END
    tasks 2000 sms 0
    tasks 1 b 0
    tasks 1 c 0
    tasks 1 d 0
    terminal 80 "$DQ_BIN/dq" cancel --tag '*' <<'END' || [ "$?" -eq 1 ]
wait cancel 2,003 tasks (sms, b and 2 more tags) on prod, localhost/dq? Type prod to confirm:
type y
wait nothing was changed
END
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 0')" -eq 2003 ]
    DQ_CONFIG=$DQ_SANDBOX/dq.ini terminal 80 "$DQ_BIN/dq" cancel --tag '*' <<'END'
wait on localhost/dq? Type dq to confirm:
type dq
wait 2003 tasks cancelled
END
    tasks 2000 sms 0
    [ "$(dq cancel -t sms -y </dev/null)" = '2000 tasks cancelled' ]
}

@test 'resume --over asks like the verbs that change tasks, with their number and the place' {
    tasks 30 mail 0 "expected_time = expected_time - INTERVAL 60 SECOND"
    dq -q pause mail
    paused() { [ "$(sql 'SELECT COUNT(*) FROM dq_limit WHERE paused_until IS NOT NULL')" -eq 1 ]; }
    due="SELECT COUNT(*) FROM dq_task WHERE expected_time < UTC_TIMESTAMP(3)"
    run dq resume mail --over 1h </dev/null
    [ "$status" -eq 64 ]
    [ "$output" = 'dq: resume: 30 tasks match; use -y to spread them, or --dry-run to count them' ]
    [ "$(dq resume mail --over 1h --dry-run)" = '30 tasks would be spread' ]
    terminal 80 "$DQ_BIN/dq" resume mail --over 1h <<'END' || [ "$?" -eq 1 ]
wait spread 30 tasks (mail) on localhost/dq? [y/N]
type n
wait nothing was changed
END
    paused
    [ "$(sql "$due")" -eq 30 ]
    terminal 80 "$DQ_BIN/dq" resume mail --over 1h <<'END'
wait spread 30 tasks (mail) on localhost/dq? [y/N]
type y
wait mail is resumed
END
    refute paused
    [ "$(sql "$due")" -le 2 ]
    run dq resume mail --dry-run
    [ "$status" -eq 64 ]
}

# A lock on a task of each step from the fourth on makes the command wait there, so that the interrupt comes meanwhile.
@test 'long work shows its progress, and an interrupt leaves whole steps and says how many' {
    tasks 10000 mail 0
    lock_task "$(sql "SELECT GROUP_CONCAT(id ORDER BY id) FROM dq_task
        WHERE SUBSTR(message_body, 6) > 1500 AND SUBSTR(message_body, 6) % 500 = 200")"
    terminal 80 "$DQ_BIN/dq" cancel --tag mail -y <<'END' || rc=$?
wait  500 cancelled
key interrupt
wait of 10000 tasks were cancelled
END
    lock_release
    [ "$rc" -eq 75 ]
    seen | tr '\r' '\n' | tail -n 3
    count=$(seen | sed -nE 's/.*dq: cancel: interrupted: ([0-9]+) of 10000 tasks were cancelled/\1/p')
    steps=$(((count + 499) / 500))
    [ "$count" -eq $((500 * steps - (steps > 3 ? steps - 3 : 0))) ] # a locked task is left out
    [ "$count" -ge 500 ]
    [ "$count" -lt 10000 ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 4')" -eq "$count" ]
    [ "$(event tasks)" -eq "$count" ]
    [[ $(seen) == *$'\e[Kdq: cancel: interrupted: '* ]] # it was erased
    # no line of progress is wider than the terminal
    [ "$(seen | sed 's/\x1b\[K/\n/g' | LC_ALL=C.UTF-8 wc -L)" -le 80 ]
}

@test 'each act leaves a row with who, what, and how many; a refused one none' {
    tasks 600 mail 0
    who="$(id -un)@$(hostname)"
    dq -q cancel -t 'ma*' -s pending -y --body ody >/dev/null
    digest=$(printf ody | sha256sum | cut -c 1-16)
    [ "$(event 'actor LIKE "%@%", verb, tag, task_id, tasks')" = $'1\tcancel\tmail\tNULL\t600' ]
    [ "$(event arguments)" = "--tag 'ma*' --status pending --body [3 bytes, SHA-256 $digest...]" ]
    id=$(sql 'SELECT MIN(id) FROM dq_task')
    dq -q retry "$id" --in 2h >/dev/null
    [ "$(event 'verb, arguments, tag, task_id, tasks')" = $'retry\t--in 2h '"$id"$'\tmail\t'"$id"$'\t1' ]
    dq -q retry $((id + 1)) $((id + 2)) >/dev/null
    [ "$(event 'verb, arguments, task_id, tasks')" = $'retry\t'"$((id + 1)) $((id + 2))"$'\tNULL\t2' ]
    dq -q pause mail --for 1h --reason 'provider is down'
    [ "$(event 'verb, arguments, tag')" = $'pause\t--for 1h --reason '"'provider is down'"$'\tmail' ]
    dq -q resume mail
    [ "$(event verb)" = resume ]
    dq -q delete -t mail -s cancelled -y >/dev/null
    [ "$(event 'verb, tasks')" = $'delete\t597' ]
    before=$(sql 'SELECT COUNT(*) FROM dq_event')
    for refused in 'resume mail' 'cancel 4000000000' 'cancel -t nothing -y'; do
        run dq $refused
        [ "$status" -eq 1 ]
    done
    dq purge --older-than 1d --dry-run
    [ "$(sql 'SELECT COUNT(*) FROM dq_event')" -eq "$before" ]
    sql "UPDATE dq_task SET status = 1, finish_time = '2020-01-01', expected_time = '2020-01-01'"
    dq -q purge --older-than 1d >/dev/null
    [ "$(event 'verb, arguments, tasks')" = $'purge\t--older-than 1d\t3' ]
    [ "$(sql "SELECT COUNT(*) FROM dq_event WHERE verb = 'init'")" -eq 0 ]
}

# in_namespace COMMAND...: as its root. If root calls it, all accounts are in it: the server's directory is of another.
in_namespace()
{
    local pid
    mkfifo "$BATS_TEST_TMPDIR/mapped"
    unshare -U sh -c 'read -r _ <"$0"; exec "$@"' "$BATS_TEST_TMPDIR/mapped" "$@" 3>&- &
    pid=$!
    inside() { [ "$(readlink "/proc/$pid/ns/user")" != "$(readlink /proc/self/ns/user)" ]; }
    wait_until inside
    if [ "$(id -u)" -eq 0 ]; then
        echo '0 0 65536' | tee "/proc/$pid/uid_map" >"/proc/$pid/gid_map"
    else
        echo "0 $(id -u) 1" >"/proc/$pid/uid_map"
    fi
    echo >"$BATS_TEST_TMPDIR/mapped"
    wait "$pid"
}

@test 'in a user namespace the actor is the user outside, whatever SUDO_USER says' {
    unshare -U true || skip 'this host lets nobody make a user namespace'
    in_namespace env SUDO_USER=alice "$DQ_BIN/dq" -q pause mail
    [ "$(event actor)" = "uid $(id -u) (userns)@$(hostname)" ]
    if [ "$(id -u)" -eq 0 ] && [ "$(cat /proc/self/loginuid)" -eq 4294967295 ]; then
        SUDO_USER=alice dq -q resume mail
        [ "$(event actor)" = "alice@$(hostname)" ]
    fi
}
