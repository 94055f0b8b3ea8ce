# The house rules that a machine can check: layers, third-party headers, SQL, sizes, scripts. HACKING says why.

load ../lib/lint
setup() { cd "$lint_top"; }

c_files() { find src bin -name '*.[ch]' ! -name migrations.c ! -name texts.c | sort; }

scripts()
{
    find autogen.sh .ci bin etc test -type f ! -name '*.bats' \
        -exec awk 'FNR == 1 && /^#!/ { print FILENAME } { nextfile }' {} +
}

@test 'the lint finds files to check' {
    [ "$(c_files | wc -l)" -gt 30 ]
    [ "$(scripts | wc -l)" -gt 5 ]
}

# Each folder, and what it may include: a folder, or single headers if only these are public.
layers()
{
    cat <<'END'
src/base base/
src/conf base/ conf/
src/wake base/ wake/
src/store/db base/ conf/conf.h conf/conf_file.h store/db/
src/store/row base/ store/db/ store/row/
src/store/schema base/ store/db/ store/row/ store/schema/
src/store/fleet base/ store/db/ store/row/ store/schema/ store/fleet/
src/store/work base/ store/db/ store/row/ store/fleet/ store/work/
src/store/ask base/ store/db/ store/row/ store/schema/ store/fleet/ store/work/ store/ask/
src/runner base/ runner/ conf/handlers.h conf/handlers_load.h
src/poller base/ store/db/db.h store/db/db_connect.h store/db/db_latest.h store/db/db_session.h
src/poller store/schema/schema.h poller/
src/poller store/row/claim_ref.h store/row/rows.h store/row/settlement.h store/row/task_array.h
src/poller store/fleet/ store/work/
src/poller runner/link.h runner/outcome.h runner/rights.h wake/wake_listen.h
src/poller conf/conf.h conf/conf_load.h conf/handlers.h conf/handlers_load.h
src/bench base/ conf/conf.h conf/conf_env.h conf/handlers.h store/db/db.h store/db/db_connect.h bench/
src/bench store/row/claim_ref.h store/row/task_array.h store/schema/ store/fleet/ store/work/ store/ask/
src/cli/show base/ store/ask/ cli/show/
src/cli/line base/ conf/conf.h conf/conf_file.h conf/conf_load.h wake/wake_send.h cli/show/ cli/line/
src/cli/line store/db/db.h store/db/db_connect.h store/schema/schema.h store/ask/
src/cli/judge base/ conf/conf.h conf/conf_file.h conf/conf_load.h conf/handlers.h conf/handlers_load.h
src/cli/judge store/db/db.h store/db/db_connect.h store/db/db_session.h store/row/settlement.h
src/cli/judge store/schema/ store/fleet/ store/work/ store/ask/ cli/show/ cli/line/ cli/judge/
src/cli/many base/ store/row/rows.h store/schema/ store/fleet/ store/ask/ cli/show/ cli/line/ cli/judge/ cli/many/
src/cli/verb base/ conf/conf.h conf/conf_file.h conf/conf_load.h conf/handlers.h conf/handlers_load.h bench/
src/cli/verb conf/crontab.h
src/cli/verb runner/rehearse.h store/db/db_connect.h store/row/rows.h store/schema/ store/fleet/ store/ask/
src/cli/verb cli/show/ cli/line/ cli/judge/ cli/many/ cli/verb/
bin base/ conf/conf.h conf/conf_file.h conf/conf_load.h conf/handlers.h conf/handlers_load.h
bin runner/check.h poller/ wake/wake_listen.h cli/show/ cli/line/ cli/verb/
END
}

@test 'each include is allowed by the layer table' {
    { layers; grep -n '^ *# *include *"' $(c_files); } | awk -F: '
        NF == 1 { place = $1; sub(/ .*/, "", place); sub(/^[^ ]* /, ""); may[place] = may[place] " " $0; next }
        {
            place = $1
            sub("/[^/]*$", "", place)
            split($3, part, "\"")
            header = part[2]
            if (!(place in may)) { print $1 ": a folder that the layer table does not have"; next }
            count = split(may[place], allowed, " ")
            for (i = 1; i <= count; i++)
                if (index(header, allowed[i]) == 1 && (allowed[i] ~ /\/$/ || header == allowed[i]))
                    next
            print $1 ":" $2 ": may not include " header
        }' | none
}

@test 'the layer table of HACKING is the one that is checked' {
    # "src/cli/verb bench", sorted, from both tables; a row of HACKING may take several lines
    layers | awk '$1 != "bin" {
        for (i = 2; i <= NF; i++) { sub("/[^/]*$", "", $i); if ("src/" $i != $1) print $1, $i }
    }' | sort -u >"$BATS_TEST_TMPDIR/checked"
    awk '
        /may use$/ { from = index($0, "may use"); next }
        from && NF == 0 { exit }
        from {
            if (match($0, "src/[a-z/]+/")) place = substr($0, RSTART, RLENGTH - 1)
            else if (/^ *bin\/ /) place = ""
            count = split(substr($0, from), word, " ")
            for (i = 1; place && i <= count; i++) if (word[i] != "-") print place, word[i]
        }' HACKING | sort -u >"$BATS_TEST_TMPDIR/shown"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/shown")" -gt 15 ]
    diff "$BATS_TEST_TMPDIR/shown" "$BATS_TEST_TMPDIR/checked" | none
}

# FILE.c and FILE.h are one node; a file that includes ROOM/FILE.h depends on it. tsort(1) names the files of a circle.
@test 'no files include each other in a circle' {
    grep -roP --include='*.[ch]' '^ *# *include *"\K[^"]+(?=\.h")' src |
        sed -nE 's|^src/([^:]*)\.[ch]:(.*)|\1 \2|; /^(\S+) \1$/!p' | sort -u | tsort 2>&1 >/dev/null | none
}

@test 'private headers of the database connection are included there only' {
    grep -nE '"store/db/db_(error|handle|tls)\.h"' $(c_files) | grep -v '^src/store/db/' | none
}

@test 'each third-party header is included in one place only' {
    grep -nE '<(mysql|mysqld_error|errmsg|ini|yaml|jansson|ncurses|curses)(\.h|/)' $(c_files) |
        grep -vE -e '^src/store/db/[a-z_]*\.[ch]:[0-9]+:#include <(mysql|mysqld_error|errmsg)\.h>' \
            -e '^src/conf/conf_ini\.c:[0-9]+:#include <ini\.h>' \
            -e '^src/conf/handlers_yaml\.c:[0-9]+:#include <yaml\.h>' \
            -e '^src/base/json\.c:[0-9]+:#include <jansson\.h>' |
        none
}

@test 'SQL is written in src/store only' {
    local words='SELECT|INSERT INTO|INSERT IGNORE|DELETE FROM|UPDATE dq_|REPLACE INTO|CREATE TABLE|ALTER TABLE'
    words+='|UTC_TIMESTAMP|dq_(task|attempt|tag|poller|meta) '
    grep -nE '"[^"]*\b('"$words"')' $(c_files) | grep -v '^src/store/' | none
}

@test 'only the transition table says what follows from an event: no other file compares events by name' {
    local events='CLAIM|SUCCEED|TRY_LATER|GIVE_UP|GIVE_BACK|TAKE_BACK|CANCEL|RETRY|RESCHEDULE'
    grep -nE "\bevent\b *[!=]= *TASK_|\bcase TASK_($events)\b" $(c_files | grep -v '^src/base/task') | none
}

@test 'functions declared by a header of the store begin with its name' {
    for header in src/store/*/*.h; do
        name=$(basename "$header" .h)
        grep -oE '^[a-z][a-z0-9_ *]*\(' "$header" | sed -E 's/.*[ *]([a-z0-9_]+)\($/\1/' |
            grep -vE "^$name(_|\$)" | sed "s|^|$header: |" || true
    done | none
}

# The linker takes the first one of a library that it meets, and says nothing.
@test 'no two headers declare a function of the same name' {
    for header in $(find src -name '*.h'); do
        grep -oP '^[a-z][\w ]*[ *]\K[a-z]\w*(?=\()' "$header" | sort -u
    done | sort | uniq -d | none
}

@test 'the columns of a result are a list: no cell is read by number, and no columns are counted' {
    grep -nE '\b(db|sql|task_read)_[a-z0-9_]+\(r, [0-9]' src/store/*/*.c | none
    grep -nE '\bdb_(all|all_streamed|first|query)\([^,]+, [^,]+, [0-9]' src/store/*/*.c | none
    grep -nE '\benum \{.*_COUNT\b' src/store/*/*.[ch] | grep -v 'COLUMNS(COLUMNS_NAME)' | none
}

@test 'results are fetched with db_all or db_first' {
    grep -n 'db_rows_next(' src/store/*/*.c | grep -v '^src/store/db/db\.c:' | none
}

# The place that has it, and how it would look elsewhere.
mechanisms() {
    cat <<'END'
src/base/mem \? 2 \* .*cap\b
src/base/order \(x > y\) - \(x < y\)
src/base/retry (_us|_ms|pause) \? (MIN\()?2 \*
src/base/text 0xc0\) [!=]= 0x80
src/base/(text|zone) \bmid(dle)? = low\b
src/poller/context lease\w*(\([^()]*\))? / 3\b
src/store/row/sql expected_time[^"]*, ([a-z]\.)?id\b|(OR|NOT \() ?(%s|[a-z]\.)?expected_time =
END
}

@test 'what has a name, such as the due order, is spelled out in one place only' {
    mechanisms | while read -r place pattern; do
        grep -nE "$pattern" $(c_files) | grep -vE "^$place\." || true
    done | none
}

@test 'each file begins with a comment and includes its own header first' {
    awk 'FNR == 1 && !/^\/\*/ { print FILENAME ": no comment at its head" }
        FNR == 1 {
            wants() # the file before it
            file = FILENAME
            own = file
            sub(/^src\//, "", own)
            if (!sub(/\.c$/, ".h", own) || (getline line <("src/" own)) < 0)
                own = ""
            close("src/" own)
        }
        /^#include/ && own != "" {
            if ($2 == "\"" own "\"")
                own = ""
            wants()
        }
        END { wants() }
        function wants() { if (own != "") print file ": " own " is not its first include"; own = "" }' $(c_files) | none
}

@test 'no statement uses a function that one of the servers lacks' {
    # MD5: MySQL 9; RANDOM_BYTES: MariaDB before 10.10; the seq_ tables: MySQL
    grep -rnE '\b(MD5|RANDOM_BYTES)\(|\bseq_[0-9]' src/store sql test/cli test/daemon test/db test/lib | none
}

# Numbers that only one of the servers has are not in the other one's headers.
@test 'each error has the number that the headers of the client library give to its name' {
    awk '!/, MySQL/ && match($0, / (ER|CR|WARN)_[A-Z0-9_]+/) { name = substr($0, RSTART + 1, RLENGTH - 1) }
        match($0, /^    \{[0-9]+/) { print substr($0, 6, RLENGTH - 5), name; name = "" }' \
        src/store/db/db_error.c | sort -n >"$BATS_TEST_TMPDIR/ours"
    # shellcheck disable=SC2046 # words
    gcc -E -dM $(pkg-config --cflags libmariadb 2>/dev/null || pkg-config --cflags mysqlclient) \
        -include mysqld_error.h -include errmsg.h - </dev/null |
        awk 'NR == FNR { number[$2] = $3; next } $2 in number { seen++ }
            $2 in number && number[$2] != $1 { print $2 " is " number[$2] ", not " $1 }
            $1 <= last { print $1 " stands behind " last } { last = $1 }
            END { if (seen < 80) print "only " seen + 0 " were found" }' - "$BATS_TEST_TMPDIR/ours" | none
}

@test 'no file is longer than 550 lines' {
    wc -l configure.ac $(c_files) $(scripts) $(find test -name '*.[ch]' -o -name '*.ba*') |
        awk '$2 != "total" && $1 > 550 { print $2 ": " $1 " lines" }' | none
}

@test 'no function is longer than 90 lines' {
    awk '
        FNR == 1 { start = 0 }
        /^\{/ { start = FNR }
        /^\}/ {
            if (start && FNR - start > 90)
                print FILENAME ":" start ": a function of " FNR - start " lines"
            start = 0
        }' $(c_files) | none
}

@test 'no tabs, no white space at the end of a line, a newline at the end of a file' {
    {
        grep -nE "$(printf '\t')|[[:space:]]+\$" $(c_files) $(scripts | grep -v debian/rules) $(find test -name '*.ba*')
        for file in $(c_files) $(scripts) $(find test -name '*.ba*'); do
            [ -z "$(tail -c 1 "$file")" ] || echo "$file: no newline at its end"
        done
    } | none
}

@test 'scripts are executable and their shell can parse them' {
    for file in $(scripts); do
        case $(head -n 1 "$file") in
        '#!/bin/sh') sh -n "$file" 2>&1 ;;
        '#!/bin/bash') bash -n "$file" 2>&1 ;;
        '#!/usr/bin/make -f')
            env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -f "$file" -n clean 2>&1 >/dev/null
            ;;
        '#!/usr/bin/env python3' | '#!/usr/bin/python3')
            python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$file" 2>&1 | tail -n 1
            ;;
        *) echo "$file: begins with $(head -n 1 "$file")" ;;
        esac
        [ -x "$file" ] || echo "$file: not executable"
    done | none
}

@test 'every test and every source is in Makefile.am' {
    for file in $(c_files) $(find test -name '*.bats'); do
        grep -qE "(^|[[:space:]=])$file(\$|[[:space:]])" Makefile.am || echo "$file"
    done | none
    for file in $(find test/unit test/db -name '*.c'); do
        grep -qE "(^|[[:space:]=])${file%.c}(\.c)?(\$|[[:space:]])" Makefile.am || echo "$file"
    done | none
}

@test 'every document, sample and test file is in Makefile.am, and so in make dist' {
    for file in $(find . -maxdepth 1 -type f -name '[A-Z]*' ! -name 'Makefile*' -printf '%P\n') \
        $(find doc etc sql -type f ! -name '*~') \
        $(find test -type f \( -name '*.py' -o -name '*.tbl' -o -name '*.bash' \)) \
        $(find test/fuzz test/fault -name '*.c'); do
        grep -qE "[[:space:]=]$file(\$|[[:space:]])" Makefile.am || echo "$file"
    done | none
}

@test 'each fault scenario has a mutation that applies, and a group in doc/reliability' {
    test/fault/mutate --list >"$BATS_TEST_TMPDIR/list" || true
    {
        grep '# the protection is not found' "$BATS_TEST_TMPDIR/list" || true
        test/fault/run --list | while read -r group name _; do
            grep -qE "^    $group  " doc/reliability || echo "$group: not in doc/reliability"
            grep -qE "^ *[0-9]+ $name " "$BATS_TEST_TMPDIR/list" || echo "$name: not in test/fault/mutations.py"
        done | sort -u
    } | none
}

# Those of clusters, which need other servers, are seen by test/servers.
@test 'test/fault/results has the failure of each mutation: its first lines say how it gets there' {
    test/fault/mutate --results >"$BATS_TEST_TMPDIR/results"
    diff test/fault/results "$BATS_TEST_TMPDIR/results" | none
    grep -B 1 '^    no result yet$' test/fault/results | grep -v -e '^ ' -e '^--$' -e '^galera-' -e '^group-' | none
}

@test 'the code keeps to one dialect: no comparison with NULL, sizeof x, MIN and MAX, text_hash' {
    grep -nE '[!=]= NULL' $(c_files) $(find test -name '*.[ch]') | none
    grep -nE 'sizeof\(' $(c_files) $(find test -name '*.[ch]') |
        grep -vE '#define|sizeof\((struct|const|char|bool|int|unsigned|size_t|u?int[0-9]+_t|MYSQL|void)' |
        none
    grep -nE '\<([a-z][a-z_>. -]*) [<>] ([A-Za-z_][A-Za-z0-9_>./ -]*) \? (\1 : \2|\2 : \1)(\>|$)' $(c_files) | none
    grep -nE '0x100000001b3|1099511628211' $(c_files) | grep -v '^src/base/text.c' | none
}
# A text that is printed stays on one line, so that it can be searched for; a table keeps its rows.
@test 'no script has a C file of its name beside it, from which make would build over it' {
    find bin etc test -name '*.c' | while read -r file; do
        [ ! -e "${file%.c}" ] || [ "$(head -c 2 "${file%.c}")" != '#!' ] || echo "$file"
    done | none
}

@test 'no line is longer than 100 characters in C and 120 in tests' {
    awk '/clang-format off/ { table = 1 } /clang-format on/ { table = 0 }
         (length > 132 && !/\\$/) || (length > 100 && !table && !/"/) { print FILENAME ":" FNR ": " length }' \
        $(c_files) $(find test -name '*.[ch]') | none
    # the table of test/fault/mutations.py quotes the sources
    awk 'length > 120 { print FILENAME ":" FNR ": " length }' \
        $(scripts | grep -e '^test/') \
        $(find test -name '*.ba*' -o -name '*.py' ! -name mutations.py -o -name '*.awk') | none
}

@test 'no bats test contains an assertion that bats ignores: refute CMD, not ! CMD' {
    grep -nE '(^|;|\b(do|then|else))[[:space:]]+! +[^-]' $(find test -name '*.ba*') | none
}

# A poll between two looks, what a wait asks for twice, and a sleep that is itself measured, are no guesses.
@test 'no bats test sleeps: tests wait for conditions' {
    grep -nE "^ *sleep [0-9]|'run [s]leep" $(find test -name '*.bats') | grep -vE '# (between two looks|the measure)$' |
        none
}
