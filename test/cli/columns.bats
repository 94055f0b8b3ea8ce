# The names of columns: one for each thing, the same in tables, TSV, JSON and the manual.

load ../lib/sandbox

setup()
{
    sandbox_clear
    cd "$BATS_TEST_TMPDIR"
}

# The verbs that print rows of columns, one per line.
verbs()
{
    echo "list -s all -c $(dq list -c help | awk '{ print $1 }' | paste -sd,)"
    echo 'tags'
    echo 'stats'
    echo 'stats --by hour'
    echo 'forecast'
    echo 'pollers'
    echo 'errors'
    echo 'events'
    echo 'pollers -v'
}

# The names in the heading of a table are separated by two blanks.
heading() { sed -n 1p | sed 's/   */\n/g' | tr '[:upper:] ' '[:lower:]_' | sed 's|/|_per_|; s/_*$//' | grep .; }

members()
{
    head -n 1 | jq -r 'keys_unsorted[] | rtrimstr("_base64")'
}

documented()
{
    sed -n '/^\.Sh COLUMNS/,/^\.Sh FILES/p' "$DQ_TOP/doc/dq.1" | sed -n 's/^\.It Cm //p' | tr -d ' ' | tr , '\n'
}

fill()
{
    id=$(dq -q add known body --key k)
    sql "INSERT INTO dq_attempt (task_id, version, attempt, start_time, finish_time, outcome, output)
         VALUES ($id, 1, 1, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 'exit', 'x');
         INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after, version,
                                lease, handlers)
         VALUES
         (REPEAT('a', 16), 'h', 7, 'resident', 8, 3, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 60000, '0.1.0', 60000, 0)"
}

@test 'a column has the same name in a table, in TSV and in JSON' {
    fill
    while read -r -a verb; do
        echo "dq ${verb[*]}"
        dq "${verb[@]}" -o ndjson | members >json
        dq "${verb[@]}" -o tsv | sed -n 1p | tr '\t' '\n' >tsv
        [ "$(wc -l <json)" -gt 5 ]
        # a program's formats show the same; a table, people's choice of that
        diff json tsv
        dq "${verb[@]}" | heading | grep -vxFf json | { refute grep .; }
    done < <(verbs)
    dq show "$id" -o json | members | sort >json
    # "waits" is a remark
    dq show "$id" | sed -n 's/^\([a-z_]*\)   *[^ ].*/\1/p' | grep -vx waits | grep -vxFf json | { refute grep .; }
    dq show "$id" | sed -n '/^attempts:/,$p' | sed 1d | heading >table
    dq show "$id" -o json | jq -c '.attempts[0]' |
        members >json
    [ "$(wc -l <table)" -eq 10 ]
    grep -vxFf json table | { refute grep .; }
}

@test '--columns chooses among the columns that --columns help lists, without a server' {
    local verb chosen
    fill
    dq -q pause known
    for verb in 'list -s all' tags events pollers 'pollers -v'; do
        DQ_CONFIG=/nonexistent/dq.ini dq $verb --columns help >help
        [ "$(grep -cE '^[a-z_]+ +[^ ]+' help)" -eq "$(wc -l <help)" ]
        dq $verb -o ndjson | members >all
        grep -vx body all | diff <(awk '$1 != "body" { print $1 }' help) -
        chosen=$(tac all | sed -n 2,4p | paste -sd,)
        [ "$(dq $verb -c "$chosen" -o tsv | sed -n 1p | tr '\t' ,)" = "$chosen" ]
        [ "$(dq $verb -c "$chosen" | heading | paste -sd,)" = "$chosen" ]
        try dq $verb --columns nosuch
        [ "$rc" -eq 64 ]
        [[ $err == *'there is no column "nosuch"'* ]]
    done
}

@test 'dq(1) lists the name of every column, and no other' {
    fill
    {
        while read -r -a verb; do
            dq "${verb[@]}" -o ndjson | members
        done < <(verbs)
        dq show "$id" -o json | members
        dq show "$id" -o json |
            jq -c '.attempts[0]' | members
        dq -q add known -o ndjson | members
        { dq doctor -o ndjson || true; } | members
    } | sort -u >printed
    documented | sort -u >documented
    [ "$(wc -l <documented)" -gt 50 ]
    diff documented printed
}

@test 'dq(1) says which column of dq_task has another name' {
    sed -nE 's/^    X\([A-Z_]+, "`?([a-z_]+)`?", "([a-z_]+)", .*/\2 \1/p' "$DQ_TOP/src/base/task.h" |
        awk '$1 != $2 && $1 != "claim"' >differ
    [ "$(wc -l <differ)" -gt 5 ]
    sed -n '/^Of a task$/,/^Of an attempt$/p' "$DQ_TOP/doc/dq.1" |
        awk '/^\.It Cm / { name = $3 } /^\.Pq Li / { print name, $3 }' |
        diff differ -
}

@test 'the output of list, in NDJSON, TSV and CSV, can be added again' {
    head -c 300 /dev/urandom >bytes
    printf 'a\033[31m\n\t\\x\r"\303\244' | dq -q add t - --key 'k\ "1' --in 90m
    dq -q add t @bytes --at 2031-01-02T03:04:05.678Z --max-attempts 7
    dq -q add h.ü '' --key k2
    what="SELECT tag, task_key, SHA2(message_body, 256), expected_time, max_attempts FROM dq_task
          ORDER BY tag, task_key"
    before=$(sql "$what")
    [ "$(wc -l <<<"$before")" -eq 3 ]
    for format in ndjson tsv csv; do
        dq list -o "$format" >rows
        sandbox_clear
        [ "$(dq add --from - <rows 2>&1)" = '3 added, 0 kept' ]
        diff <(sql "$what") - <<<"$before"
    done
    # a name that dq list does not print is still a mistake
    echo '{"tag":"t","statsu":"pending"}' >odd
    run dq add --from odd
    [ "$status" -eq 65 ]
    [[ $output == *'unknown member "statsu" (did you mean "status"?)'* ]]
    echo '{"tag":"t","in":"1h","expected":"2031-01-02"}' >odd
    run dq add --from odd
    [ "$status" -eq 65 ]
    [[ $output == *'"in", "at" and "expected" cannot be combined'* ]]
    echo '{"tag":"t","delay":"1h"}' >odd
    run dq add --from odd
    [ "$status" -eq 65 ]
    [[ $output == *'"delay" is no time to start: use "in"'* ]]
    printf 'id\ttag\tbdoy\n1\tt\tx\n' >odd.tsv
    run dq add --from odd.tsv
    [ "$status" -eq 65 ]
    [[ $output == *'odd.tsv:1: heading: "bdoy" is not one of '* ]]
}
