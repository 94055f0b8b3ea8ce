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

@test 'of very many failures a sample is read and marked; --exact reads all' {
    sql "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time)
         SELECT 'many', '', 2, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM $(numbers 12000);
         SET @least = (SELECT MIN(id) FROM dq_task);
         INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome, error_stack)
         SELECT id, 1, 1, UTC_TIMESTAMP(3) - INTERVAL 12000 SECOND + INTERVAL id - @least SECOND, 'exit',
                CONCAT('row ', id) FROM dq_task"
    dq errors 2>err >rows
    grep -qE ' 6000\+ +6000\+ +0\+ ' rows
    [[ $(cat err) == 'only the newest 5000 failures and the oldest 1000 were read; --exact reads all' ]]
    dq -q errors -o ndjson >rows
    grep -q '"failures":6000,.*"sampled":true' rows
    first=$(sed 's/.*"first":"\([^"]*\)".*/\1/' rows)
    dq errors --exact -o ndjson >rows
    grep -q '"failures":12000,"failed":12000,"retrying":0,' rows
    grep -qF "\"first\":\"$first\"" rows
}

@test 'a noisy tag hides no failure of a quiet one; if it may, a note says so' {
    failed quiet 2 'exit status 65: seldom' 600 >/dev/null
    noisy=$(failed noisy 0 busy 0)
    sql "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome, error_stack)
         SELECT $noisy, 10 + seq, 1, UTC_TIMESTAMP(3) - INTERVAL 110 - seq DIV 1000 MINUTE, 'exit', 'busy'
         FROM $(numbers 50000);
         INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome, error_stack)
         SELECT $noisy, 100000 + seq, 1, UTC_TIMESTAMP(3) - INTERVAL 900 MINUTE, 'exit', 'busy'
         FROM $(numbers 1500)"
    # 20,000 others are after that of the quiet tag, and more than 1,000 before it
    for glob in quiet 'q*t'; do
        shown -t "$glob" --until 90m 2>err | cut -d '|' -f 1-3 >rows
        [ "$(tail -n +2 rows)" = 'quiet|exit status 65: seldom|1' ]
        [ ! -s err ]
    done
    # 50,000 are
    dq errors -t quiet 2>err >rows
    echo 'only the newest 25000 failures and the oldest 5000 of all tags were searched; --exact reads all' | diff err -
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

@test 'no match among those that were read is not taken for no failure' {
    sql "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time)
         VALUES ('many', '', 2, '2026-01-01', '2026-01-01'), ('rare', '', 2, '2026-01-01', '2026-01-01');
         INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome, error_stack)
         SELECT IF(seq = 10000, t.rare, t.many), seq, 1, UTC_TIMESTAMP(3) - INTERVAL 40000 SECOND + INTERVAL seq SECOND,
                'exit', 'x' FROM $(numbers 40000), (SELECT MIN(id) AS many, MAX(id) AS rare FROM dq_task) t"
    for format in table tsv json ndjson; do
        try dq -q errors --tag rare -o $format
        [ "$rc" -eq 1 ]
        [[ $err == 'dq: errors: none found, but only the newest 25000 failures and the oldest 5000 of all tags'* ]]
        try dq -q errors --tag rare -o $format --exact
        [ "$rc" -eq 0 ]
        [[ $out == *rare* ]]
        try dq errors --tag many -o $format
        [ "$rc" -eq 0 ]
        [[ $err == *'only the newest 25000 failures and the oldest 5000 of all tags were searched; --exact reads all' ]]
        case $format in
        table) [[ $out == *30000+* ]] ;;
        tsv) [[ $out == *$'\t1\tdq retry '* ]] ;;
        json | ndjson) [[ $out == *'"sampled":true'* ]] ;;
        esac
    done
}
