# The documents name files, functions and numbers of the source: what they name exists, and the numbers are right.

load ../lib/lint
setup() { cd "$lint_top"; }

@test 'the files and folders that the documents name exist' {
    for doc in CONTRIBUTING HACKING README SECURITY doc/lifecycle doc/performance doc/reliability test/bench/README; do
        # test/unit/retry is a program, src/cli/cmd_VERB.c and sql/NNNN_name.sql are patterns
        for file in $(grep -oP '(?<![\w/.$-])(src|bin|doc|etc|sql|test)/[\w./*-]*[\w*/]' "$doc" | sort -u); do
            compgen -G "$file" >/dev/null || [ -e "$file.c" ] || [[ $file == *[_-]VERB.* || $file == */NNNN_* ]] ||
                echo "$doc: there is no $file"
        done
        # a file named without its folder; mysql.h is of the system
        for file in $(grep -oP '(?<![\w/.$*-])[a-z][a-z0-9_]*\.(c|h|tbl|bats|bash|awk|py)\b' "$doc" | sort -u); do
            [ "$file" = mysql.h ] || [ -n "$(find src bin test sql -name "$file")" ] ||
                echo "$doc: there is no file $file"
        done
    done | none
}

@test 'the functions, constants and columns that the documents name exist' {
    cat $(find src bin sql etc test/lib test/data -type f) configure.ac Makefile.am |
        grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$BATS_TEST_TMPDIR/words"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/words")" -gt 3000 ]
    for doc in HACKING doc/lifecycle doc/performance doc/dq*.[158]; do
        grep -oP '(?<![\w/.-])[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)+(?![\w/*]|\.[a-z])' "$doc" | sort -u |
            while read -r name; do
                case $name in # examples of names; names of the system and of the server
                module_verb_noun | ret_x | CAP_SETUID | CAP_SETGID) continue ;;
                group_replication_unreachable_majority_timeout | ROW_COUNT) continue ;;
                auth_basic | auth_basic_user_file) continue ;; # nginx
                DQ_MYSQL_* | DQ_DQD_* | DQ_RETENTION_* | DQ_DQ_*) name=${name#DQ_*_} name=${name,,} ;; # made of a key
                esac
                grep -qxF "$name" "$BATS_TEST_TMPDIR/words" || echo "$doc: the source has no $name"
            done
    done | none
}

# constant NAME PLACE: the value of a #define in a file, or in one of the files of a folder.
constant()
{
    local text
    text=$(grep -rhoE "^ *#define $1 +[^/]*" "$2" | sort -u)
    [ -n "$text" ] && [ "$(wc -l <<<"$text")" = 1 ] || return 1
    text=$(sed -E "s/^ *#define $1 +//; s/U?INT64_C//" <<<"$text")
    echo $((text))
}

# A number as people write it: 4,000.
with_commas() { sed -E ':a; s/([0-9])([0-9]{3})($|,)/\1,\2\3/; ta' <<<"$1"; }

# DOCUMENT | sentence, # for the number | constant | its file, or folder | what it is divided by
NUMBERS='
doc/performance   | as will start within # ms                | AHEAD_US         | src/poller           | 1000
doc/performance   | Results wait up to # ms                  | WAIT_QUEUE_US    | src/poller           | 1000
doc/performance   | a queue is processed, # ms otherwise     | WAIT_RUNNING_US  | src/poller           | 1000
doc/performance   | While more than # jobs wait              | QUEUE_LONG       | src/poller           | 1
doc/performance   | reports every # ms                       | REPORTS_US       | src/poller           | 1000
doc/performance   | at least # ms apart                      | WOKEN_PAUSE_US   | src/poller           | 1000
doc/performance   | at most 1/# of the time                  | DEAR_PART        | src/poller           | 1
doc/performance   | at least every # s                       | RARE_US          | src/poller           | 1000000
doc/performance   | inserted last (at most #)                | PEEK_NEWS_MOST   | src/store            | 1
doc/performance   | the task is claimed # ms before          | LOOK_EARLY_MS    | src/poller           | 1
doc/performance   | so much earlier, at most # ms            | LOOK_EARLY_MOST_MS | src/poller         | 1
doc/lifecycle     | resident dqd # ms earlier                | LOOK_EARLY_MS    | src/poller           | 1
doc/lifecycle     | slow server up to # ms                   | LOOK_EARLY_MOST_MS | src/poller         | 1
doc/lifecycle     | tries again after # ms                   | HOLD_MIN_US      | src/poller/aside.c   | 1000
doc/lifecycle     | at intervals that grow to # s            | HOLD_LOCKED_US   | src/poller           | 1000000
doc/lifecycle     | no later than # ms                       | VOUCH_MIN_US     | src/poller           | 1000
doc/dqd.8         | within the last # ms                     | VOUCH_MIN_US     | src/poller           | 1000
doc/dqd.8         | logged once, then every # minutes        | TROUBLE_AGAIN_US | src/poller           | 60000000
doc/dq-handlers.5 | starts no tasks of the tag for # seconds | REST_MIN_US      | src/poller           | 1000000
doc/dq-handlers.5 | and for up to # minutes if that repeats  | REST_MAX_US      | src/poller           | 60000000
doc/dq-handlers.5 | if the start hangs for # seconds         | START_MAX_MS     | src/runner           | 1000
doc/dq-handlers.5 | longer than # KiB                        | CAPTURE_LINE_MAX | src/runner           | 1024
doc/dq-add.1      | chunks of up to # lines                  | TASK_CHUNK_ROWS  | src/store            | 1
etc/help          | A herd is # tasks                        | FORECAST_HERD    | src/store            | 1
etc/help          | On timeout: #.                           | EXIT_TIMEOUT     | src/cli              | 1
HACKING           | for as many starts as # ms               | AHEAD_US         | src/poller           | 1000
HACKING           | claims single tasks # ms before          | LOOK_EARLY_MS    | src/poller           | 1
'

@test 'the numbers in the documents are those of the source' {
    while IFS='|' read -r doc sentence name file unit; do
        [ -n "$unit" ] || continue
        doc=${doc// /} name=${name// /} file=${file// /}
        value=$(constant "$name" "$file") || { echo "$file: no $name, or several, for $doc"; continue; }
        [ $((value % unit)) = 0 ] || { echo "$doc: $name is $value, no multiple of $unit"; continue; }
        sentence=$(sed 's/^ *//; s/ *$//' <<<"$sentence")
        tr -s ' \n' ' ' <"$doc" | grep -qF "${sentence/\#/$(with_commas $((value / unit)))}" ||
            echo "$doc: not found: ${sentence/\#/$(with_commas $((value / unit)))} ($name in $file)"
    done <<<"$NUMBERS" | none
}
