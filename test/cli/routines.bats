# The procedures for producers in SQL: what dq init makes of them, and that they add and cancel as dq does, whatever the
# session they are called in.

load ../lib/sandbox

setup()
{
    sandbox_clear
    dq init >/dev/null 2>&1 || true # after a test that failed midway
    flags=$(sql "SHOW VARIABLES LIKE 'default_regex_flags'" | sed "s/\t.*/ = 'EXTENDED_MORE,MULTILINE';/; s/^/SET /")
}

PROCEDURES=$(sed -n 's/^CREATE PROCEDURE \(.*\)($/\1/p' "$DQ_TOP/sql/routines.sql" | sort | paste -sd ' ') ALL=10

procedures()
{
    sql "SELECT routine_name FROM information_schema.routines WHERE routine_schema = '${1:-dq}' ORDER BY 1" |
        paste -sd ' '
}

refused() { sql_refuses "$@"; }

@test 'dq init creates the procedures, leaves those that are right alone, and replaces others' {
    [ "$(procedures)" = "$PROCEDURES" ]
    run dq init
    echo "$output"
    [[ $output != *procedures* ]]
    sql "DROP PROCEDURE dq_add;
         CREATE DEFINER = dq@localhost PROCEDURE dq_add(i int) COMMENT 'dq: of another text' BEGIN END"
    sql 'ALTER PROCEDURE dq_cancel_key SQL SECURITY INVOKER'
    run dq init
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *'procedures for producers in SQL: 2 created or replaced'* ]]
    [[ $output != *'nothing to do'* ]]
    sql "CALL dq_add('t', NULL, 'body', 0, @id)"
    [ "$(count)" -eq 1 ]
}

@test 'dq init replaces no procedure of others, and creates none with --no-routines or without the right' {
    ini=$BATS_TEST_TMPDIR/other.ini
    sed 's/^database.*/database = other/; s/^user.*/user = maker/' "$DQ_CONFIG" >"$ini"
    chmod 600 "$ini"
    new_account maker
    sql 'DROP DATABASE IF EXISTS other; CREATE DATABASE other;
         GRANT CREATE, ALTER, INDEX, SELECT, INSERT, UPDATE, DELETE ON other.* TO maker@localhost'
    run dq --config "$ini" init
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *'the procedures for producers in SQL are missing or not up to date: '*denied* ]]
    sql 'GRANT ALL ON other.* TO maker@localhost'
    run dq --config "$ini" init --no-routines
    [ "$status" -eq 0 ]
    [ -z "$(procedures other)" ]
    sql 'CREATE PROCEDURE other.dq_add_at() BEGIN END'
    run dq --config "$ini" init
    echo "$output"
    [ "$status" -eq 78 ]
    [[ $output == *"the procedure dq_add_at is not dq's"* ]]
    [ "$(procedures other)" = dq_add_at ]
    sql 'DROP DATABASE other; DROP USER maker@localhost'
}

# dq_as ACCOUNT ARG...: what dq prints is in $output.
dq_as()
{
    run as "$1" dq "${@:2}"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test 'dq init --plan lists the procedures that it would create or replace, and counts the others' {
    run dq init --plan
    echo "$output"
    [[ $output == *"procedures for producers in SQL: $ALL left alone"*': nothing to do'* ]]
    [[ $output != *PROCEDURE\ dq* ]]
    sql 'DROP PROCEDURE dq_add; ALTER PROCEDURE dq_cancel_key SQL SECURITY INVOKER'
    run dq init --plan -o ndjson
    echo "$output"
    [ "${#lines[@]}" -eq 3 ]
    [[ $output == *'{"migration":"routines","table":null,"rows":0,"touched":0,"writers_wait":false,'\
'"statement":"CREATE PROCEDURE dq_add (...)"}'* ]]
    [[ $output == *'"CREATE OR REPLACE PROCEDURE dq_cancel_key (...)"}'* ||
        $output == *'"DROP PROCEDURE dq_cancel_key; CREATE PROCEDURE dq_cancel_key (...)"}'* ]]
    [[ $output == *"procedures for producers in SQL: $((ALL - 2)) left alone"* ]]
    [[ $(dq init --plan --no-routines 2>&1) == *'schema version '*': nothing to do'* ]]
    new_account maker
    sql 'GRANT SELECT, EXECUTE ON dq.* TO maker@localhost'
    dq_as maker init --plan
    [[ $output == *'procedures for producers in SQL: 2 not created, as this account has no right to'* ]]
    sql 'GRANT CREATE ROUTINE ON dq.* TO maker@localhost'
    dq_as maker init --plan
    [[ $output == *'CREATE PROCEDURE dq_add (...)'* ]]
    [[ $output == *': 1 not created, as this account has no right to'* ]]
    sql 'GRANT ALTER ROUTINE ON dq.* TO maker@localhost; DROP PROCEDURE dq_cancel_key;
         CREATE PROCEDURE dq_cancel_key() BEGIN END'
    own_ini 's/^user = .*/user = maker/'
    run dq --config "$BATS_TEST_TMPDIR/own.ini" init --plan
    [ "$status" -eq 78 ]
    [[ $output == *"the procedure dq_cancel_key is not dq's"* ]]
    sql 'DROP PROCEDURE dq_cancel_key; DROP USER maker@localhost'
    dq -q init >/dev/null
}

@test 'dq init replaces procedures whose creator was dropped, and those of a newer dq not' {
    new_account maker
    sql "GRANT CREATE ROUTINE, ALTER ROUTINE, EXECUTE, SELECT, INSERT, UPDATE ON dq.* TO maker@localhost
         $(printf '; DROP PROCEDURE %s' $PROCEDURES)"
    dq_as maker init
    run dq init
    [[ $output != *procedures* ]]
    sql "DROP USER maker@localhost"
    run sql "CALL dq_add('t', NULL, 'body', 0, @id)"
    [[ $output == *'ERROR 1449 '* ]]
    [[ $(dq init --plan 2>/dev/null | grep -c 'CREATE .*PROCEDURE') -eq $ALL ]]
    [[ $(dq init 2>&1) == *"procedures for producers in SQL: $ALL created or replaced"* ]]
    sql "CALL dq_add('t', NULL, 'body', 0, @id)"
    sql "DROP PROCEDURE dq_add;
         CREATE DEFINER = dq@localhost PROCEDURE dq_add(i int) COMMENT 'dq: of a newer dq' BEGIN END;
         UPDATE dq_meta SET value = value + 1 WHERE name = 'schema_version'"
    run dq init
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output != *procedures* ]]
    [[ $(dq init --plan 2>&1) != *PROCEDURE* ]]
    sql "UPDATE dq_meta SET value = value - 1 WHERE name = 'schema_version'"
    [[ $(dq init 2>&1) == *'1 created or replaced'* ]]
}

@test 'dq init keeps the grants on a procedure that it replaces, or prints those that MySQL drops' {
    new_account shop
    other_text()
    {
        sql "DROP PROCEDURE dq_add;
             CREATE DEFINER = dq@localhost PROCEDURE dq_add(i int) COMMENT 'dq: of another text' BEGIN END;
             GRANT EXECUTE ON PROCEDURE dq.dq_add TO shop@localhost"
    }
    shop()
    {
        mariadb --no-defaults --user=shop --database=dq --socket="$(readlink -f "$DQ_SANDBOX/server")/mysql.sock" \
            --execute="CALL dq_add('t', NULL, 'body', 0, @id)"
    }
    other_text
    dq_as root init
    shop
    [[ $output != *GRANT* ]]
    other_text
    dq_as dq init
    if [[ $(sql 'SELECT VERSION()') != *MariaDB* ]]; then
        [[ $output == *'    GRANT EXECUTE ON PROCEDURE `dq`.dq_add TO each account that calls it;'* ]]
        refute shop
        other_text
        sql 'GRANT SELECT ON mysql.procs_priv TO dq@localhost'
        dq_as dq init
        refute shop
        sql "$(grep -o 'GRANT .*;' <<<"$output")"
        sql 'REVOKE SELECT ON mysql.procs_priv FROM dq@localhost'
    fi
    shop
    sql 'DROP USER shop@localhost'
}

@test 'dq init of an account that may drop procedures but not create them leaves them as they are' {
    new_account maker
    sql "GRANT ALTER ROUTINE, EXECUTE, SELECT ON dq.* TO maker@localhost; DROP PROCEDURE dq_add;
         CREATE DEFINER = dq@localhost PROCEDURE dq_add(i int) COMMENT 'dq: of another text' BEGIN END"
    dq_as maker init
    [[ $output == *'missing or not up to date: procedure dq_add: '*denied* ]]
    [ "$(procedures)" = "$PROCEDURES" ]
    sql 'DROP USER maker@localhost'
    [[ $(dq init 2>&1) == *'1 created or replaced'* ]]
}

@test 'two dq init that both find a procedure missing create it once' {
    [[ $(sql "SHOW STATUS LIKE 'wsrep_cluster_size'") != *[1-9]* ]] ||
        skip 'Galera refuses CREATE PROCEDURE during FLUSH TABLES WITH READ LOCK'
    sql 'DROP PROCEDURE dq_add; DROP PROCEDURE dq_add_at'
    mkfifo "$BATS_TEST_TMPDIR/lock"
    mariadb --no-defaults --unbuffered --user=root --socket="$(readlink -f "$DQ_SANDBOX/server")/mysql.sock" \
        <"$BATS_TEST_TMPDIR/lock" >"$BATS_TEST_TMPDIR/locked" 3>&- &
    exec 9>"$BATS_TEST_TMPDIR/lock"
    echo "FLUSH TABLES WITH READ LOCK; SELECT 'done';" >&9
    wait_until grep -q done "$BATS_TEST_TMPDIR/locked"
    creating()
    {
        [ "$(sql "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'CREATE PROCEDURE%'")" -eq 2 ]
    }
    for i in 1 2; do dq init >"$BATS_TEST_TMPDIR/said.$i" 2>&1 3>&- 9>&- & pids[i]=$!; done
    wait_until creating
    exec 9>&-
    for i in 1 2; do
        wait "${pids[i]}" || { cat "$BATS_TEST_TMPDIR"/said.*; false; }
    done
    [ "$(procedures)" = "$PROCEDURES" ]
}

@test 'a DBA creates the same procedures with the SQL that dq init prints' {
    sql 'DROP DATABASE IF EXISTS other; CREATE DATABASE other; GRANT ALL ON other.* TO dq@localhost'
    new_account shop
    for time in 1 2; do # the second replaces them; only MariaDB keeps the grants then
        dq init --print-sql | mariadb --no-defaults --user=dq --database=other \
            --socket="$(readlink -f "$DQ_SANDBOX/server")/mysql.sock"
        [ "$(procedures other)" = "$PROCEDURES" ]
        [ "$time" = 2 ] || sql 'GRANT EXECUTE ON PROCEDURE other.dq_add TO shop@localhost'
    done
    [[ $(sql 'SELECT VERSION()') != *MariaDB* || $(sql 'SHOW GRANTS FOR shop@localhost') == *EXECUTE* ]]
    sql 'DROP USER shop@localhost'
    own_ini 's/^database.*/database = other/'
    run dq --config "$BATS_TEST_TMPDIR/own.ini" init
    echo "$output"
    [[ $output != *procedures* ]]
    [ -z "$(dq init --print-sql --no-routines | grep PROCEDURE)" ]
    sql 'DROP DATABASE other'
}

@test 'the procedures set each column as dq add does' {
    row="tag, task_key, live, message_body, body_size, status, version, attempt, max_attempts, delay_time,
         TIMESTAMPDIFF(MICROSECOND, create_time, expected_time),
         TIMESTAMPDIFF(SECOND, create_time, UTC_TIMESTAMP(3)) < 60,
         lease_until, finish_time, update_time, host, TIMESTAMPDIFF(MICROSECOND, expected_time, expires_time)"
    last() { sql "SELECT $row FROM dq_task ORDER BY id DESC LIMIT 1"; }
    same()
    {
        dq -q add "${@:2}" >/dev/null
        wanted=$(last)
        sandbox_clear
        sql "$1"
        got=$(last)
        printf '%s\n%s\n' "$wanted" "$got"
        [ "$wanted" = "$got" ]
        sandbox_clear
    }
    same "CALL dq_add('t', NULL, 'body', 0, @id)" t body
    same "CALL dq_add('t', 'k', '', 90000, @id)" t --key k --in 90s
    same "CALL dq_add_options('t', 'k', 'body', '{\"delay_ms\": 1, \"max_attempts\": 7}', @id)" \
        t body --key k --in 1ms --max-attempts 7
    same "CALL dq_add_options('t', NULL, '', '{\"delay_ms\": 9, \"attempted\": 2, \"expires_ms\": 8}', @id)" \
        t --in 9ms --attempted 2 --expires 8ms
    sql "CALL dq_add_options('t', NULL, '', '{\"expires_utc\": \"2031-01-02T03:04:05Z\"}', @id)"
    is "expires_time = '2031-01-02 03:04:05'" 1
    sandbox_clear
    same "CALL dq_add_options('t', NULL, 'body', NULL, @id)" t body
    row="tag, task_key, live, message_body, body_size, delay_time, expected_time"
    same "CALL dq_add_at('t', 'k', 'body', '2031-01-02 03:04:05.678', @id)" t body --key k --at 2031-01-02T03:04:05.678Z
    same "CALL dq_add_at('t', 'k', 'body', '2001-01-02T03:04:05Z', @id)" t body --key k --at 2001-01-02T03:04:05Z
    for digits in 6789 678000 678001 9999; do
        same "CALL dq_add_at('t', 'k', 'body', '2031-01-02 03:04:05.$digits', @id)" t body --key k \
            --at "2031-01-02T03:04:05.${digits}Z"
    done
    same "CALL dq_add_options('t', NULL, 'b', '{\"utc\": \"2031-01-02T03:04:05.678Z\"}', @id)" \
        t b --at 2031-01-02T03:04:05.678Z
}

@test 'a task is part of the transaction of its caller, who gets its id and keeps LAST_INSERT_ID' {
    sql 'CREATE TABLE orders (id int AUTO_INCREMENT PRIMARY KEY, paid int) AUTO_INCREMENT = 4711'
    sql "BEGIN; INSERT INTO orders (paid) VALUES (0); CALL dq_add('t', 'k', 'body', 0, @id); ROLLBACK"
    [ "$(count)" -eq 0 ]
    [ "$(sql "BEGIN; INSERT INTO orders (paid) VALUES (0); CALL dq_add('t', 'k', 'body', 0, @id);
              CALL dq_add('t', 'k', 'body', 0, @again); CALL dq_cancel_key('t', 'none', @n); COMMIT;
              SELECT LAST_INSERT_ID(), @id = @again, @id = (SELECT id FROM dq_task), @n")" = $'4712\t1\t1\t0' ]
    sql "BEGIN; CALL dq_cancel_key('t', 'k', @n); ROLLBACK; DROP TABLE orders"
    [ "$(sql 'SELECT status, live FROM dq_task')" = $'0\t1' ]
}

@test 'each argument that dq add refuses is refused, with its name and the rule' {
    tag='tag: 1 to 128 characters, no white space'
    for bad in NULL "''" "'a b'" "'-a'" "'a*'" "'a?'" "'a,b'" "'a\"'" "'a\`'" "'a''b'" "'a\\\\b'" "REPEAT('a', 129)" \
        "CONCAT('a', CHAR(0))" "'a\n'" "'a '" "_utf8mb4 x'61c285'" "_utf8mb4 x'61e28083'" \
        "_utf8mb4 x'e3808061'" "_utf8mb4 x'c2a0'" "_utf8mb4 x'c29f'" "CHAR(127)"; do
        refused "$tag" "CALL dq_add($bad, NULL, 'body', 0, @id)"
    done
    # what is invisible, of each range one; and what is not
    for bad in c2ad cd8f d89c e1859f e19eb4 e1a08e e2808b e280ae e281a6 e385a4 efb88f efbbbf efbea0 efbfb9 f09bb2a0 \
        f09d85ba f3a08181 f3a0bfbf; do
        refused "$tag" "CALL dq_add(_utf8mb4 x'61${bad}62', NULL, 'body', 0, @id)"
    done
    for good in f09f9880 efbfbd e4bdbf f3b08080 c3a4f09f9880; do
        sql "CALL dq_add(_utf8mb4 x'61${good}62', NULL, 'body', 0, @id)"
    done
    sql 'DELETE FROM dq_task'
    refused "$tag" "SET sql_mode = ''; CALL dq_add(REPEAT('a', 100000), NULL, 'body', 0, @id)"
    key='task_key: NULL, or 1 to 255 characters'
    for bad in "''" "' a'" "'a '" "REPEAT('a', 256)" "'a\tb'" "_utf8mb4 x'61e28083'" "_utf8mb4 x'e3808061'" \
        "_utf8mb4 x'61c285'" "'a\n'"; do
        refused "$key" "CALL dq_add('t', $bad, 'body', 0, @id)"
        refused "$key" "$flags SET sql_mode = ''; CALL dq_add('t', $bad, 'body', 0, @id)"
    done
    refused 'body: must not be NULL' "CALL dq_add('t', NULL, NULL, 0, @id)"
    refused "body: $(sql 'SELECT @@max_allowed_packet - 511') bytes; at most" \
        "CALL dq_add('t', NULL, REPEAT('a', @@max_allowed_packet - 511), 0, @id)"
    for bad in NULL -1 316224000001 9223372036854775807; do
        refused 'delay_ms: milliseconds from 0 to 316224000000' "CALL dq_add('t', NULL, '', $bad, @id)"
    done
    for bad in NULL "''" "'0000-00-00 00:00:00'" "'0001-01-01 00:00:00'" "'2031-02-31 00:00:00'" "'2031-01-01'" \
        "'2031-01-01 24:00:00'" "'2031-01-01 00:00:00+01:00'" "'soon'" \
        "'2031-01-01 00:00:00 '" "'2031-01-01 00:00:00\n'" "'12031-01-01 00:00:00'"; do
        refused 'utc: a time in UTC such as' "CALL dq_add_at('t', NULL, X'', $bad, @id)"
    done
    for bad in "'x'" "'[]'" "'1'" "''" "'{'"; do
        refused 'options: a JSON object' "CALL dq_add_options('t', NULL, '', $bad, @id)"
    done
    for bad in '"delay": 1' '"delay_ms": 1, "": 2' '"Delay_ms": 1'; do
        refused 'options: the members are' "CALL dq_add_options('t', NULL, '', '{$bad}', @id)"
    done
    bad='{"u\\u0074c": null}' # MySQL reads the escape
    [ -z "$flags" ] || refused 'options: the members' "CALL dq_add_options('t', NULL, '', '$bad', @id)"
    for bad in -1 1.5 '"x"' '"1"' true '[]' '{}' 99999999999999999999 316224000001; do
        refused '' "CALL dq_add_options('t', NULL, '', '{\"delay_ms\": $bad}', @id)"
        [[ $err == *'delay_ms: milliseconds from 0'* ]]
        refused 'options: max_attempts: a number from 1' "CALL dq_add_options('t', NULL, '',
                 '{\"max_attempts\": ${bad/316224000001/0}}', @id)"
    done
    for bad in '"drop"' 1 '"KEEP"' '"\"keep\""'; do
        refused 'options: key_conflict: keep, error, replace or again' \
            "CALL dq_add_options('t', NULL, '', '{\"key_conflict\": ${bad//\\/\\\\}}', @id)"
    done
    for bad in 0 -1 '"x"' 1.5 65 4294967296; do
        refused 'options: attempted: a number from 1 to' "CALL dq_add_options('t', NULL, '',
                 '{\"delay_ms\": 1, \"attempted\": $bad}', @id)"
    done
    refused 'options: attempted: a' \
        "CALL dq_add_options('t', NULL, '', '{\"delay_ms\": 1, \"attempted\": 3, \"max_attempts\": 3}', @id)"
    refused 'options: attempted: give delay_ms or utc' "CALL dq_add_options('t', NULL, '', '{\"attempted\": 3}', @id)"
    for bad in 0 -1 '"x"' 1.5 316224000001; do
        refused 'options: expires_ms: milliseconds' "CALL dq_add_options('t', NULL, '', '{\"expires_ms\": $bad}', @id)"
    done
    refused 'options: expires_ms and expires_utc cannot' \
        "CALL dq_add_options('t', NULL, '', '{\"expires_ms\": 1, \"expires_utc\": \"2031-01-02 03:04:05\"}', @id)"
    refused 'options: expires_utc: it would expire before' \
        "CALL dq_add_options('t', NULL, '', '{\"delay_ms\": 1, \"expires_utc\": \"2001-01-02 03:04:05\"}', @id)"
    refused 'options: delay_ms and utc cannot' \
        "CALL dq_add_options('t', NULL, '', '{\"delay_ms\": 1, \"utc\": \"x\"}', @id)"
    refused 'utc: a time in UTC' "CALL dq_add_options('t', NULL, '', '{\"utc\": \"tomorrow\"}', @id)"
    key=$'\'order-\xf0\x9f\x90\x8c\''
    for call in "dq_add('t', $key, '', 0, @id)" "dq_cancel_key('t', $key, @n)"; do
        refused 'task_key: ???? is what' "SET sql_mode = ''; SET NAMES utf8mb3; CALL $call"
    done
    refused 'tag: must not be NULL' "CALL dq_cancel_key(NULL, 'k', @n)"
    refused 'task_key: must not be NULL' "CALL dq_cancel_key('t', NULL, @n)"
    [ "$(count)" -eq 0 ]
    longest=$(sed -nE "s/.*(SET v_error|MESSAGE_TEXT) = '([^']*)'.*/\2/p" "$DQ_TOP/sql/routines.sql" | wc -L)
    [ "$longest" -gt 100 ]
    [ "$longest" -le 128 ]
}

@test 'what dq add accepts is accepted: long names of any script, any bytes, far times' {
    name=$(printf '\xf0\x9f\x90\x98%.0s' {1..128})
    sql "SET NAMES utf8mb4; CALL dq_add('$name', '$name', x'00ff27', 316224000000, @id);
         CALL dq_add('a/b.c:d-e', 'a  b', '', 0, @id);
         CALL dq_add_at('t', '\"quoted\" \\\\ ''k''', '', '9999-12-31T23:59:59.999Z', @id);
         CALL dq_add_at('t', NULL, X'', '1000-01-01 00:00:00', @id)"
    [ "$(sql 'SELECT CHAR_LENGTH(tag), CHAR_LENGTH(task_key), HEX(message_body), delay_time FROM dq_task LIMIT 1')" = \
        $'128\t128\t00FF27\t316224000000' ]
    [ "$(sql 'SELECT MAX(expected_time), MIN(expected_time), COUNT(*) FROM dq_task')" = \
        $'9999-12-31 23:59:59.999\t1000-01-01 00:00:00.000\t4' ]
}

@test 'a key that a live task has: keep, error and replace as dq add' {
    add()
    {
        sql "CALL dq_add_options('t', 'k', '$1',
                                 '{\"key_conflict\": \"$2\", \"delay_ms\": $3, \"max_attempts\": $4}', @id);
             SELECT @id"
    }
    id=$(add first keep 60000 2)
    [ "$(add second keep 1 3)" = "$id" ]
    [ "$(sql 'SELECT message_body, delay_time, max_attempts, version FROM dq_task')" = $'first\t60000\t2\t0' ]
    refused "task_key: task $id has it and is pending" \
        "CALL dq_add_options('t', 'k', 'third', '{\"key_conflict\": \"error\"}', @id)"
    [[ $err == *'ERROR 1062 '* ]]
    sql 'UPDATE dq_task SET attempt = 1'
    [ "$(add 'the fourth' replace 5 4)" = "$id" ]
    [ "$(sql 'SELECT message_body, body_size, delay_time, max_attempts, version, attempt, status, live,
                     expected_time BETWEEN update_time AND update_time + INTERVAL 10000 MICROSECOND FROM dq_task')" = \
        $'the fourth\t10\t0\t4\t1\t0\t0\t1\t1' ]
    sql "UPDATE dq_task SET status = 3, attempt = 1, version = 2"
    refused "task_key: task $id has it and is running" \
        "CALL dq_add_options('t', 'k', 'fifth', '{\"key_conflict\": \"replace\"}', @id)"
    [ "$(add sixth keep 1 4)" = "$id" ]
    [ "$(sql "CALL dq_add('other', 'k', '', 0, @id); SELECT @id = $id")" -eq 0 ]
    sql "CALL dq_cancel_key('t', 'k', @n)"
    [ "$(add seventh error 1 4)" != "$id" ]
}

@test 'dq_cancel_key cancels as dq cancel does: a pending or running task, with its history' {
    row='tag, live, status, version, attempt, lease_until, finish_time = update_time, host'
    history='(SELECT version FROM dq_task WHERE id = task_id) - version, attempt, host, pid, start_time, outcome'
    state() { sql "SELECT $row FROM dq_task; SELECT $history FROM dq_attempt"; }
    for change in 'status = 0' "status = 3, attempt = 2, version = 5, host = 'h', pid = 7,
                   lease_until = UTC_TIMESTAMP(3), execution_time = '2026-01-01 00:00:00'"; do
        for by in dq sql; do
            sandbox_clear
            id=$(dq -q add t --key k --in 1h)
            dq -q add t --key other --in 1h
            dq -q add other --key k --in 1h
            sql "UPDATE dq_task SET $change WHERE id = $id;
                 INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome)
                 SELECT id, version, 9, UTC_TIMESTAMP(3), 'stale' FROM dq_task WHERE id = $id AND status = 3"
            [ "$by" = dq ] && dq -q cancel --key k --tag t
            [ "$by" = sql ] && [ "$(sql "CALL dq_cancel_key('t', 'k', @n); SELECT @n")" -eq 1 ]
            state >"$BATS_TEST_TMPDIR/$by"
        done
        diff "$BATS_TEST_TMPDIR/dq" "$BATS_TEST_TMPDIR/sql"
    done
    [ "$(wc -l <"$BATS_TEST_TMPDIR/sql")" -eq 4 ]
    [ "$(sql "CALL dq_cancel_key('t', 'k', @n); SELECT @n")" -eq 0 ]
    [ "$(sql "CALL dq_cancel_key('t', 'other ', @n); SELECT @n")" -eq 0 ]
    [ "$(sql "CALL dq_cancel_key('t', 'other', @n); SELECT @n")" -eq 1 ]
}

@test 'the session of the caller does not matter: sql_mode, character set, time zone, safe updates, old snapshots' {
    for mode in '' ANSI STRICT_ALL_TABLES,ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE \
        NO_AUTO_VALUE_ON_ZERO,HIGH_NOT_PRECEDENCE,PAD_CHAR_TO_FULL_LENGTH,NO_ZERO_DATE,NO_ZERO_IN_DATE,REAL_AS_FLOAT; do
        sandbox_clear
        mode="$flags SET sql_mode = '$mode', time_zone = '+05:30', sql_safe_updates = 1, sql_select_limit = 0"
        mode+=', autocommit = 0'
        sql "$mode; SET NAMES utf8mb4; CALL dq_add('t', 'a\"b', 'x', 1000, @id); COMMIT;
             CALL dq_add_options('t', 'a\"b', 'y',
                                 '{\"utc\": \"2031-01-02 03:04:05\", \"key_conflict\": \"replace\"}', @id); COMMIT"
        [ "$(sql 'SELECT task_key, message_body, expected_time FROM dq_task')" = $'a"b\ty\t2031-01-02 03:04:05.000' ]
        sql "$mode; CALL dq_cancel_key('t', 'a\"b', @n); COMMIT"
        [ "$(sql 'SELECT status FROM dq_task')" -eq 4 ]
        sql "$mode; CALL dq_add('t', NULL, 'x', 1000, @id); COMMIT"
        for column in create_time IFNULL\(finish_time,expected_time\) IFNULL\(update_time,expected_time\); do
            [ "$(sql "SELECT DISTINCT ABS(TIMESTAMPDIFF(SECOND, $column, UTC_TIMESTAMP(3))) < 3600 FROM dq_task")" = 1 ]
        done
    done
    sandbox_clear
    sql "SET NAMES latin1; CALL dq_add(x'74', _latin1 x'e9', _latin1 x'e9', 0, @id)"
    [ "$(sql 'SELECT HEX(task_key), HEX(message_body) FROM dq_task')" = $'C3A9\tE9' ]
}

@test 'a session with an old snapshot sees that a key is taken, or free again' {
    # With innodb_snapshot_isolation it would be told to start again: error 1020.
    plain=$(sql "SHOW VARIABLES LIKE 'innodb_snapshot_isolation'" | sed 's/\t.*/ = 0;/; s/^/SET /')
    for level in 'REPEATABLE READ' 'READ COMMITTED' SERIALIZABLE; do
        sandbox_clear
        id=$(dq -q add t old --key k --in 1h)
        {
            echo "$plain SET SESSION TRANSACTION ISOLATION LEVEL $level; START TRANSACTION;"
            echo 'SELECT COUNT(*) FROM dq_meta;'
            wait_until [ -e "$BATS_TEST_TMPDIR/go" ]
            echo "CALL dq_add('t', 'k', 'new', 0, @id); CALL dq_add('t', 'k2', 'new', 0, @id2);"
            echo 'SELECT @id, @id2; COMMIT;'
        } | mariadb --no-defaults --batch --skip-column-names --unbuffered --user=root --database=dq --force \
            --socket="$(readlink -f "$DQ_SANDBOX/server")/mysql.sock" >"$BATS_TEST_TMPDIR/said" 3>&- &
        wait_until [ -s "$BATS_TEST_TMPDIR/said" ]
        dq -q cancel "$id"
        id2=$(dq -q add t old --key k2 --in 1h)
        touch "$BATS_TEST_TMPDIR/go"
        wait
        rm "$BATS_TEST_TMPDIR/go"
        cat "$BATS_TEST_TMPDIR/said"
        read -r new kept < <(tail -n 1 "$BATS_TEST_TMPDIR/said")
        [ "$new" -gt "$id" ]
        [ "$kept" -eq "$id2" ]
        rm "$BATS_TEST_TMPDIR/said"
    done
}

@test 'dq add --sql prints a statement that any client can run, connects nowhere, and adds nothing' {
    run dq --config /nonexistent add t "it is" --sql --key k --in 10m
    [ "$output" = "CALL dq_add('t', 'k', 'it is', 600000, @id);" ]
    run dq --config /nonexistent add t --sql --at 2031-01-02T03:04:05.678+01:00
    [ "$output" = "CALL dq_add_at('t', NULL, X'', '2031-01-02 02:04:05.678', @id);" ]
    run dq --config /nonexistent add t x --sql --at 2031-01-02T03:04:05Z --max-attempts 3 --key-conflict error
    [ "$output" = "CALL dq_add_options('t', NULL, 'x', '{\"utc\": \"2031-01-02 03:04:05.000\", \"max_attempts\": 3,\
 \"key_conflict\": \"error\"}', @id);" ]
    run dq --config /nonexistent add t $'it\'s {"n": 1}\n' --sql --key "k's"
    [ "$output" = "CALL dq_add('t', 'k''s', CONCAT('it''s {\"n\": 1}', X'0a'), 0, @id);" ]
    run dq --config /nonexistent add t 'größe' --sql
    [ "$output" = "CALL dq_add('t', NULL, X'6772c3b6c39f65', 0, @id);" ]
    for bad in 't --at 09:00' 't -o json' '--from - --dry-run' 't --dry-run'; do
        run dq add --sql $bad
        [ "$status" -eq 64 ]
    done
    run dq add --sql 'a b'
    [ "$status" -eq 65 ]
    for byte in $(seq 0 255); do printf "\\$(printf %03o "$byte")"; done >"$BATS_TEST_TMPDIR/all"
    dq --config /nonexistent add 'tæg' "@$BATS_TEST_TMPDIR/all" --key "k'\\\"" --sql >"$BATS_TEST_TMPDIR/call"
    refute grep -q '[^ -~]' "$BATS_TEST_TMPDIR/call"
    [ "$(count)" -eq 0 ]
    for mode in '' ANSI,NO_BACKSLASH_ESCAPES; do
        sandbox_clear
        sql "SET NAMES latin1; SET sql_mode = '$mode'; $(cat "$BATS_TEST_TMPDIR/call")"
        [ "$(sql 'SELECT HEX(tag), task_key, SHA2(message_body, 256), body_size FROM dq_task')" = \
            "74C3A667"$'\t'"k'\\\\\""$'\t'"$(sha256sum <"$BATS_TEST_TMPDIR/all" | cut -d' ' -f1)"$'\t'256 ]
    done
}

@test 'what dq add --sql prints stores what dq add stores, with every option' {
    stored()
    {
        sql "SELECT tag, task_key, live, HEX(message_body), body_size, max_attempts, delay_time, $1 FROM dq_task"
    }
    same() # same COLUMN ARG...
    {
        sandbox_clear
        dq -q add "${@:2}" </dev/null >/dev/null
        wanted=$(stored "$1")
        sandbox_clear
        sql "$(dq --config /nonexistent add --sql "${@:2}" </dev/null)"
        printf '%s\n' "$wanted" "$(stored "$1")"
        [ "$(stored "$1")" = "$wanted" ]
    }
    due='TIMESTAMPDIFF(SECOND, create_time, expected_time)'
    at='expected_time'
    same "$due" t
    same "$due" t body --in 1h30m
    same "$due" t - --in 3660d --key k
    for body in "it's" "''" 'a\b' '"' 'ü' 'eine größere' $'a\tb' $'{"a": 1}\n\n' $'\n' ' '; do
        same "$due" t "$body"
    done
    same "$due" t '' --max-attempts 4294967295
    same "$due" t body --key k --key-conflict keep
    same "$due" t body --key k --key-conflict replace --in 5s --max-attempts 1
    same "$due" t body --key k --key-conflict error
    same "$at" t body --at @1790000000
    same "$at" t body --at '2031-07-02 03:04:05'
    same "$at" t body --at 2031-07-02T03:04:05.678+01:00 --max-attempts 2 --key k
    same "$at" t body --at 1000-01-02T00:00:00Z
    same "$at" t body --at 9999-12-30T23:59:59.999Z --key-conflict replace
}

@test 'dq add --sql --from prints a statement for each line of a file' {
    cat >"$BATS_TEST_TMPDIR/tasks.ndjson" <<'END'
{"tag": "a", "body": "it's", "key": "k", "in": "10m"}
{"tag": "b", "body_base64": "AP8=", "at": "2031-01-02T03:04:05Z", "max_attempts": 3}

{"tag": "c"}
END
    run dq --config /nonexistent add --sql --from "$BATS_TEST_TMPDIR/tasks.ndjson" --skip 1 --key-conflict error
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$output" = "CALL dq_add_options('b', NULL, X'00ff', '{\"utc\": \"2031-01-02 03:04:05.000\", \"max_attempts\": 3,\
 \"key_conflict\": \"error\"}', @id);
CALL dq_add_options('c', NULL, X'', '{\"key_conflict\": \"error\"}', @id);" ]
    dq --config /nonexistent add --sql --from "$BATS_TEST_TMPDIR/tasks.ndjson" >"$BATS_TEST_TMPDIR/calls"
    dq -q add --from "$BATS_TEST_TMPDIR/tasks.ndjson" >/dev/null
    stored() { sql 'SELECT tag, task_key, HEX(message_body), max_attempts, delay_time FROM dq_task ORDER BY tag'; }
    wanted=$(stored)
    sandbox_clear
    sql "$(cat "$BATS_TEST_TMPDIR/calls")"
    [ "$(stored)" = "$wanted" ]
    printf 't\t5s\t\tbody\nt\ttomorrow 09:00\t\tbody\n' >"$BATS_TEST_TMPDIR/tasks.tsv"
    run dq --config /nonexistent add --sql --from "$BATS_TEST_TMPDIR/tasks.tsv"
    echo "$output"
    [ "$status" -eq 65 ]
    [[ $output == *'tasks.tsv:2: --sql asks no database what time it is: use "in", or "at" with a date'* ]]
}
