# Helpers for bats tests that need a database: `load ../lib/sandbox` gives a test file a sandbox of its own, started
# before its first test and destroyed after its last. A file that needs another start defines setup_file itself (and
# calls sandbox_start, or sandbox_start_quickstart for one with the handlers and the shop of the quick start).
#
#   dq, dqd ARG...      the programs under test, configured for the sandbox
#   sql TEXT            runs SQL, prints rows without headings, cells separated by tabs
#   count [CONDITION]   prints how many tasks there are, or of which that is true
#   is CONDITION N      there are so many of them
#   numbers N           prints a derived table with the numbers 1 to N in its column seq, for a FROM
#   new_account NAME    makes the account NAME@localhost without any right, in place of an older one; a second word: its
#                       password
#   sandbox_clear       empties every table: `setup() { sandbox_clear; }`
#   fake_dqd PATTERN... adds a live dqd to dq_poller that serves these tags and globs; without any: one that has not
#                       recorded what it serves, so that no verb remarks on that
#   own_ini SED         makes $BATS_TEST_TMPDIR/own.ini: the sandbox's dq.ini, edited by sed
#   as ACCOUNT CMD...   runs it with a configuration for that account
#   write_handlers      stdin becomes the handlers file
#   dqd_start ARG...    runs dqd in the background; its log is $DQD_LOG, its process $DQD_PID
#   lock_task ID,...    locks these rows in a transaction that stays open until lock_release
#   dqd_stop            sends TERM, waits for its end, returns its exit status
#   wait_until CMD...   polls until CMD succeeds; see wait.bash
#   try CMD...          runs it, whatever comes of it: its exit status is in $rc, what it printed in $out and $err
#   fresh FILE...       empties them. A process in the background may open its output only after the next wait has begun
#                       to read there, and what an earlier process has left would be taken for its own
#   refute CMD...       fails if CMD succeeds; bats ignores the result of `! CMD` in the middle of a test
#
# A test with the tag `bare` needs the programs as they are; valgrind changes what it looks at: closed descriptors,
# memory, the error that comes out of a vfork, /proc/self/exe.

DQ_TOP=${DQ_TOP:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
DQ_BIN=${DQ_BIN:-$DQ_TOP/bin}
DQ_NEXT=$DQ_BIN/../test/upgrade # programs of an imaginary next release
DQ_SQL=$DQ_BIN/../test/lib/sql  # sql.c, if the tests were built
. "$DQ_TOP/test/lib/wait.bash"
export DQ_TOP DQ_BIN DQ_NEXT DQ_SQL
export DQ_PAGER=cat # none, also on a terminal

dq() { "$DQ_BIN/dq" "$@"; }
dqd() { "$DQ_BIN/dqd" "$@"; }

sandbox_start()
{
    # The server runs as another account if we are root: where it can pass, it is beside us, and not on a slow disk.
    chmod a+x "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR"
    export DQ_SANDBOX=$BATS_FILE_TMPDIR/sandbox
    export DQ_CONFIG=$DQ_SANDBOX/dq.ini
    export DQ_HANDLERS=$DQ_SANDBOX/handlers.yaml
    "$DQ_TOP/bin/dq-sandbox" start "$@" 3>&-
    # a test that stops the server wants the error, not the wait
    grep -q '^retry_for' "$DQ_CONFIG" || sed -i '1i[dq]\nretry_for = 0s' "$DQ_CONFIG"
}

sandbox_start_quickstart()
{
    sandbox_start
    install -m 0644 "$DQ_TOP/etc/quickstart/handlers.yaml" "$DQ_TOP/etc/quickstart/shop.txt" "$DQ_SANDBOX/"
    mkdir "$DQ_SANDBOX/handlers"
    install -m 0755 "$DQ_TOP"/etc/quickstart/handlers/* "$DQ_SANDBOX/handlers/"
}

sandbox_destroy() { "$DQ_TOP/bin/dq-sandbox" destroy --force; }

setup_file() { sandbox_start; }
teardown_file() { sandbox_destroy; }

sql()
{
    local server=$DQ_SANDBOX/server
    if [ -L "$server" ]; then server=$(readlink -f "$server"); fi
    if [ -x "$DQ_SQL" ] && [[ $1 != *DELIMITER* ]]; then
        "$DQ_SQL" "$server/mysql.sock" "$1"
        return
    fi
    mariadb --no-defaults --batch --skip-column-names --default-character-set=utf8mb4 --user=root \
        --database=dq --execute="$1" --socket="$server/mysql.sock"
}

count() { sql "SELECT COUNT(*) FROM dq_task WHERE ${1:-1}"; }
is() { [ "$(count "$1")" = "$2" ]; }

# MariaDB alone has tables of numbers, and recursion has limits that differ.
numbers()
{
    local digits='(SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6'
    local value=1 from='' at last=$(($1 - 1))
    digits+=' UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)'
    for ((at = 0; at < ${#last}; at++)); do
        value+=" + d$at.d * $((10 ** at))"
        from+="${from:+, }$digits d$at"
    done
    printf '(SELECT %s AS seq FROM %s WHERE %s <= %d) numbers' "$value" "$from" "$value" "$1"
}

new_account() { sql "DROP USER IF EXISTS $1@localhost; CREATE USER $1@localhost IDENTIFIED BY '${2:-}'"; }

sandbox_clear()
{
    local tables=(task attempt limit poller minute handler rest event output schedule slot)
    # many rows are deleted one by one
    sql "$(printf "SET @clear = IF((SELECT COUNT(*) FROM (SELECT 1 FROM %s LIMIT 2001) some) > 2000,
                   'TRUNCATE TABLE %s', 'DO 0'); PREPARE clear FROM @clear; EXECUTE clear;\n" \
             dq_task dq_task dq_attempt dq_attempt)
         $(printf 'DELETE FROM dq_%s;\n' "${tables[@]}")"
}

fake_dqd()
{
    local pattern number=0 sql=''
    for pattern; do
        sql+="INSERT INTO dq_handler (handlers, pattern, is_glob, number, line, digest, batch, max_running,
              global_max_running, max_attempts, timeout)
              VALUES (1, '$pattern', '$pattern' REGEXP '[*?]', $number, $((number + 2)), 1, 1, 8, 0, 10, 60000);"
        number=$((number + 1))
    done
    sql "$sql INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after,
         lease, version, knows, handlers, handlers_file)
         VALUES (REPEAT('f', 16), 'vm', 1, 'resident', 32, 0, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 3600000,
                 60000, '0.1.0', 255, 1, '/etc/dq/handlers.yaml')"
}

own_ini()
{
    sed "s|^handlers *=.*|handlers = $DQ_HANDLERS|; $1" "$DQ_CONFIG" >"$BATS_TEST_TMPDIR/own.ini"
    chmod 600 "$BATS_TEST_TMPDIR/own.ini"
}
as()
{
    own_ini "s/^user = .*/user = $1/"
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini "${@:2}"
}

lock_task()
{
    mkfifo "$BATS_TEST_TMPDIR/lock"
    mariadb --no-defaults --unbuffered --socket="$(readlink -f "$DQ_SANDBOX/server")/mysql.sock" --user=root \
        --database=dq \
        <"$BATS_TEST_TMPDIR/lock" >"$BATS_TEST_TMPDIR/locked" 3>&- &
    exec 9>"$BATS_TEST_TMPDIR/lock"
    echo "START TRANSACTION; SELECT id FROM dq_task FORCE INDEX (PRIMARY) WHERE id IN ($1) ORDER BY id FOR UPDATE;" >&9
    wait_until grep -qx "${1##*,}" "$BATS_TEST_TMPDIR/locked"
}

lock_release() { exec 9>&-; wait; jobs >/dev/null; rm -f "$BATS_TEST_TMPDIR/lock" "$BATS_TEST_TMPDIR/locked"; }

# sql_refuses TEXT SQL: the statement fails, and the message of the procedure has the text.
sql_refuses()
{
    rc=0
    err=$(sql "$2" 2>&1) || rc=$?
    echo "$2: $err"
    [ "$rc" -ne 0 ] && [[ $err == *"(45000) "*"dq: $1"* ]]
}

write_handlers() { cat >"$DQ_HANDLERS"; }

dqd_start()
{
    export DQD_LOG=$BATS_TEST_TMPDIR/dqd.log
    fresh "$DQD_LOG"
    "$DQ_BIN/dqd" "$@" >"$DQD_LOG" 2>&1 3>&- &
    DQD_PID=$!
}

dqd_stop()
{
    local pid=$DQD_PID
    DQD_PID=''
    kill "$pid" 2>/dev/null
    wait "$pid"
}

# A test that fails midway must not leave its dqd behind, and shows what it logged. A file with a teardown of its own
# calls this one's body: dqd_reap.
dqd_reap()
{
    [ -z "${DQD_PID:-}" ] || dqd_stop || true
    [ -n "${BATS_TEST_COMPLETED:-}" ] || [ ! -s "${DQD_LOG:-}" ] || cat "$DQD_LOG"
}
teardown() { dqd_reap; }

try()
{
    rc=0
    "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    out=$(<"$BATS_TEST_TMPDIR/out")
    err=$(<"$BATS_TEST_TMPDIR/err")
    echo "exit $rc, stdout: $out, stderr: $err"
}

fresh()
{
    local file
    for file; do : >"$file"; done
}

refute()
{
    if "$@"; then
        echo "refute: it is true: $*" >&2
        return 1
    fi
}
