# What fails does not look like an empty result: stdout stays empty up to the first row, and the exit status says why.

load ../lib/sandbox

setup()
{
    sandbox_clear
    new_account partial
    own_ini 's/^user = .*/user = partial/'
    export DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini
}

# may_use_all_but TABLE
may_use_all_but()
{
    new_account partial
    sql "$(sql "SELECT CONCAT('GRANT SELECT, INSERT, UPDATE, DELETE ON ', table_name, ' TO partial@localhost;')
                FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name NOT IN ('', '$1')")"
}

# Each verb that reads, and each that may change something, as far as it works without a terminal.
commands()
{
    cat <<END
add t
cancel --dry-run -t t
errors
errors -t t --exact
events
export
forecast
import --dry-run $BATS_TEST_TMPDIR/exported
init --plan
list
list -s done
list --since 1h --error x
logs $1
pause other
pollers
pollers -v
purge --dry-run
reschedule --dry-run -t t --in 1h
resume other
resume t --over 1m --dry-run
show $1
show $2 $1
stats
stats --by hour
stats -o prometheus
tags
version -v
wait $1
why $2
why -t t
END
}

# The output of a command that is denied a table ends before its first row, in every format.
@test 'a command that lacks a right prints nothing to stdout and exits with 77' {
    may_use_all_but ''
    done=$(dq -q add t) pending=$(dq -q add t)
    sql "UPDATE dq_task SET status = 1, live = NULL, finish_time = UTC_TIMESTAMP(3), output = 'o' WHERE id = $done"
    dq -q export >"$BATS_TEST_TMPDIR/exported"
    sql "UPDATE dq_task SET id = id + 1000000"
    done=$((done + 1000000)) pending=$((pending + 1000000))
    denied=0
    for table in dq_task dq_attempt dq_limit dq_poller dq_handler dq_rest dq_minute dq_event dq_output; do
        may_use_all_but $table
        while read -r command; do
            for format in table tsv json; do
                try dq -o $format $command <<<'' >"$BATS_TEST_TMPDIR/said"
                [ "$rc" -ne 64 ] || continue # not one of its formats
                [ "$rc" -gt 1 ] || continue
                if [ -n "$out" ] || [ "$rc" -ne 77 ]; then
                    echo "without $table: dq -o $format $command: $(cat "$BATS_TEST_TMPDIR/said")" >&2
                    touch "$BATS_TEST_TMPDIR/bad"
                fi
                denied=$((denied + (rc == 77)))
            done
        done < <(commands "$done" "$pending")
    done
    echo "$denied were denied"
    [ ! -e "$BATS_TEST_TMPDIR/bad" ]
    [ "$denied" -gt 100 ]
}

@test 'json whose end could not be read is not closed; the other formats end after a whole row' {
    for format in json ndjson tsv; do
        may_use_all_but ''
        done=$(dq -q add t) pending=$(dq -q add t)
        sql "UPDATE dq_task SET status = 1, live = NULL WHERE id = $done"
        fresh "$BATS_TEST_TMPDIR/rows"
        dq wait -o $format "$done" "$pending" >"$BATS_TEST_TMPDIR/rows" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
        wait_until grep -q "$done" "$BATS_TEST_TMPDIR/rows"
        sql 'REVOKE SELECT ON dq_task FROM partial@localhost'
        rc=0
        wait $! || rc=$?
        cat "$BATS_TEST_TMPDIR/err" "$BATS_TEST_TMPDIR/rows"
        [ "$rc" -eq 77 ]
        case $format in
        json) refute python3 -m json.tool "$BATS_TEST_TMPDIR/rows" ;;
        ndjson) python3 -m json.tool "$BATS_TEST_TMPDIR/rows" ;;
        tsv) [ "$(tail -n 1 "$BATS_TEST_TMPDIR/rows" | cut -f 1,2)" = "$done"$'\tdone' ] ;;
        esac
    done
}

@test 'dq init says which columns an account cannot see, and neither misses them nor plans to make them' {
    for grants in '' 'CREATE ON dq.*' 'CREATE, ALTER, INDEX ON dq.*' 'CREATE, ALTER, INDEX, INSERT ON dq.*' \
        'SELECT (name) ON dq.dq_meta' 'SELECT ON dq.dq_meta' 'EXECUTE ON dq.*'; do
        new_account partial
        [ -z "$grants" ] || sql "GRANT $grants TO partial@localhost"
        for option in '' --plan; do
            try dq init $option
            printf '%s: init %s: %s %s %s\n' "$grants" "$option" "$rc" "$out" "$err"
            [ "$rc" -eq 77 ]
            [ -z "$out" ]
            [ -z "$grants" ] || [[ $err == *'SELECT command denied'* ||
                $err == *'this account may not read all columns of dq_'*': grant it SELECT on them'* ]]
        done
    done
}
