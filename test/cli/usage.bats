# The command line itself: verbs, options, help, what a wrong one gets. No database is needed for any of it.

setup()
{
    DQ_TOP=${DQ_TOP:-$BATS_TEST_DIRNAME/../..}
    DQ_BIN=${DQ_BIN:-$DQ_TOP/bin}
    export DQ_CONFIG=$BATS_TEST_TMPDIR/absent.ini
    cd "$BATS_TEST_TMPDIR" # examples write files
}

dq() { "$DQ_BIN/dq" "$@"; }

# refused STATUS TEXT ARG...: exits with that status, prints nothing on stdout and one line with TEXT on stderr.
refused()
{
    local status=$1 text=$2 rc=0
    shift 2
    dq "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" </dev/null || rc=$?
    cat "$BATS_TEST_TMPDIR/err"
    [ "$rc" -eq "$status" ] && [ ! -s "$BATS_TEST_TMPDIR/out" ] && [ "$(wc -l <"$BATS_TEST_TMPDIR/err")" -eq 1 ] &&
        grep -qF -- "$text" "$BATS_TEST_TMPDIR/err"
}

verbs() { dq help | awk '/^[a-z].*:$/ { verbs = !/^options/ } verbs && /^  [a-z]/ { print $1 }'; }

@test 'without a command, dq prints its help, and exits with 64 so that a script notices' {
    rc=0
    dq >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    [ "$rc" -eq 64 ]
    [ ! -s "$BATS_TEST_TMPDIR/err" ]
    dq help | diff - "$BATS_TEST_TMPDIR/out"
}

@test 'an unknown command gets a suggestion' {
    refused 64 'dq: unknown command "lsit": did you mean "list"?' lsit
    refused 64 'dq: unknown command "cancl": did you mean "cancel"?' cancl 7
    refused 64 'dq: unknown command "frobnicate": see dq help' frobnicate
}

@test 'an unknown option gets a suggestion' {
    refused 64 'dq: list: unknown option "--stauts": did you mean --status?' list --stauts done
    refused 64 'dq: add: unknown option "--max-atempts": did you mean --max-attempts?' add --max-atempts=3 t
    refused 64 'dq: list: unknown option "-Z": see dq help list' list -Z
    refused 64 'dq: unknown option "--colour": did you mean --color?' --colour list
    refused 64 'dq: unknown option "--frobnicate": see dq help' --frobnicate list
}

@test 'an invalid or missing value of an option is explained' {
    refused 64 'dq: add: option --in needs a value: --in D' add t --in
    refused 64 'dq: list: option --no-header takes no value' list --no-header=1
    refused 64 'option "--due" is ambiguous' list --due x
    refused 64 '--limit: "ten" is not a number' list -n ten
    refused 64 '--limit: "-1" is not a number' list -n -1
    refused 64 '--max-attempts: 0 is out of range: 1 to 4294967295' add t --max-attempts 0
    refused 64 '--attempted: 0 is out of range: 1 to 4294967295' add t --attempted 0
    refused 64 '--from cannot be combined with' add --from - --attempted 1
    refused 64 '--over requires --from' add t --over 1h
    refused 64 '--output: "xml" is not one of table, json, ndjson, tsv, id' list -o xml
    refused 64 '--status: unknown status "pendign": did you mean pending?' list -s done,pendign
    refused 64 '--sort: "age" is not one of expected, -expected, id, -id' list --sort age
    refused 64 '--key-conflict: "drop" is not one of keep, error, replace, again' add t --key k --key-conflict drop
}

@test 'an error in a duration or time is reported with its position' {
    refused 64 'dq: add: --in: duration "10x": at character 3: unknown unit "x"' add t --in 10x
    refused 64 'at character' add t --in 10
    refused 64 'at character' add t --in 1h1h
    refused 64 '--at: time "2026-02-31"' add t --at 2026-02-31
    refused 64 '--at: ' add t --at 2026-11-21T25:00:00Z
    refused 64 '--timeout: ' wait 1 --timeout soon
    refused 64 '--due-before: ' list --due-before 2026-13-01
}

@test 'a duration given as a time, or a time as a duration, gets the other option' {
    refused 64 'this is a duration, not a time (+10m is ten minutes from now): did you mean --in?' add t --at 5m
    refused 64 ': did you mean --at?' add t --in 17:00
    refused 64 ': did you mean --at?' add t --in 'tomorrow 9am'
    refused 64 ': did you mean --in?' reschedule 1 --at 5m
    refused 64 ': did you mean --for?' pause t --until 2h
    DQ_CONFIG=/nonexistent refused 64 'unknown unit "fortnight"' add t --at '+1 fortnight'
    DQ_CONFIG=/nonexistent refused 64 'this host has no such time zone' add t --at '5pm Europe/Atlantis'
}

@test 'a local time that does not exist, or exists twice, is refused with both readings' {
    TZ=Europe/Berlin refused 64 '2026-03-29T' add t --at '2026-03-29 02:30'
    TZ=Europe/Berlin refused 64 '2026-10-25T02:30:00+01:00' add t --at '2026-10-25 02:30'
    TZ=Europe/Berlin refused 64 '2026-10-25T02:30:00+02:00' add t --at '2026-10-25 02:30'
}

@test 'data at standard input that no body reads is an error' {
    text='standard input has data, and no BODY is given: add - to read it, or "" for an empty body'
    mkfifo "$BATS_TEST_TMPDIR/pipe"
    exec 8<>"$BATS_TEST_TMPDIR/pipe"
    echo body >&8
    rc=0
    dq add hello --sql <&8 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    exec 8>&-
    [ "$rc" -eq 64 ]
    grep -qF "$text" "$BATS_TEST_TMPDIR/err"
    echo body >"$BATS_TEST_TMPDIR/body"
    rc=0
    dq add hello --sql <"$BATS_TEST_TMPDIR/body" 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    [ "$rc" -eq 64 ]
    grep -qF "$text" "$BATS_TEST_TMPDIR/err"
}

@test 'an empty body needs no option where standard input is not meant: cron, ssh, a loop over a file' {
    empty="CALL dq_add('hello', NULL, X'', 0, @id);"
    [ "$(dq add hello --sql </dev/null)" = "$empty" ]
    [ "$(dq add hello --sql <&-)" = "$empty" ]
    [ "$(: | dq add hello --sql)" = "$empty" ]
    mkfifo "$BATS_TEST_TMPDIR/open"
    exec 8<>"$BATS_TEST_TMPDIR/open" # a pipe to which nobody writes
    [ "$(dq add hello --sql <&8)" = "$empty" ]
    exec 8>&-
    [ "$(echo body | dq add hello '' --sql)" = "$empty" ]
    printf 'one\ntwo\nthree\n' >"$BATS_TEST_TMPDIR/tags"
    while read -r tag; do dq add "$tag" --sql; done <"$BATS_TEST_TMPDIR/tags" >"$BATS_TEST_TMPDIR/out"
    [ "$(grep -oE "one|two|three" "$BATS_TEST_TMPDIR/out" | tr '\n' ' ')" = 'one two three ' ]
}

@test 'missing, superfluous and contradictory arguments are refused before any file or connection is opened' {
    refused 64 'dq: show: missing argument: dq show ID... [--full]' show
    refused 64 'dq: tags: unexpected argument "x"' tags x
    refused 64 'dq: add: missing argument: dq add TAG' add
    refused 64 '--in and --at cannot be combined' add t --in 1m --at @1790000000
    refused 64 '--plan and --print-sql cannot be combined' init --plan --print-sql
    refused 64 '--skip requires --from' add t --skip 3
    refused 64 '--format requires --from' add t --format csv
    refused 64 '--refresh requires --html' stats --refresh 5s
    refused 64 '--dry-run requires --over' resume t --dry-run
    refused 64 '--follow and --until cannot be combined' events -f --until 1h
    refused 64 '--from cannot be combined with a tag' add t --from x.ndjson
    refused 64 '-o id is not available with it' add --from x.ndjson --dry-run -o id
}

@test 'tags and keys are checked before any file or connection is opened' {
    refused 65 'a tag must not be empty' add ''
    refused 65 'dq: add: ' add "$(printf 'a\nb')"
    refused 65 'dq: add: ' add "$(printf 'a\033[31m')"
    refused 65 'dq: add: ' add "$(printf 'a\302\205b')"
    refused 65 'dq: add: ' add "$(printf 'a\377b')"
    refused 65 'dq: add: ' add "$(printf '%0129d' 0)"
    refused 65 'dq: add: ' add -- -rf
    refused 65 'a tag must not contain white space: byte 5 is U+0020' add 'mail '
    refused 65 'a tag must not contain white space: byte 2 is U+00A0' add "$(printf 'a\302\240')"
    refused 65 'a key must not end with white space: byte 2 is U+0020' add t --key 'k '
    refused 65 'dq: add: ' add t --key ''
    refused 65 'dq: add: ' add t --key "$(printf '%0256d' 0)"
    refused 65 'cannot open /nonexistent/body' add t @/nonexistent/body
}

@test 'a comma in a glob is an error that says how to write it' {
    for verb in list export cancel retry run-now reschedule delete stats tags top check errors forecast events purge; do
        refused 64 "dq: $verb: --tag: a comma does not separate tags; write --tag mail --tag sms.*,x, or ? for" \
            "$verb" -t 'mail,sms.*,x'
    done
    refused 64 '--error: it has a line break; in a glob, ? matches that, too' retry --error $'a\nb'
}

@test 'an option that takes one value is refused the second time' {
    refused 64 'dq: list: --limit can be given only once' list -n 5 --limit 6
    refused 64 'dq: cancel: --body can be given only once' cancel --body a --body b
    refused 64 'dq: list: --since can be given only once' list --since 1h --since 2h
    refused 64 'dq: add: --at can be given only once' add t --at tomorrow --at friday
    refused 64 'dq: why: --tag can be given only once' why -t a -t b
}

@test 'a blank at the end of a tag or key that selects tasks is refused, because the database ignores it' {
    for verb in list export cancel retry run-now delete stats tags top check errors forecast events purge why; do
        refused 64 "dq: $verb: --tag: \"a* \" ends with a blank, which the database ignores; leave it out" \
            "$verb" -t 'a* '
    done
    for verb in list export cancel retry show why logs wait events; do
        refused 64 "dq: $verb: --key: \"k \" ends with a blank" "$verb" -k 'k '
    done
}

@test 'help, version and the list of columns work without configuration' {
    [ "$(verbs | wc -l)" -ge 18 ]
    dq help add | grep -q -- '--max-attempts N'
    dq help options | grep -q -- '--config FILE  *read this'
    dq add --help | diff - <(dq help add)
    dq -h list | diff - <(dq help ls)
    dq --help | diff - <(dq help)
    dq --version | grep -qE '^dq +[0-9]+\.[0-9]+'
    dq version -o json | grep -qE '^\{"dq":"[0-9.]+","client":"[^"]+","schema":[0-9]+,"server":null,.*"dqds":null\}$'
    dq list --columns help | grep -qE '^expected +when it is due$'
    refused 64 'dq: help: unknown command "lits": did you mean "list"?' help lits
}

@test 'help has five groups, in the order of use' {
    [ "$(dq help | sed -n 's/^\([a-z][a-z ]*\):$/\1/p' | paste -sd,)" = 'look,change,operate,write handlers,help' ]
    [[ $(verbs | paste -sd' ') == 'list show why '*' check '*' add cancel '*' init doctor '*' help '* ]]
}

@test 'help filters explains each filter, and the help of a command only five' {
    dq help filters >"$BATS_TEST_TMPDIR/filters"
    [ -z "$(cat "$BATS_TEST_TMPDIR/filters" <(dq help) | awk 'length > 80')" ]
    grep -q -- '--finished-since TIME|D' "$BATS_TEST_TMPDIR/filters"
    [ "$(tail -n 1 "$BATS_TEST_TMPDIR/filters")" = \
        'commands that take them: list cancel retry reschedule run-now delete export' ]
    for verb in list cancel retry reschedule run-now delete export; do
        dq help "$verb" >"$BATS_TEST_TMPDIR/help"
        for filter in tag status key error since; do grep -q -- " --$filter " "$BATS_TEST_TMPDIR/help"; done
        [ "$(grep -c -- ' --body ' "$BATS_TEST_TMPDIR/help")" -eq 0 ]
        grep -q 'dq help filters' "$BATS_TEST_TMPDIR/help"
    done
    refused 64 'unknown option "--created-since"' list --created-since 1h
}

@test 'a usage is not wrapped within brackets' {
    for verb in $(verbs); do
        dq help "$verb" | sed '/^$/,$d' | awk -v verb="$verb" '
            gsub(/\[/, "[") != gsub(/\]/, "]") { print verb ": " $0; odd = 1 }
            END { exit odd }'
    done
}

@test 'the help of each command has a usage, a summary, and no line over 80 columns' {
    for verb in $(verbs); do
        dq help "$verb" | grep -q "^usage: dq $verb" || { echo "$verb: usage"; false; }
        dq help "$verb" | grep -q "^$verb: " || { echo "$verb: summary"; false; }
        [ -z "$(dq help "$verb" | awk 'length > 80')" ] || { echo "$verb: too wide"; false; }
    done
}

@test 'the help of each command has examples that are accepted, and one line for common options' {
    for verb in $(verbs); do
        dq help "$verb" >"$BATS_TEST_TMPDIR/help"
        grep -qE '^options of every command \(dq help options\):.* -o ' "$BATS_TEST_TMPDIR/help"
        [ "$(grep -c -- '--config' "$BATS_TEST_TMPDIR/help")" -eq 1 ]
        sed -n '/^examples:$/,/^$/s/^  dq //p' "$BATS_TEST_TMPDIR/help" >"$BATS_TEST_TMPDIR/examples"
        [ -s "$BATS_TEST_TMPDIR/examples" ] || { echo "$verb: no examples"; false; }
        while IFS= read -r example; do
            echo "dq $example"
            [[ " ${example%%|*} " == *" $verb "* ]]
            # with --help, options are read, and nothing is done
            eval "set -- ${example%%[|&]*} --help"
            # a command of a verb has its own
            own=$BATS_TEST_TMPDIR/own
            dq help "$1" "${2#--help}" >"$own" 2>/dev/null || cp "$BATS_TEST_TMPDIR/help" "$own"
            dq "$@" | diff -q - "$own"
        done <"$BATS_TEST_TMPDIR/examples"
    done
}

@test 'init --print-sql prints the migrations without a server' {
    dq init --print-sql | grep -q '^CREATE TABLE IF NOT EXISTS dq_task ($'
    dq init --print-sql --no-routines | tail -n 1 | grep -q "schema_version"
    dq init --print-sql 1 | diff - <(dq init --print-sql)
    refused 64 'there is no migration "77"' init --print-sql 77
}

@test 'add --dry-run of one task says how its time was read, without a server' {
    [ "$(TZ=UTC dq add t body --at '24 Dec 2031 18:00' --dry-run 2>"$BATS_TEST_TMPDIR/err" | tr -s ' ')" = \
        $'expected 2031-12-24 18:00:00.000 +00:00\nresult valid' ]
    [[ $(cat "$BATS_TEST_TMPDIR/err") == 'due 2031-12-24T18:00:00.000Z, in '* ]]
    [[ $(dq add t --in 2h --dry-run 2>&1 >"$BATS_TEST_TMPDIR/out") == 'due '*', in 2h' ]]
    refused 65 'a tag must not contain white space' add 'a b' --dry-run
    refused 64 '@1790000000' add t --at 1790000000 --dry-run
}

@test 'add --from --dry-run checks a file without a server' {
    printf '{"tag":"a","in":"1m"}\n\n{"tag":"b","at":"tomorrow 09:00"}\n' >"$BATS_TEST_TMPDIR/x.ndjson"
    [ "$(dq add --from "$BATS_TEST_TMPDIR/x.ndjson" --dry-run)" = '2 tasks are valid' ]
    printf '{"tag":"a"}\n{"tag":""}\n' >"$BATS_TEST_TMPDIR/y.ndjson"
    refused 65 'y.ndjson:2: a tag must not be empty' add --dry-run --from "$BATS_TEST_TMPDIR/y.ndjson"
    printf '{"tag":"a"}\n{"tag":"mail "}\n' >"$BATS_TEST_TMPDIR/y.ndjson"
    refused 65 'y.ndjson:2: a tag must not contain white space' add --dry-run --from "$BATS_TEST_TMPDIR/y.ndjson"
    printf '{"tag":"a","key":" k"}\n' >"$BATS_TEST_TMPDIR/y.ndjson"
    refused 65 'y.ndjson:1: a key must not begin with white space' add --dry-run --from "$BATS_TEST_TMPDIR/y.ndjson"
}

@test 'a full disk on stdout is an error, a closed pipe is not' {
    rc=0
    dq help >/dev/full 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    [ "$rc" -eq 71 ]
    grep -q 'cannot write to standard output' "$BATS_TEST_TMPDIR/err"
    [ -z "$( (dq help; echo "$?" >"$BATS_TEST_TMPDIR/rc") 2>&1 | true)" ]
}

@test 'text quoted in a message cannot control the terminal' {
    refused 64 'unknown command "??"' "$(printf '\377\233')"
    refused 64 'unknown status "???x"' list -s "$(printf '\342\200\256x')"
    refused 64 'unknown status "?[2J"' list -s "$(printf '\033[2J')"
}
