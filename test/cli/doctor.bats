# dq doctor: each check finds what it looks for, says what to do, and changes nothing.

load ../lib/sandbox

setup() { sandbox_clear; }

# found NAME VERDICT TEXT ARG...: the check NAME of `dq ARG... doctor` has that verdict, and a text with TEXT.
found()
{
    local name=$1 verdict=$2 text=$3 line
    shift 3
    rc=0
    dq "$@" doctor -o tsv >"$BATS_TEST_TMPDIR/found" 2>&1 || rc=$?
    cat "$BATS_TEST_TMPDIR/found"
    line=$(grep -P "^$verdict\t$name\t" "$BATS_TEST_TMPDIR/found")
    [[ $line == *"$text"* ]]
}

own() { own_ini "$1"; echo "$BATS_TEST_TMPDIR/own.ini"; }
clocks_known() { [ "$(sql 'SELECT COUNT(clock_ahead) FROM dq_poller')" -gt 0 ]; }
alive() { [ "$(sql 'SELECT COUNT(*) FROM dq_poller')" -gt 0 ]; }

@test 'with everything in order, each check is ok, in every format' {
    new_account dq_all
    sql 'GRANT ALL ON dq.* TO dq_all@localhost; GRANT PROCESS ON *.* TO dq_all@localhost'
    DQ_CONFIG=$(own 's/^user = .*/user = dq_all/; s/^\[dqd\]/&\nheartbeat = 2s/')
    dqd_start --resident
    wait_until clocks_known
    run dq doctor
    echo "$output"
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -ge 15 ]
    [ "$(grep -c '^ok  [a-z]*  ' <<<"$output")" -eq "${#lines[@]}" ]
    [[ $output == *'ok  server         MariaDB'*', writable, schema '* || $output == *'ok  server         MySQL'* ]]
    [ "$(dq doctor -o ndjson | grep -cE '^\{"verdict":"ok","check":"[a-z]+","text":"[^"]+"\}$')" -eq "${#lines[@]}" ]
    [[ $output =~ clock\ +this\ host\ and\ the\ server\ differ\ by\ [0-9.]+m?s,\ 1\ dqd\ by\ at\ most\ [0-9.]+m?s ]]
    [ "$(dq doctor -o tsv | head -n 1)" = $'verdict\tcheck\ttext' ]
}

@test 'without a configuration, the other checks are left out' {
    found configuration BAD 'there is no such configuration file' --config /nonexistent/dq.ini
    [ "$rc" -eq 2 ]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/found")" -eq 2 ]
    mkdir "$BATS_TEST_TMPDIR/open"
    install -m 0600 "$(own '')" "$BATS_TEST_TMPDIR/open/dq.ini"
    chmod 0777 "$BATS_TEST_TMPDIR/open"
    found configuration BAD 'everybody can replace files in it (mode 0777); run: chmod o-w ' \
        --config "$BATS_TEST_TMPDIR/open/dq.ini"
}

@test 'a password file that others can read and an invalid handlers file are BAD' {
    install -m 0644 /dev/null "$BATS_TEST_TMPDIR/password"
    found password BAD 'others can read or change the password file (mode 0644); run: chmod 600' \
        --config "$(own "s|^\[mysql\]|&\npassword_file = $BATS_TEST_TMPDIR/password|")"
    echo 'handlers: {t: {rum: "true"}}' >"$BATS_TEST_TMPDIR/handlers.yaml"
    own_ini "s|^\[dqd\]|&|"
    sed -i "s|^handlers = .*|handlers = $BATS_TEST_TMPDIR/handlers.yaml|" "$BATS_TEST_TMPDIR/own.ini"
    found handlers BAD 'handlers.yaml:1:' --config "$BATS_TEST_TMPDIR/own.ini"
}

@test 'a server that is down or read-only is BAD' {
    found server BAD 'is the server running?' --config "$(own 's|^socket *=.*|socket = /nonexistent|')"
    [ "$rc" -eq 2 ]
    sql 'SET GLOBAL read_only = 1'
    found server BAD 'is read-only: tasks can be neither added nor run'
    sql 'SET GLOBAL read_only = 0'
}

# set_as_told CHECK: the setting of the server that the last line found names gets the value that it names, and doctor
# no longer names it.
set_as_told()
{
    local line name
    line=$(grep -P "\t$1\t" "$BATS_TEST_TMPDIR/found")
    name=$(grep -oP '[a-z_]+(?= = [^;]*; set it to)' <<<"$line")
    line=${line##*set it to }
    line=${line%% or more}
    sql "SET GLOBAL $name = ${line/ MB/ * 1024 * 1024}"
    dq doctor -o tsv >"$BATS_TEST_TMPDIR/found" || true
    refute grep -P "\t$1\t.*$name = [^;]*; set it" "$BATS_TEST_TMPDIR/found"
}

@test 'settings of the server that lose tasks or refuse bodies are reported with the remedy' {
    sql 'SET GLOBAL innodb_flush_log_at_trx_commit = 2'
    found durability BAD 'innodb_flush_log_at_trx_commit = 2: a power failure may lose tasks; set it to 1'
    set_as_told durability
    [ "$(sql 'SELECT @@GLOBAL.innodb_flush_log_at_trx_commit')" = 1 ]
    sql 'SET @@GLOBAL.max_allowed_packet = 262144'
    found packet BAD 'max_allowed_packet = 262144: dqd does not start; set it to 16 MB or more'
    run dqd
    [ "$status" -ne 0 ]
    [[ $output == *'max_allowed_packet is 262144 bytes; dqd needs at least 524288'* ]]
    sql 'SET @@GLOBAL.max_allowed_packet = 786432'
    found packet warn 'max_allowed_packet = 786432: longer bodies are refused; set it to 16 MB or more'
    dqd
    set_as_told packet
    [ "$(sql 'SELECT @@GLOBAL.max_allowed_packet')" = 16777216 ]
}

# slow_clock: makes $BATS_TEST_TMPDIR/clock.so, with which a program's host is an hour behind.
slow_clock()
{
    cat >"$BATS_TEST_TMPDIR/clock.c" <<'END'
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *ts)
{
    long rc = syscall(SYS_clock_gettime, clock, ts);
    ts->tv_sec -= clock == CLOCK_REALTIME ? 3600 : 0;
    return (int)rc;
}
END
    cc -shared -fPIC -o "$BATS_TEST_TMPDIR/clock.so" "$BATS_TEST_TMPDIR/clock.c"
}

# bats test_tags=bare
@test 'a wrong clock of this host is a warning' {
    slow_clock
    rc=0
    LD_PRELOAD=$BATS_TEST_TMPDIR/clock.so dq doctor >"$BATS_TEST_TMPDIR/found" || rc=$?
    cat "$BATS_TEST_TMPDIR/found"
    grep -qE '^warn +clock +this host is (1h|59m|1h0m).* behind the server' "$BATS_TEST_TMPDIR/found"
}

# bats test_tags=bare
@test 'a wrong clock of the host of a dqd is a warning' {
    slow_clock
    own_ini 's/^\[dqd\]/&\nheartbeat = 2s/'
    LD_PRELOAD=$BATS_TEST_TMPDIR/clock.so dqd_start --config "$BATS_TEST_TMPDIR/own.ini" --resident
    wait_until clocks_known
    found clock warn ", where dqd $DQD_PID runs, is "
    grep -qE "is (1h|59m|1h0m)[^ ]* behind the server's\$" "$BATS_TEST_TMPDIR/found"
    dqd_stop
    for pass in 1 2; do LD_PRELOAD=$BATS_TEST_TMPDIR/clock.so dqd; done # those of a timer
    found clock warn " behind the server's"
    # nor does its word count when it is gone, nor before it has one
    sql 'DELETE FROM dq_poller'
    found clock ok ''
    fake_dqd
    found clock unknown '1 of 1 dqds have not recorded their clocks yet'
}

@test 'a transaction that has been open for long is a warning; without PROCESS it is unknown' {
    id=$(dq -q add t --in 1h) # of one that is late, the check of tags would name the lock, too
    found transactions unknown 'not known: this account lacks the right PROCESS'
    dq doctor | grep -q '^?  *transactions  *not known'
    lock_task "$id"
    new_account dq_doctor
    sql 'GRANT ALL ON dq.* TO dq_doctor@localhost; GRANT PROCESS ON *.* TO dq_doctor@localhost'
    run dq --config "$(own 's/^user = .*/user = dq_doctor/')" doctor --old-transaction 0s
    echo "$output"
    grep -E 'warn +transactions +connection [0-9]+, root@localhost, has had a transaction open for .* KILL [0-9]+' \
        <<<"$output"
    sql "$(grep -o 'KILL [0-9]*' <<<"$output")"
    wait_until found transactions ok '' --config "$BATS_TEST_TMPDIR/own.ini"
    lock_release
}

@test 'who has locked a late task is named to an account with the right PROCESS, by doctor and why' {
    id=$(dq -q add t --at 2020-01-01T00:00:00Z)
    other=$(dq -q add u --at 2020-01-01T00:00:00Z)
    fake_dqd t u
    lock_task "$id"
    wait_until found tags BAD "task $id of t is "
    grep -q 'has locked it; an account with the privilege PROCESS sees which one' "$BATS_TEST_TMPDIR/found"
    wait_until eval 'dq why "$id" | grep "dq why shows an account with the right PROCESS who has locked it"'
    new_account dq_doctor
    sql 'GRANT ALL ON dq.* TO dq_doctor@localhost; GRANT PROCESS ON *.* TO dq_doctor@localhost'
    export DQ_CONFIG=$(own 's/^user = .*/user = dq_doctor/')
    holder=$(sql "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_rows_locked > 0")
    wait_until found tags BAD "late: another session has locked it: connection $holder, root@localhost, open for "
    grep -q "open for [0-9]*s: KILL $holder" "$BATS_TEST_TMPDIR/found"
    refute grep -q "task $other" "$BATS_TEST_TMPDIR/found"
    dq why "$id" | tee "$BATS_TEST_TMPDIR/why"
    grep "^  another session has locked its row  *connection $holder, root@localhost, open" "$BATS_TEST_TMPDIR/why"
    grep -q "^  end that transaction, or: KILL $holder$" "$BATS_TEST_TMPDIR/why"
    lock_release
    [ "$(dq why "$id" -o json | grep -c locked)" -eq 0 ]
}

@test 'a prepared XA transaction, which has no connection, is named like one that has' {
    id=$(dq -q add t --at 2020-01-01T00:00:00Z)
    fake_dqd t
    sql "XA START 'x'; UPDATE dq_task SET error_stack = 'x' WHERE id = $id; XA END 'x'; XA PREPARE 'x'"
    new_account dq_doctor
    sql 'GRANT ALL ON dq.* TO dq_doctor@localhost; GRANT PROCESS ON *.* TO dq_doctor@localhost'
    export DQ_CONFIG=$(own 's/^user = .*/user = dq_doctor/')
    wait_until found tags BAD 'late: another session has locked it: a prepared XA transaction, open for '
    dq doctor --old-transaction 0s | tee "$BATS_TEST_TMPDIR/doctor" || true
    wait_until eval 'dq why "$id" | tee "$BATS_TEST_TMPDIR/why" | grep "has locked its row"'
    sql "XA ROLLBACK '$(sql 'XA RECOVER' | cut -f 4)'"
    wait_until found transactions ok ''
    [ "$(dq why "$id" -o json | grep -c locked)" -eq 0 ]
    grep -E '^warn +transactions +a prepared XA transaction has been open for' "$BATS_TEST_TMPDIR/doctor"
    grep -q '^  another session has locked its row  *a prepared XA transaction, open' "$BATS_TEST_TMPDIR/why"
    grep -qF '  end that transaction, or: XA ROLLBACK (XA RECOVER lists it)' "$BATS_TEST_TMPDIR/why"
}

@test 'tables that differ are BAD, and the statements that doctor prints correct them' {
    sql 'ALTER TABLE dq_task DROP KEY due, DROP COLUMN pid, ADD UNIQUE KEY odd (create_time)'
    sql 'ALTER TABLE dq_poller MODIFY COLUMN host varchar(10) NULL'
    sql 'ALTER TABLE dq_attempt DROP PRIMARY KEY; ALTER TABLE dq_minute DROP PRIMARY KEY, ADD PRIMARY KEY (minute, tag)'
    found schema BAD 'index dq_task.due is missing'
    found statements BAD 'looking for due tags: '
    sed -n 's/.*this mends it: //p' "$BATS_TEST_TMPDIR/found" >"$BATS_TEST_TMPDIR/mend"
    cat "$BATS_TEST_TMPDIR/mend"
    [ "$(grep -o 'ALTER TABLE' "$BATS_TEST_TMPDIR/mend" | wc -l)" -eq 6 ]
    sql "$(cat "$BATS_TEST_TMPDIR/mend")"
    found schema ok 'tables as dq makes them'
    dq init | grep -q 'nothing to do'
}

@test 'a schema of another version is BAD' {
    sql "UPDATE dq_meta SET value = 0 WHERE name = 'schema_version'"
    found schema BAD 'run dq init'
    sql "UPDATE dq_meta SET value = 1 WHERE name = 'schema_version'"
    found schema ok ''
}

@test "procedures that are missing, old or not dq's are a warning" {
    sql 'DROP PROCEDURE dq_add'
    found procedures warn '1 are missing: run dq init'
    sql "CREATE PROCEDURE dq_add() COMMENT 'dq: an old one' SELECT 1"
    found procedures warn '1 are of another release: run dq init'
    sql 'DROP PROCEDURE dq_add'
    sql 'CREATE PROCEDURE dq_add() SELECT 1'
    found procedures warn "1 of that name are not dq's: rename them"
    sql 'DROP PROCEDURE dq_add'
    dq -q init
    found procedures ok "$(grep -c '^CREATE PROCEDURE' "$DQ_TOP/sql/routines.sql") for producers in SQL, current"
}

@test 'an account that may not see the tables and procedures is not told that they are missing' {
    sql "$(sed "s/'%'/'localhost'/; s/ IDENTIFIED BY '[^']*'//" "$DQ_TOP/sql/grants.sql.example")"
    fake_dqd t
    sql 'UPDATE dq_poller SET clock_ahead = 0'
    found schema unknown 'not known: ' --config "$(own 's/^user = .*/user = dq_monitor/')"
    grep -q 'this account may not read all columns of dq_' "$BATS_TEST_TMPDIR/found"
    refute grep -q 'ALTER TABLE' "$BATS_TEST_TMPDIR/found"
    found procedures unknown 'none that this account can see' --config "$(own 's/^user = .*/user = dq_monitor/')"
    dq --config "$BATS_TEST_TMPDIR/own.ini" doctor -o ndjson | grep -q '^{"verdict":"unknown","check":"procedures"'
    dq --config "$BATS_TEST_TMPDIR/own.ini" doctor # what is not known is not a fault
    sql 'REVOKE SELECT ON dq.dq_handler FROM dq_monitor@localhost'
    found starts unknown 'not known: ' --config "$BATS_TEST_TMPDIR/own.ini"
    found tags unknown 'not known: ' --config "$BATS_TEST_TMPDIR/own.ini"
    sql 'REVOKE SELECT ON dq.dq_poller FROM dq_monitor@localhost'
    found starts unknown 'not known: ' --config "$BATS_TEST_TMPDIR/own.ini"
    refute grep -q 'no dqd is alive' "$BATS_TEST_TMPDIR/found"
}

@test 'a handlers file that this account may not read is unknown' {
    install -m 0000 "$DQ_HANDLERS" "$BATS_TEST_TMPDIR/handlers.yaml"
    own_ini ''
    sed -i "s|^handlers = .*|handlers = $BATS_TEST_TMPDIR/handlers.yaml|" "$BATS_TEST_TMPDIR/own.ini"
    setpriv --inh-caps=-all --bounding-set=-all "$DQ_BIN/dq" --config "$BATS_TEST_TMPDIR/own.ini" doctor -o tsv \
        >"$BATS_TEST_TMPDIR/found" || [ $? -eq 2 ]
    cat "$BATS_TEST_TMPDIR/found"
    grep -qP '^unknown\thandlers\tnot known: .*: Permission denied' "$BATS_TEST_TMPDIR/found"
}

@test 'statements that read too many rows are a warning' {
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT CONCAT('t', seq % 30), '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM $(numbers 30000)"
    sql 'ANALYZE TABLE dq_task' >/dev/null
    found statements ok 'the statements of dqd use the index due, and sort nothing'
    sql "UPDATE dq_task SET tag = CONCAT('t', id)"
    sql 'ANALYZE TABLE dq_task' >/dev/null
    found statements ok 'the statements of dqd read few rows' # for so many tags
    sql "UPDATE dq_task SET tag = CONCAT('t', id % 30)"
    sql 'ALTER TABLE dq_task DROP KEY due, ADD KEY due (status)'
    sql 'ANALYZE TABLE dq_task' >/dev/null
    found statements warn 'looking for due tags reads about '
    sql 'DELETE FROM dq_task WHERE id > (SELECT MIN(id) + 10 FROM (SELECT id FROM dq_task) t)'
    sql 'ANALYZE TABLE dq_task' >/dev/null
    found statements ok 'the statements of dqd read few rows'
    sql 'ALTER TABLE dq_task DROP KEY due, ADD KEY due (status, tag, expected_time)'
}

@test 'invalid rows of applications are reported with the statement that corrects them' {
    sql "INSERT INTO dq_task (tag, task_key, live, message_body, expected_time, create_time)
         VALUES ('t', 'k', NULL, '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
    found tasks BAD 'live is not 1 for 1 pending or running with a key: another task can have the same key'
    sql "$(sed -n 's/.*; run: \(UPDATE[^;]*\);.*/\1/p' "$BATS_TEST_TMPDIR/found")"
    found tasks ok ''
    sql "UPDATE dq_task SET status = 9"
    found tasks warn "1 with a status that is none of dq's, which no dqd runs"
    sql "UPDATE dq_task SET status = 0, expected_time = '0001-01-01'"
    found tasks warn '1 pending, due before the year 1000'
}

# dqd_row TOKEN HOST PID SECONDS STALE VERSION: a dqd that was last seen SECONDS ago.
dqd_row()
{
    sql "INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after, version,
                                lease, handlers)
         VALUES ('$1', '$2', $3, 'resident', 1, 0, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) - INTERVAL $4 SECOND, $5, '$6',
                 60000, 0)"
}

@test 'no live dqd is BAD, one of another version a warning' {
    found dqd BAD 'none is alive, and none is known from the last day: start dqd'
    [ "$rc" -eq 2 ]
    dqd_start --resident
    wait_until found dqd ok ''
    dqd_stop
    dqd_row a web1 17 240 20000 1
    found dqd BAD "none is alive; the last ended on $(hostname), "
    sql 'DELETE FROM dq_event'
    found dqd BAD 'none is alive; the last was web1/17, silent for 4m'
    dqd_row b web2 18 0 3600000 0.0.1
    found dqd warn '1 of 1 are of another version (0.0.1; this is '
    [ "$rc" -eq 1 ]
}

@test 'tags that no dqd serves and handlers that cannot be started are BAD' {
    echo 'handlers: {gone: {run: [/nonexistent/program]}}' | write_handlers
    dqd_start --resident
    wait_until alive
    found tags ok '0 with due tasks, each is served'
    dq -q add typo
    dq -q add gone
    served() { dq doctor | grep -qE '^BAD +starts +gone cannot be started on [^ ]*: .*; tried again in '; }
    wait_until served
    found tags BAD 'no dqd serves 1 of 2 tags with due tasks: typo; add a handler, or: dq cancel -t TAG'
    for level in high low; do dq -q add typo --priority $level; done # the same tag
    found tags BAD 'no dqd serves 1 of 2 tags with due tasks: typo; add a handler, or: dq cancel -t TAG'
    [ "$rc" -eq 2 ]
    dq -q cancel -y -t typo
    found tags ok ''
    dq -q add other
    found tags BAD ': other; add a handler, or: '
    echo 'handlers: {gone: {run: "true"}, other: {run: "true"}}' | write_handlers
    kill -HUP "$DQD_PID"
    wait_until found tags ok ''
    wait_until found starts ok ''
}

@test 'what dqds have not recorded is unknown' {
    dq -q add t
    found tags unknown '1 of 1 tags with due tasks: not known whether they are served, as no dqd is alive'
    found starts unknown 'not known: no dqd is alive'
    fake_dqd
    found tags unknown 'as a dqd has not recorded what it serves'
    found starts unknown 'not known of 1 dqds'
    sql 'DELETE FROM dq_poller'
    fake_dqd 't'
    found tags ok '1 with due tasks, each is served'
    found starts ok ''
}

@test 'the rights of each account of sql/grants.sql.example are enough for its role' {
    sql "$(sed "s/'%'/'localhost'/; s/ IDENTIFIED BY '[^']*'//" "$DQ_TOP/sql/grants.sql.example")"
    found rights ok 'enough for monitor' --config "$(own 's/^user = .*/user = dq_monitor/')"
    found rights ok 'enough for producer;' --config "$(own 's/^user = .*/user = dq_producer/')"
    found rights ok 'enough for worker, monitor; producer lacks INSERT on dq_task; operator lacks' \
        --config "$(own 's/^user = .*/user = dq_worker/')"
    found rights ok 'enough for producer, operator, monitor; worker lacks' \
        --config "$(own 's/^user = .*/user = dq_operator/')"
    sql 'REVOKE DELETE ON dq.dq_attempt FROM dq_operator@localhost'
    found rights ok 'operator lacks DELETE on dq_attempt' --config "$(own 's/^user = .*/user = dq_operator/')"
    new_account dq_nothing
    sql 'GRANT SELECT ON dq.dq_meta TO dq_nothing@localhost'
    sql 'GRANT SELECT (id, tag, status) ON dq.dq_task TO dq_nothing@localhost'
    found rights BAD 'can do the work of no role' --config "$(own 's/^user = .*/user = dq_nothing/')"
}
