# The manuals are well formed and know every verb and option that the programs know.

load ../lib/lint
doc=$lint_top/doc

# The long options of a help text, without dashes.
options_of() { grep -oE '^ +(-[A-Za-z], )? *--[a-z][a-z-]*' | sed 's/.*--//' | sort -u; }

# The verbs of `dq help`: the first words of the lines of its groups.
verbs() { "$DQ_BIN/dq" help | awk '/^[a-z].*:$/ { verbs = !/^options/ } verbs && /^  [a-z]/ { print $1 }'; }

# The commands of a verb that has some, each as "VERB COMMAND".
commands() { "$DQ_BIN/dq" help "$1" | awk -v verb="$1" '/^commands:/ { in_them = 1; next } /^$/ { in_them = 0 }
    in_them && /^  [a-z]/ { print verb, $1 }'; }

# The manuals by name: dq-add.1 and so on.
pages() { (cd "$doc" && ls dq*.[158]); }

# Succeeds when a manual has an item for an option.
has_item() { grep -qE "^\\.It .*Fl -${2}( |=|\$)" "$1"; }

@test 'mandoc has no complaints about the manuals' {
    [ "$(pages | wc -l)" -gt 30 ]
    for page in $(pages); do
        mandoc -T lint "$doc/$page" | grep -v 'referenced manual not found\|outdated mandoc.db' || true
    done | none
}

@test 'the headings of the manuals are shown as they are written' {
    for page in $(pages); do
        sed -n 's/^\.S[sh] \(\\&\)\{0,1\}//p' "$doc/$page" | while IFS= read -r heading; do
            mandoc -T utf8 "$doc/$page" | col -b | sed 's/^ *//' | grep -qxF -- "$heading" ||
                echo "doc/$page: $heading: a word of it is a macro of mdoc(7)"
        done
    done | none
}

@test 'each command has a page, and a line in dq(1): in the order and with the words of dq help' {
    [ "$(verbs | wc -l)" -gt 10 ]
    for verb in $(verbs); do
        summary=$("$DQ_BIN/dq" help "$verb" | sed -n "s/ (short: .*//; s/^$verb: //p")
        printf '%s\n%s\n' "$verb" "$summary"
        grep -qxF ".Nd $summary" "$doc/dq-$verb.1" || echo "doc/dq-$verb.1 lacks: .Nd $summary" >&2
    done >"$BATS_TEST_TMPDIR/helped" 2>"$BATS_TEST_TMPDIR/missing"
    none <"$BATS_TEST_TMPDIR/missing"
    sed -n '/^\.It Xr dq-[a-z-]* 1$/ { s/^\.It Xr dq-//; s/ 1$//; p; n; p }' "$doc/dq.1" |
        diff "$BATS_TEST_TMPDIR/helped" - | none
    for page in $(pages); do
        verb=${page#dq-} verb=${verb%.1}
        case $page in dq.1 | dq-sandbox.1 | *.[58]) continue ;; esac
        verbs | grep -qx -- "$verb" || echo "doc/$page: there is no command $verb"
    done | none
}

# In its own page, or in one to which that refers: filters in dq-list(1), what changes many tasks in dq-cancel(1).
@test 'each option of each command has an item in its page' {
    [ "$(commands schedule | wc -l)" -gt 5 ]
    for verb in $(verbs); do
        commands "$verb" | while read -r _ command; do
            grep -qx ".It Cm $command" "$doc/dq-$verb.1" || echo "doc/dq-$verb.1 lacks .It Cm $command"
            for option in $("$DQ_BIN/dq" help "$verb" "$command" | options_of); do
                has_item "$doc/dq-$verb.1" "$option" || echo "doc/dq-$verb.1 lacks --$option of $command"
            done
        done
        for option in $("$DQ_BIN/dq" help "$verb" | options_of); do
            has_item "$doc/dq-$verb.1" "$option" && continue
            for other in list cancel; do
                grep -qx "\.Xr dq-$other 1 *[,;.]*" "$doc/dq-$verb.1" || continue
                has_item "$doc/dq-$other.1" "$option" && continue 2
            done
            echo "doc/dq-$verb.1 lacks --$option"
        done
    done | none
    for option in $("$DQ_BIN/dq" help filters | options_of); do
        has_item "$doc/dq-list.1" "$option" || echo "doc/dq-list.1 lacks --$option"
    done | none
    for option in $("$DQ_BIN/dq" help options | options_of); do
        has_item "$doc/dq.1" "$option" || echo "doc/dq.1 lacks --$option"
    done | none
}

# test/cli/examples.bats runs those of dq help.
@test 'the page of a command has the examples of dq help' {
    for verb in $(verbs); do
        "$DQ_BIN/dq" help "$verb" | sed -n '/^examples:$/,/^options/s/^  //p' >"$BATS_TEST_TMPDIR/helped"
        sed -n "/^\.Sh EXAMPLES/,\$ { s/\\\\(dq/\"/g; s/\\\\(aq/'/g; s/\\\\e/\\\\/g; /^[^.]/p }" "$doc/dq-$verb.1" |
            diff "$BATS_TEST_TMPDIR/helped" - | sed "s|^|doc/dq-$verb.1: |"
    done | none
}

# mandoc takes any page that is not installed for one of the system.
@test 'a manual refers to pages of dq that exist' {
    grep -ohE '\.?Xr dqd?[a-z.-]* [0-9]' $(pages | sed "s|^|$doc/|") | sort -u | while read -r _ page section; do
        [ -e "$doc/$page.$section" ] || echo "there is no $page($section)"
    done | none
}

@test 'dqd(8) documents each option' {
    [ "$("$DQ_BIN/dqd" --help | options_of | wc -l)" -gt 5 ]
    for option in $("$DQ_BIN/dqd" --help | options_of); do
        has_item "$doc/dqd.8" "$option" || echo "doc/dqd.8 lacks --$option"
    done | none
}

@test 'dq-sandbox(1) documents each command and option' {
    help=$("$DQ_TOP/bin/dq-sandbox" --help)
    for verb in $(sed -n 's/^  \([a-z]\+\)  .*/\1/p' <<<"$help"); do
        grep -qx "\.It Cm $verb" "$doc/dq-sandbox.1" || echo "doc/dq-sandbox.1 lacks $verb"
    done | none
    for option in $(grep -oE '^ +--[a-z-]+' <<<"$help" | sed 's/.*--//'); do
        has_item "$doc/dq-sandbox.1" "$option" || echo "doc/dq-sandbox.1 lacks --$option"
    done | none
}

# A number as people write it: 4,000.
with_commas() { sed -E ':a; s/([0-9])([0-9]{3})($|,)/\1,\2\3/; ta' <<<"$1"; }

# A constant of the sources, by its #define.
constant() { sed -nE "s/^#define $1 ([0-9]+).*/\1/p" "$DQ_TOP/src/$2" | grep . || echo "src/$2 has no $1" >&2; }
helps() { "$DQ_BIN/dq" help "$1" | tr -s ' \n' ' ' | grep -qF -- "$2" || echo "dq help $1 lacks: $2"; }
says() { tr -s ' \n' ' ' <"$doc/$1" | grep -qF -- "$2" || echo "doc/$1 lacks: $2"; }

@test 'numbers in manuals and help texts are those of the sources' {
    {
        slots=$(constant CONF_SLOTS_MAX conf/conf.h)
        says dq.ini.5 "processes at a time, 1 to $slots"
        says dqd.8 "processes at a time, 1 to $slots"
        "$DQ_BIN/dqd" --slots 0 2>&1 | grep -q "out of range: 1 to $slots\$" || echo 'dqd --slots 0'
        least=$(constant LEAST_SECONDS cli/verb/cmd_bench.c)s most=$(constant MOST_MINUTES cli/verb/cmd_bench.c)m
        [ "$(constant DEFAULT_MINUTES cli/verb/cmd_bench.c)" = 1 ] || echo 'dq bench: not a minute'
        says dq-bench.1 "between $least and $most; a shorter time gives rougher figures. The default is one minute."
        helps add "chunks of up to $(with_commas "$(constant TASK_CHUNK_ROWS store/ask/task_add.h)") lines"
        says dq-stats.1 "The $(constant STATS_PROM_TAGS cli/judge/stats_prom.h) tags with the most due tasks"
        says dq-stats.1 "A dqd counts at most $(constant MINUTE_TAGS_MOST poller/minute.h) tags apart at a time"
        helps bench "measure for about D, $least to $most; default: 1m"
        helps errors "default: $(constant DEFAULT_WINDOW_HOURS cli/verb/cmd_errors.c)h"
        helps events "default: $(constant DEFAULT_WINDOW_HOURS cli/verb/cmd_events.c)h, with -f: now"
        helps forecast "default: $(constant DEFAULT_HOURS cli/verb/cmd_forecast.c)h"
        helps stats "default: $(constant DEFAULT_PERIOD_HOURS cli/verb/cmd_stats.c)h"
        helps top "minimum: $(constant LIVE_LEAST_S cli/line/live.h)s"
        helps wait "exit status $(constant EXIT_TIMEOUT cli/verb/cmd_wait.c)"
        helps list "default: $(constant TERMINAL_LIMIT cli/verb/cmd_list.c) on a terminal"
        most=$(with_commas "$(constant SEARCH_MOST cli/verb/cmd_list.c)")
        says dq-list.1 "after $most tasks that do not match"
        says dq-list.1 "among the newest $most tasks only"
        most=$(with_commas "$(constant MOST cli/verb/cmd_events.c)")
        says dq-events.1 "At most $most acts, $most calls of procedures and $most failures are read"
        most=$(with_commas "$(constant CONFIRM_TYPED cli/line/confirm.h)")
        says dq-cancel.1 "For more than $most tasks, type the name"
        says dq-cancel.1 "in steps of $(constant ROWS_STEP store/row/rows.h), each whole or not at all"
        grep -q 'last_seen < UTC_TIMESTAMP(3) - INTERVAL 1 DAY' "$DQ_TOP/src/store/fleet/poller_store.c" ||
            echo 'pollers: not a day'
        helps pollers 'stays in the list for a day'
        says dq-add.1 "$(constant TASK_TAG_MAX base/task.h) characters of UTF-8"
        says dq-add.1 "A key has 1 to $(constant TASK_KEY_MAX base/task.h) characters"
    } 2>&1 | none
}

# With some 350 bytes for each row that it adds: its table and the binary log.
@test 'dq bench writes as much as its help says, and takes the cores for as long' {
    chunks=$(constant CHUNKS_MAX bench/statement.c) adds=$(constant ADDS_MAX bench/statement.c)
    processes=$(constant PROCESSES_MAX bench/program.c) batched=$(constant BATCHED_MAX bench/program.c)
    rows=$((chunks * $(constant TASK_CHUNK_ROWS store/ask/task_add.h) + adds + processes + batched))
    megabytes=$("$DQ_BIN/dq" help bench | tr -s ' \n' ' ' | sed 's/.*up to about \([0-9]*\) MB.*/\1/')
    [ $((rows * 350 / 1000000)) -le "$megabytes" ]
    [ $((rows * 350 / 1000000)) -ge $((megabytes / 2)) ]
    busy=$(sed -nE 's/^    \{FIGURE_(SPAWN|RUN)[A-Z_]*, ([0-9]+),.*/\2/p' "$DQ_TOP/src/cli/verb/cmd_bench.c" |
        paste -sd+)
    [ $((busy)) -ge 30 ]
    [ $((busy)) -le 40 ]
}
