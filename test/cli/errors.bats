# dq errors: what fails, how often, since when, and how to retry it.

load ../lib/sandbox

setup()
{
    sandbox_clear
    cd "$BATS_TEST_TMPDIR"
}

# failed TAG STATUS ERROR MINUTES...: a task in that state, with a failed attempt that many minutes ago for each.
failed()
{
    local tag=$1 status=$2 error=$3 id version=0
    shift 3
    id=$(dq -q add "$tag")
    for minutes; do
        version=$((version + 2))
        sql "INSERT INTO dq_attempt (task_id, version, attempt, start_time, finish_time, outcome, error_stack)
             VALUES ($id, $version, 1, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) - INTERVAL $minutes MINUTE, 'exit', '$error')"
    done
    sql "UPDATE dq_task SET status = $status, live = NULL, error_stack = '$error',
         finish_time = UTC_TIMESTAMP(3) - INTERVAL $minutes MINUTE WHERE id = $id"
    echo "$id"
}

fill()
{
    failed pay 2 'exit status 65: no such account: 4711' 50 >/dev/null
    failed pay 2 'exit status 65: no such account: 4712' 40 30 >/dev/null
    last=$(failed pay 0 'exit status 65: no such account: 4713' 20)
    failed pay 3 'exit status 75: busy' 10 >/dev/null
    failed mail 2 'exit status 65: no such account: 9' 5 >/dev/null
    failed old 2 'exit status 65: no such account: 9' 3000 >/dev/null
    failed cancelled 4 'x' 1 >/dev/null
    sql "UPDATE dq_attempt SET outcome = 'cancelled' WHERE error_stack = 'x'"
}

shown() { dq errors -o tsv "$@" | tr '\t' '|'; }

@test 'failures are grouped by tag and by error, numbers aside, the most frequent first' {
    fill
    shown | cut -d '|' -f 1-5 >rows
    diff rows - <<'END'
tag|error|failures|failed|retrying
pay|exit status 65: no such account: *|4|2|1
mail|exit status 65: no such account: *|1|1|0
pay|exit status 75: busy|1|0|1
END
    dq errors -o json | python3 -c '
import datetime, json, sys
rows = json.load(sys.stdin)
assert len(rows) == 3 and not any(row["sampled"] for row in rows), rows
first, last = (datetime.datetime.fromisoformat(rows[0][name].replace("Z", "+00:00")) for name in ("first", "last"))
assert datetime.timedelta(minutes=29) < last - first < datetime.timedelta(minutes=31), rows[0]
assert rows[0]["id"] == int(sys.argv[1]), rows[0]
retry = "dq retry --tag pay --error \x27exit status 65: no such account: *\x27 --finished-since 24h"
assert rows[0]["retry"] == retry, rows[0]
assert rows[2]["retry"] is None, rows[2]' "$last"
}

@test 'a task counts once, in the group of its last failure' {
    id=$(failed pay 2 'exit status 1' 9)
    sql "INSERT INTO dq_attempt (task_id, version, attempt, start_time, finish_time, outcome, error_stack)
         VALUES ($id, 9, 2, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 'exit', 'exit status 2')"
    [ "$(shown | cut -d '|' -f 2-5)" = $'error|failures|failed|retrying\nexit status 2|1|1|0\nexit status 1|1|0|0' ]
}

@test 'errors takes a period and a tag, and is well formed when there is nothing' {
    fill
    [ "$(shown --since 15m | cut -d '|' -f 1)" = $'tag\nmail\npay' ]
    [ "$(shown --since 3d -t 'o*' | cut -d '|' -f 1-2)" = $'tag|error\nold|exit status 65: no such account: *' ]
    [ "$(dq errors -t nothing -o json)" = '[]' ]
    [ "$(dq errors -t nothing | wc -l)" -eq 1 ]
    run dq errors --since +1h
    [ "$status" -eq 64 ]
}

@test 'a terminal gets a table of 80 columns and, in full, the commands that retry' {
    fill
    LC_ALL=C.UTF-8 "$DQ_TOP/test/lib/terminal" 80 "$DQ_BIN/dq" errors --since 3d </dev/null | tr -d '\r' >seen
    cat seen
    [ "$(sed '/^$/,$d' seen | sed 's/\x1b\[[0-9;]*m//g' | LC_ALL=C.UTF-8 wc -L)" -le 80 ]
    grep -qE ' [0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} ' seen
    grep -qxF "  dq retry --tag pay --error 'exit status 65: no such account: *' --finished-since 3d" seen
    [ "$(grep -c 'dq retry' seen)" -eq 3 ]
    failed pay 2 'App\\Jobs\\Pay failed: order 17' 5
    dq errors | grep -F 'Jobs' | tail -n 1 >line
    eval "$(<line) --dry-run"
    grep -qF 'App\Jobs\Pay failed: order *' line
}

@test 'nothing in an error or a tag acts on a terminal or on a shell' {
    id=$(failed x 2 x 1)
    sql "UPDATE dq_task SET tag = CONCAT('a', CHAR(27), '[2J\$(touch y)') WHERE id = $id;
         UPDATE dq_attempt SET error_stack = CONCAT('it''s ', CHAR(27), '[2J', CHAR(10), '\$(touch z)')"
    for format in table tsv json ndjson; do
        dq errors -o "$format" | LC_ALL=C tr -d '\n\t' >"$format"
        LC_ALL=C refute grep '[[:cntrl:]]' "$format"
    done
    dq errors -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["retry"])' |
        sed 's/^dq retry/printf "%s|"/' | sh >words
    [[ $(cat words) == *'|it'"'"'s ?[*J?$(touch z)|--finished-since|24h|' ]]
    [ ! -e z ]
    [ ! -e y ]
}

@test 'many failures are all read, unless time is up: then the counts are marked, and a note says so' {
    sql "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time)
         SELECT 'many', '', 2, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM $(numbers 16000);
         SET @least = (SELECT MIN(id) FROM dq_task);
         INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome, error_stack)
         SELECT id, 1, 1, UTC_TIMESTAMP(3) - INTERVAL 16000 SECOND + INTERVAL id - @least SECOND, 'exit',
                CONCAT('row ', id) FROM dq_task"
    began=${EPOCHREALTIME/./}
    dq errors -o ndjson 2>err >rows
    if [ -s err ]; then # this machine is slow
        [ $((${EPOCHREALTIME/./} - began)) -ge 700000 ] # FAILURES_NEWEST_MS
        grep -q '"sampled":true' rows
    else
        grep -q '"failures":16000,"failed":16000,"retrying":0,.*"sampled":false' rows
    fi
    first=$(sed 's/.*"first":"\([^"]*\)".*/\1/' rows)
    dq errors --exact -o ndjson >rows
    grep -q '"failures":16000,"failed":16000,"retrying":0,' rows
    grep -qF "\"first\":\"$first\"" rows
}

@test 'beyond 200,000 failures no match among those that were read is not taken for no failure' {
    sql "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time)
         VALUES ('many', '', 2, '2026-01-01', '2026-01-01'), ('rare', '', 2, '2026-01-01', '2026-01-01');
         INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome, error_stack)
         SELECT IF(seq = 3000, t.rare, t.many), seq, 1,
                UTC_TIMESTAMP(3) - INTERVAL 40000 SECOND + INTERVAL seq * 100000 MICROSECOND,
                'exit', 'x' FROM $(numbers 206000), (SELECT MIN(id) AS many, MAX(id) AS rare FROM dq_task) t"
    only='only the failures since 20??-??-?? ??:??:?? and the oldest 1000 were read; --exact reads all'
    for format in table tsv json ndjson; do
        try dq -q errors --tag rare -o $format
        [ "$rc" -eq 1 ]
        # shellcheck disable=SC2053  # a pattern
        [[ $err == "dq: errors: none found, but "$only ]]
        try dq errors --tag many -o $format
        [ "$rc" -eq 0 ]
        # shellcheck disable=SC2053  # a pattern
        [[ $err == $only ]]
        case $format in
        table) [[ $out =~ \ [0-9]+\+\ +1\+\ +0\+\  ]] ;;
        tsv) [[ $out == *$'\ttrue\tdq retry '* ]] ;;
        json | ndjson) [[ $out == *'"sampled":true'* ]] ;;
        esac
    done
    try dq errors --tag rare
    [[ $err != *'nothing failed'* ]]
    try dq -q errors --tag rare --exact
    [ "$rc" -eq 0 ]
    [[ $out == *rare* ]]
}

@test 'if not all commands that retry are shown, their number is' {
    sql "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time)
         SELECT CONCAT('t', seq), '', 2, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM $(numbers 13);
         INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome, error_stack)
         SELECT id, 1, 1, UTC_TIMESTAMP(3), 'exit', 'x' FROM dq_task"
    dq errors >rows
    [ "$(grep -c '^  dq retry' rows)" -eq 10 ]
    grep -qx '  and 3 more: dq errors -o json has each' rows
}

@test 'the command that errors prints retries the failed tasks of that error and time, and no others' {
    fill
    failed pay 2 'exit status 65: no such account: 1' 3000 >/dev/null
    failed pay 2 'exit status 66: closed' 35 >/dev/null
    retry() { dq errors "$@" -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["retry"])'; }
    [[ $(eval "$(retry --since 3d --until 25m) --dry-run -q") == '3 tasks '* ]]
    [[ $(eval "$(retry --since 1h --until 45m) --dry-run -q") == '1 task '* ]]
    eval "$(retry) -y"
    sql 'SELECT tag, status, COUNT(*) FROM dq_task GROUP BY tag, status ORDER BY tag, status' >states
    [ "$(tr '\t\n' ' ,' <states)" = 'cancelled 4 1,mail 2 1,old 2 1,pay 0 3,pay 2 2,pay 3 1,' ]
}

@test 'a command that would take other errors, too, only shows the tasks, and says so' {
    for error in 'order 1' 'order 2' 'order 3: no receipt' '4711' "quoted '1' x" "quoted 'a' x"; do
        failed pay 2 "${error//\'/\'\'}" 5 >/dev/null
    done
    long=$(printf 'deep %0300d')
    long=${long//0/x}
    failed long 2 "at 7: ${long} end" 5 >/dev/null
    failed long 2 'at 7 end' 5 >/dev/null
    failed other 2 'order 1' 5 >/dev/null
    dq errors -o json | python3 -c '
import json, sys
for row in json.load(sys.stdin):
    print(row["failed"], row["retry"], sep="\t")' >rows
    [ "$(wc -l <rows)" -eq 7 ]
    [ "$(grep -c -e '--dry-run  # it may take other errors' rows)" -eq 3 ]
    while IFS=$'\t' read -r failed command; do
        [[ $command == *' --dry-run  # '* ]] || [[ $(eval "$command --dry-run -q") == "$failed task"* ]]
    done <rows
    is 'status = 2' 9
    eval "$(grep -F "'order *' " rows | grep -F 'tag pay' | cut -f 2)" | grep -q '^3 tasks would be retried'
    dq errors | grep -F "'order *' --finished-since 24h --dry-run  # it may"
}
