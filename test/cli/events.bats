# dq events: acts, dqds, failures, started and finished tasks in one order; its filters, formats, and -f.

load ../lib/sandbox

setup()
{
    sandbox_clear
    minute=$(sql "SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:00')") # that of the whole test
}
teardown()
{
    [ -z "${GROWING:-}" ] || kill "$GROWING" || true
    [ -z "${FOLLOWER:-}" ] || kill "$FOLLOWER" || true
    dqd_reap
}

# event VERB SECONDS-AGO [TAG [COUNT [ACTOR]]]
event()
{
    local tag=NULL
    [ -z "${3:-}" ] || tag="'$3'"
    sql "INSERT INTO dq_event (token, event_time, actor, verb, arguments, tag, tasks)
         VALUES (UNHEX(LEFT(SHA2(RAND(), 256), 32)), UTC_TIMESTAMP(3) - INTERVAL $2 SECOND,
                 '${5:-alice@db1}', '$1', '--key k', $tag, ${4:-0})"
}

# failures N TAG ERROR SECONDS-AGO: each of another task.
failures()
{
    sql "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time)
         SELECT '$2', '', 2, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM $(numbers "$1");
         INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome, error_stack)
         SELECT id, 1, 1, UTC_TIMESTAMP(3) - INTERVAL $4 SECOND, 'exit', CONCAT('$3', id) FROM dq_task
         WHERE tag = '$2' AND id NOT IN (SELECT task_id FROM dq_attempt)"
}

# done_tasks N TAG MINUTES-AGO [STARTED]
done_tasks()
{
    sql "INSERT INTO dq_minute SET minute = '$minute' - INTERVAL $3 MINUTE,
         tag = '$2', poller = UNHEX(LEFT(SHA2(RAND(), 256), 32)), started = ${4:-$1}, done = $1, failed = 0,
         retried = 0, expired = 0, run_sum = 0, late_sum = 0, late_max = 0, late_5ms = $1, late_10ms = 0, late_25ms = 0,
         late_50ms = 0, late_100ms = 0, late_250ms = 0, late_1s = 0, late_5s = 0, late_30s = 0, late_2m = 0,
         late_10m = 0, late_1h = 0, ended = $1, run_max = 0, run_5ms = $1, run_10ms = 0, run_25ms = 0,
         run_50ms = 0, run_100ms = 0, run_250ms = 0, run_1s = 0, run_5s = 0, run_30s = 0, run_2m = 0,
         run_10m = 0, run_1h = 0"
}

# The lines, without times, as `who event tag count detail`.
lines() { dq events -o tsv "$@" | sed 1d | cut -f 2-5,7 | sed 's/\t/ /g; s/ *$//'; }

@test 'acts, dqds, failures and done tasks are shown in one order, and alike failures of a minute as one' {
    event cancel 7200 mail 3000
    event dqd-lost 6000 '' 0 dqd@vm
    failures 37 mail 'connect to db7 timed out: ' 3000
    failures 2 sms 'no credit ' 2900
    event retry 1800 mail 37 bob@db1
    done_tasks 3000 mail 10
    done_tasks 210 mail 10
    lines --since 3h | tee "$BATS_TEST_TMPDIR/lines"
    diff - "$BATS_TEST_TMPDIR/lines" <<'END'
alice@db1 cancel mail 3000 --key k
dqd@vm dqd-lost   --key k
 failed mail 37 connect to * timed out: *
 failed sms 2 no credit *
bob@db1 retry mail 37 --key k
 started mail 3210
 done mail 3210
END
    [[ $(dq events -o ndjson | sed -n 1p) =~ ^\{\"time\":\"[0-9TZ:.-]+\",\"who\":\"alice@db1\",\"event\":\"cancel\", ]]
    dq events -o json | python3 -m json.tool >/dev/null
    [[ $(dq events | sed -n 1p) =~ ^TIME\ +WHO\ +EVENT\ +TAG\ +COUNT\ +ID\ +DETAIL$ ]]
}

@test 'attempts that began are counted by tag and minute, also those that have not ended' {
    done_tasks 0 slow 6 3
    done_tasks 5 mail 4 7
    done_tasks 2 mail 2 0
    event cancel 60 slow 3
    lines --since 20m | tee "$BATS_TEST_TMPDIR/lines"
    diff - "$BATS_TEST_TMPDIR/lines" <<'END'
 started slow 3
 started mail 7
 done mail 5
 done mail 2
alice@db1 cancel slow 3 --key k
END
    [ "$(lines --since 20m --tag slow | sed 1q)" = ' started slow 3' ]
    [ "$(lines --since 20m --who '*')" = 'alice@db1 cancel slow 3 --key k' ]
    "$DQ_BIN/dq" events -f --since 10m -o tsv >"$BATS_TEST_TMPDIR/followed" 2>&1 3>&- &
    FOLLOWER=$!
    wait_until follows 'started mail 7 '
    failures 1 sms 'refused ' 0
    wait_until follows 'failed sms 1 '
    [ "$(follows 'started|done' | wc -l)" -eq 4 ]
}

@test 'what was counted in a step has the time of its first minute' {
    event init 3000
    done_tasks 3 mail 40
    done_tasks 4 mail 35
    first=$(sql "SELECT DATE_FORMAT('$minute' - INTERVAL 40 MINUTE, '%Y-%m-%dT%H:%i:00.000Z')")
    dq events -o tsv | cut -f 1,3,5 | sed 1d | tee "$BATS_TEST_TMPDIR/lines"
    [ "$(tail -n 2 "$BATS_TEST_TMPDIR/lines")" = "$first"$'\tstarted\t7\n'"$first"$'\tdone\t7' ]
    [[ $(head -n 1 "$BATS_TEST_TMPDIR/lines") == *$'\tinit\t' ]]
}

@test 'since when a lost dqd is silent is shown to people in their time' {
    event dqd-lost 60
    sql "UPDATE dq_event SET arguments = 'pid 7, resident, silent since 2026-11-22 03:04:05.678 UTC'"
    TZ=Asia/Tokyo dq events | grep -qE 'pid 7, resident, silent since 2026-11-22 12:04:05$'
    TZ=Asia/Tokyo dq events -o tsv | grep -qE 'silent since 2026-11-22 03:04:05.678 UTC$'
    sql "UPDATE dq_event SET arguments = CONCAT('silent since ', CHAR(27), '[2J UTC')"
    dq events | grep -qF 'silent since \x1B[2J UTC'
}

@test 'events is limited by time, tag, person and number of lines' {
    event cancel 7200 mail 1
    event cancel 3000 sms 2 bob@db1
    event cancel 1000 '' 3
    failures 1 mail 'x' 500
    failures 1 sms 'y' 400
    [ "$(lines --since 1h | wc -l)" -eq 4 ]
    [ "$(lines --since 1h --until 10m | cut -d' ' -f1,2,4)" = $'bob@db1 cancel 2\nalice@db1 cancel 3' ]
    [ "$(lines --tag 'ma*' | wc -l)" -eq 3 ]
    [ "$(lines --who 'bob@*')" = 'bob@db1 cancel sms 2 --key k' ]
    [ "$(lines -n 1)" = ' failed sms 1 y*' ]
    event cancel 90000 mail 4
    [ "$(lines | wc -l)" -eq 5 ]
    [ "$(lines --since 2d | wc -l)" -eq 6 ]
    run timeout 30 "$DQ_BIN/dq" events -f -o json
    [ "$status" -eq 64 ]
    run timeout 30 "$DQ_BIN/dq" events -f --until 1h
    [ "$status" -eq 64 ]
}

@test '--until lists old failures, however many came later' {
    failures 2 old 'refused ' 200000
    failures 5100 new 'refused ' 100
    [ "$(lines --since 3d --until 2d)" = ' failed old 2 refused *' ]
}

@test 'events -n notes that only the newest were read if it could miss a line, and not otherwise' {
    failures 1 early 'refused ' 7300
    failures 5001 mail 'refused ' 7200
    event cancel 60 sms 1
    event cancel 30 sms 2
    try dq events -n 2
    [ "$rc" -eq 0 ]
    [ -z "$err" ]
    [[ $(wc -l <<<"$out") -eq 3 ]]
    try dq events -n 3 # a line of failures, some of whose minute may be missing
    [[ $err == *'only the newest 5000 events and failures'* ]]
    sql "INSERT INTO dq_event (token, event_time, actor, verb, tasks)
         SELECT UNHEX(LEFT(SHA2(seq, 256), 32)), UTC_TIMESTAMP(3) - INTERVAL 50 SECOND, 'bob@db1', 'retry', 1
         FROM $(numbers 5000)"
    try dq events -n 1
    [ -z "$err" ]
    try dq events -n 2 # of one time, others are left out
    [[ $err == *'only the newest 5000 events and failures'* ]]
    try dq events
    [[ $err == *'only the newest 5000 events and failures'* ]]
}

@test 'dq records its own acts, and nothing among the events acts on a terminal' {
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         VALUES (CONCAT('t', CHAR(27), '[2J'), 'b c', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
    dq -q cancel --tag $'t\e*' --body 'b c' >/dev/null
    failures 1 mail "$(printf '\033]0;x\007')" 5
    for format in table tsv json ndjson; do
        dq events -o "$format" | LC_ALL=C tr -d '\n\t' >"$BATS_TEST_TMPDIR/$format"
        grep -q cancel "$BATS_TEST_TMPDIR/$format"
        LC_ALL=C refute grep '[[:cntrl:]]' "$BATS_TEST_TMPDIR/$format"
    done
    digest=$(printf 'b c' | sha256sum | cut -c 1-16)
    [[ $(lines) == *"@$(hostname) cancel "*" 1 --tag "*"--body [3 bytes, SHA-256 $digest...]"* ]]
}

# grows TAG [TASKS]: the act of that tag has another step.
grows()
{
    sql "INSERT INTO dq_event (token, step, event_time, actor, verb, tag, tasks)
         SELECT token, MAX(step) + 1, UTC_TIMESTAMP(3), MAX(actor), 'cancel', '$1', ${2:-1} FROM dq_event
         WHERE tag = '$1' GROUP BY token"
}

# follows PATTERN: the follower has printed it.
follows() { tr '\t' ' ' <"$BATS_TEST_TMPDIR/followed" | grep -E "$1"; }

@test 'events -f goes on: acts when they have grown to their end, failures as they come' {
    event cancel 60 old 1
    "$DQ_BIN/dq" events -f --since 30s -o tsv >"$BATS_TEST_TMPDIR/followed" 2>&1 3>&- &
    FOLLOWER=$!
    # on a slow machine two looks may fall between two steps: one of several tries has to keep it
    for try in 1 2 3 4 5; do
        event cancel 0 "mail$try" 1
        while grows "mail$try"; do :; done 3>&- &
        GROWING=$!
        event pause 0 "other$try"
        wait_until follows "pause other$try"
        # two looks have seen that, and the act on mail with another count each time
        ended=$(follows "cancel mail$try" || true)
        kill "$GROWING"
        wait "$GROWING" || true
        GROWING=''
        grows "mail$try" 5000
        wait_until follows "cancel mail$try"
        [ "$(follows "cancel mail$try " | wc -l)" -eq 1 ]
        [ -n "$ended" ] || ended=$(follows "cancel mail$try " | grep -vE "cancel mail$try 5[0-9]{3} " || true)
        [ -n "$ended" ] || break
    done
    [ -z "$ended" ]
    failures 3 mail 'refused ' 0
    wait_until follows 'failed mail 3 .*refused \*'
    failures 1 sms 'refused ' 0
    wait_until follows 'failed sms 1 '
    [ "$(follows 'failed mail' | wc -l)" -eq 1 ]
    refute follows 'old'
    [ "$(follows '^time' | wc -l)" -eq 1 ]
}

@test 'events -f shows what is recorded late, by as much as a lease' {
    fake_dqd
    "$DQ_BIN/dq" events -f --since 5m -o tsv >"$BATS_TEST_TMPDIR/followed" 2>&1 3>&- &
    FOLLOWER=$!
    event pause 0 first
    wait_until follows 'pause first'
    failures 1 late 'refused ' 65
    wait_until follows 'failed late 1 '
    event cancel 65 committed 1
    wait_until follows 'cancel committed 1 '
}

@test 'events -f survives a restart of the database, and shows what ended before and is recorded later' {
    "$DQ_BIN/dq" events -f --since 30s -o tsv >"$BATS_TEST_TMPDIR/followed" 2>&1 3>&- &
    FOLLOWER=$!
    event cancel 0 first 1
    wait_until follows 'cancel first'
    at=$(sql 'SELECT UTC_TIMESTAMP(3) - INTERVAL 8 SECOND')
    "$DQ_TOP/bin/dq-sandbox" stop
    wait_until grep -q 'still following' "$BATS_TEST_TMPDIR/followed"
    sandbox_start
    event cancel 0 second 1
    wait_until follows 'cancel second'
    ago() { sql "SELECT TIMESTAMPDIFF(SECOND, '$at', UTC_TIMESTAMP(3))"; }
    wait_until eval '[ "$(ago)" -ge 17 ]' # longer than a look goes back
    failures 1 late 'refused ' "$(ago)"
    wait_until follows 'failed late 1 '
}

cancelled() { dq show "$1" | sed -n 's/^cancelled  *by /by /p'; }

@test 'show says who has cancelled a task and how: by key, by id, with others, by a procedure, by an UPDATE' {
    for key in key id many procedure update twice; do
        dq -q add t x --key "$key" --in 1h >/dev/null
    done
    first=$(sql 'SELECT MIN(id) FROM dq_task') who="$(id -un)@$(hostname)"
    dq -q cancel --key key >/dev/null
    dq -q cancel $((first + 1)) >/dev/null
    dq -q add t2 x --key many --in 1h >/dev/null
    dq -q cancel --key many -y >/dev/null
    sql "CALL dq_cancel_key('t', 'procedure', @n)"
    sql "UPDATE dq_task SET status = 4, version = version + 1, live = NULL, finish_time = UTC_TIMESTAMP(3)
         WHERE task_key = 'update'"
    # of two acts the later one counts, and none that came before an application cancelled it again
    dq -q cancel --key twice >/dev/null
    dq -q retry $((first + 5)) --in 1h >/dev/null
    sql "DO SLEEP(0.01)
         ; UPDATE dq_task SET status = 4, live = NULL, finish_time = UTC_TIMESTAMP(3) WHERE task_key = 'twice'"
    [ "$(cancelled "$first")" = "by $who: dq cancel --key key" ]
    [ "$(cancelled $((first + 1)))" = "by $who: dq cancel $((first + 1))" ]
    [ "$(cancelled $((first + 2)))" = "by $who: dq cancel --key many" ]
    [ "$(cancelled $((first + 3)))" = "by $(sql 'SELECT USER()'): CALL dq_cancel_key" ]
    [ "$(cancelled $((first + 4)))" = 'by an application' ]
    [ "$(cancelled $((first + 5)))" = 'by an application' ]
    [[ $(dq show "$first" -o json) == *',"cancelled_by":"'"$who"'","cancelled_with":"dq cancel --key key",'* ]]
    [[ $(dq show $((first + 4)) -o json) == *',"cancelled_by":null,"cancelled_with":null,'* ]]
    # the id of an act on one task, whatever selected it
    [ "$(dq events -o tsv | grep -P '\tcancel\t' | cut -f 5,6 | tr '\t' : | paste -sd' ')" = \
        "1:$first 1:$((first + 1)) 2: 1:$((first + 3)) 1:$((first + 5))" ]
}

@test 'events ID is the life of one task: added, attempts, and the acts that touched it, alone or with others' {
    id=$(dq -q add t x --key k)
    echo 'handlers: {t: {run: "exit 3", retry: [1h]}}' | write_handlers
    dqd --once 2>"$BATS_TEST_TMPDIR/dqd"
    dq -q add t y --in 1h >/dev/null
    dq -q reschedule -t t --in 30m -y >/dev/null
    dq -q run-now "$id"
    echo 'handlers: {t: {run: "true"}}' | write_handlers
    dqd --once 2>>"$BATS_TEST_TMPDIR/dqd"
    dq events "$id" | tee "$BATS_TEST_TMPDIR/life"
    diff - <(dq events "$id" -o tsv | sed 1d | cut -f 3-7 | sed -E 's/dqd [0-9]+/dqd N/; s/\t/ /g; s/ *$//') <<END
added t  $id key k
started t  $id attempt 1, dqd N
failed t  $id exit status 3
reschedule t 2  --in 30m --tag t
run-now t 1 $id $id
started t  $id attempt 2, dqd N
done t  $id
END
    other=$(sql 'SELECT MAX(id) FROM dq_task')
    dq -q delete "$id" >/dev/null
    [ "$(dq events "$id" -o tsv | sed 1d | cut -f 3 | paste -sd' ')" = 'reschedule run-now delete' ]
    [ "$(dq events "$other" -o tsv | sed 1d | cut -f 3 | paste -sd' ')" = 'added reschedule' ]
    try dq events 999999
    [ "$rc" -eq 1 ]
    [ "$err" = 'dq: events: task 999999 does not exist' ]
    try dq events "$id" --since 1h
    [ "$rc" -eq 64 ]
}

@test 'tasks that are replaced are acts: of dq add, of a file, of a procedure; calls of a minute are one line' {
    for key in a b c; do
        dq -q add t x --key $key --in 1h >/dev/null
    done
    dq -q add t y --key a --in 1h --key-conflict replace >/dev/null
    printf '{"tag":"t","body":"z","key":"%s","in":"1h"}\n' a b new >"$BATS_TEST_TMPDIR/tasks"
    dq -q add --from "$BATS_TEST_TMPDIR/tasks" --key-conflict replace >/dev/null
    for body in 1 2 3; do
        sql "CALL dq_add_options('t', 'c', '$body', '{\"key_conflict\": \"replace\", \"delay_ms\": 9999999}', @id);
             UPDATE dq_event SET event_time = '$minute' WHERE by_procedure"
    done
    sql "CALL dq_add_options('t', 'c', 'k', '{\"delay_ms\": 9999999}', @id); CALL dq_add('t', NULL, '', 0, @id)"
    ids=$(sql "SELECT GROUP_CONCAT(id ORDER BY id) FROM dq_task WHERE task_key IN ('a', 'b')")
    lines --who "$(id -un)@$(hostname)" | tee "$BATS_TEST_TMPDIR/lines"
    diff - "$BATS_TEST_TMPDIR/lines" <<END
$(id -un)@$(hostname) replace t 1 --in 1h --key a --key-conflict replace
$(id -un)@$(hostname) replace  2 --key-conflict replace --from $BATS_TEST_TMPDIR/tasks
END
    [ "$(lines --who '*@localhost')" = "$(sql 'SELECT USER()') replace t 3 CALL dq_add_options" ]
    [ "$(sql 'SELECT ids FROM dq_event WHERE tasks = 2')" = "$ids" ]
    [ "$(dq events "${ids%%,*}" -o tsv | sed 1d | cut -f 3 | paste -sd' ')" = 'added replace replace' ]
}

@test 'starts and ends of all tags are one line, unless a tag is asked for; --event and --acts leave the others out' {
    done_tasks 5 a 3
    done_tasks 7 b 3 9
    done_tasks 1 c 3
    event cancel 120 a 4
    event dqd-lost 110 '' 0 dqd@vm
    failures 2 b 'refused ' 100
    event retry 90 b 2
    lines --since 20m | tee "$BATS_TEST_TMPDIR/lines"
    diff - "$BATS_TEST_TMPDIR/lines" <<'END'
 started  15
 done  13
alice@db1 cancel a 4 --key k
dqd@vm dqd-lost   --key k
 failed b 2 refused *
alice@db1 retry b 2 --key k
END
    [ "$(lines --since 20m --tag '*' --event started)" = $' started a 5\n started b 9\n started c 1' ]
    [ "$(lines --since 20m --event cancel,failed,dqd-lost | cut -d' ' -f2 | paste -sd' ')" = 'cancel dqd-lost failed' ]
    [ "$(lines --since 20m --acts | cut -d' ' -f2 | paste -sd' ')" = 'cancel retry' ]
    [ "$(lines --since 20m --acts --event done,retry | cut -d' ' -f2)" = retry ]
    try dq events --event cancel,fialed
    [ "$rc" -eq 64 ]
    [ "$err" = 'dq: events: --event: "fialed" is no event: did you mean "failed"?' ]
}
