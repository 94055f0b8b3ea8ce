# dq add of one task: body, time, key; what is printed where; and what a server that is not as it should be gets told.

load ../lib/sandbox

setup() { sandbox_clear; }

@test 'add prints only the id on stdout, and the resolved time on stderr' {
    try dq add mail.welcome hello --in 10m
    [ "$rc" -eq 0 ]
    [ "$out" = "$(sql 'SELECT id FROM dq_task')" ]
    [[ $err =~ ^due\ [0-9]{4}-[0-9-]*.*Z,\ in\ 10m$ ]]
    try dq -q add mail.welcome hello
    [ -z "$err" ]
    [ "$(sql 'SELECT tag, message_body, status, delay_time, TIMESTAMPDIFF(SECOND, create_time, expected_time)
              FROM dq_task ORDER BY id')" = $'mail.welcome\thello\t0\t600000\t600\nmail.welcome\thello\t0\t0\t0' ]
}

@test 'add prints the id in every output format' {
    try dq add t -o json --in 1h
    [[ $out =~ ^\{\"id\":[0-9]+,\"expected\":\"[0-9T:.-]+Z\",\"result\":\"added\"\}$ ]]
    try dq add t -o tsv
    [ "$(sed -n 1p <<<"$out")" = $'id\texpected\tresult' ]
    [[ $(sed -n 2p <<<"$out") =~ ^[0-9]+.*added$ ]]
    try dq add t -o id
    [[ $out =~ ^[0-9]+$ ]]
}

@test 'the body is taken unchanged from an argument, standard input or a file' {
    for byte in $(seq 0 255); do printf "\\$(printf %03o "$byte")"; done >"$BATS_TEST_TMPDIR/all"
    [ "$(stat -c %s "$BATS_TEST_TMPDIR/all")" -eq 256 ]
    dq -q add t - <"$BATS_TEST_TMPDIR/all"
    dq -q add t "@$BATS_TEST_TMPDIR/all"
    [ "$(sql 'SELECT DISTINCT body_size, SHA2(message_body, 256) FROM dq_task')" = \
        $'256\t'"$(sha256sum <"$BATS_TEST_TMPDIR/all" | cut -d' ' -f1)" ]
    try dq add t @
    [ "$rc" -eq 64 ]
    dq -q add t </dev/null
    dq -q add t - </dev/null
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE message_body = "" AND body_size = 0')" -eq 2 ]
    body="\$(reboot) '; DROP TABLE dq_task; -- \\"
    dq -q add t "$body"
    [ "$(sql 'SELECT COUNT(*) FROM dq_task')" -eq 5 ]
    [ "$(sql 'SELECT HEX(message_body) FROM dq_task ORDER BY id DESC LIMIT 1')" = \
        "$(printf %s "$body" | od -An -v -tx1 | tr -d ' \n' | tr a-f A-F)" ]
}

@test 'every output format shows a body from standard input unchanged' {
    head -c 3000 /dev/urandom >"$BATS_TEST_TMPDIR/random"
    id=$(dq -q add t - <"$BATS_TEST_TMPDIR/random")
    body_of() { sed 's/.*"body_base64":"\([^"]*\)".*/\1/' | base64 -d; }
    dq show "$id" -o json | body_of | cmp - "$BATS_TEST_TMPDIR/random"
    dq list -o ndjson --columns body | body_of | cmp - "$BATS_TEST_TMPDIR/random"
}

@test "absolute times are exact, durations count from the database's clock, and times in the past are due at once" {
    TZ=UTC try dq add t --at 2031-01-02T03:04:05.678Z
    [[ $err == 'due 2031-01-02T03:04:05.678Z, in '* ]]
    sql 'DELETE FROM dq_task'
    TZ=Europe/Berlin try dq add t --at 2031-01-02T03:04:05.678Z
    [[ $err == 'due 2031-01-02 04:04:05.678 +01:00 = 2031-01-02T03:04:05.678Z, in '* ]]
    TZ=Europe/Berlin dq -q add t --at '2031-07-01 12:00'
    dq -q add t --at @1900000000.5
    [ "$(sql 'SELECT expected_time FROM dq_task ORDER BY id' | tr '\n' ,)" = \
        '2031-01-02 03:04:05.678,2031-07-01 10:00:00.000,2030-03-17 17:46:40.500,' ]
    dq -q add t --at +2h
    [ "$(sql 'SELECT TIMESTAMPDIFF(MINUTE, create_time, expected_time) BETWEEN 119 AND 120
              FROM dq_task ORDER BY id DESC LIMIT 1')" -eq 1 ]
    try dq add t --at 2001-01-01T00:00:00Z
    [ "$rc" -eq 0 ]
    [[ $err == *'in the past, so due at once' ]]
    TZ=Pacific/Auckland dq -q add t --at tomorrow
    [ "$(sql 'SELECT expected_time > UTC_TIMESTAMP(3) FROM dq_task ORDER BY id DESC LIMIT 1')" -eq 1 ]
}

@test '--key-conflict keeps the old task by default, fails, or replaces it' {
    id=$(dq -q add t first --key k --in 1h)
    try dq add t second --key k
    [ "$rc" -eq 0 ]
    [ "$out" = "$id" ]
    [[ $err == *"task $id has this key and is pending; it is kept unchanged" ]]
    try dq add t second --key k --key-conflict error
    [ "$rc" -eq 65 ]
    [ -z "$out" ]
    [[ $err == "dq: add: "*"task $id has that key"* ]]
    try dq add t third --key k --key-conflict replace --in 2h -o json
    [[ $out == "{\"id\":$id,"*'"result":"replaced"}' ]]
    [ "$(sql 'SELECT COUNT(*), MAX(message_body) FROM dq_task')" = $'1\tthird' ]
    [ "$(dq -q add other x --key k)" != "$id" ]
    sql "UPDATE dq_task SET status = 3 WHERE id = $id"
    try dq add t fourth --key k --key-conflict replace
    [ "$rc" -eq 65 ]
    [[ $err == *"task $id has that key and is running; see --key-conflict again" ]]
    try dq add t fourth --key k
    [ "$rc" -eq 0 ]
    [[ $err == *"task $id has this key and is running; it is kept unchanged, and does not see what you add: "* ]]
    dq -q cancel "$id"
    [ "$(dq -q add t fifth --key k)" != "$id" ]
}

@test "--max-attempts is stored; without it the handler's retry list applies" {
    dq -q add t --max-attempts 3
    dq -q add t
    [ "$(sql 'SELECT max_attempts FROM dq_task ORDER BY id' | tr '\n' ,)" = 3,NULL, ]
}

@test "--attempted goes on with the handler's retry list, as live dqds have it, or with the default one" {
    first() { sql "SELECT attempt, delay_time, TIMESTAMPDIFF(MICROSECOND, create_time, expected_time) FROM dq_task"; }
    dq add t --attempted 1
    [ "$(first)" = $'1\t5000\t5000000' ]
    sandbox_clear
    fake_dqd 't*' u
    sql "UPDATE dq_handler SET retry = '7000,8000' WHERE pattern = 't*'"
    [[ $(dq add t --attempted 2 2>&1 >id) == *', in 8s'* ]]
    [ "$(first)" = $'2\t8000\t8000000' ]
    try dq add t --attempted 3
    [ "$rc" -eq 65 ]
    [ "$err" = 'dq: add: attempted 3 times of 3: no attempt is left' ]
    try dq add t --attempted 2 --max-attempts 2
    [ "$rc" -eq 65 ]
    try dq add u --attempted 10
    [ "$rc" -eq 65 ]
    is 1 1
    sql 'DELETE FROM dq_task'
    dq -q add t --attempted 1 --max-attempts 9 --in 2s
    [ "$(first)" = $'1\t2000\t2000000' ]
    sql 'UPDATE dq_task SET attempt = 4'
    dq -q add t --key k --in 1h
    dq -q add t --key k --key-conflict replace --attempted 1
    [ "$(sql 'SELECT attempt, TIMESTAMPDIFF(MICROSECOND, update_time, expected_time) FROM dq_task
              WHERE task_key IS NOT NULL')" = $'1\t7000000' ]
    [[ $(dq add t --attempted 3 --dry-run 2>&1) == *', in 1m' ]]
}

@test 'a body larger than the server accepts is refused before it is sent' {
    limit=$(sql 'SELECT @@max_allowed_packet')
    head -c "$limit" /dev/zero >"$BATS_TEST_TMPDIR/big"
    try dq add t "@$BATS_TEST_TMPDIR/big"
    [ "$rc" -eq 65 ]
    [[ $err == *max_allowed_packet* ]]
    [ "$(count)" -eq 0 ]
    sql 'SELECT 1' >/dev/null
}

@test 'add, cancel and wait try again for --retry-for while the server is away, and store once' {
    id=$(dq -q add t)
    "$DQ_TOP/bin/dq-sandbox" stop
    cd "$BATS_TEST_TMPDIR"
    printf '{"tag":"t","body":"lines"}\n' >lines.ndjson
    dq -v add t one --retry-for 5m 2>one.err 3>&- & pids=$!
    dq -v add --from lines.ndjson --retry-for 5m >many 2>many.err 3>&- & pids+=" $!"
    dq -v cancel "$id" --retry-for 5m >cancel 2>cancel.err 3>&- & pids+=" $!"
    dq -v wait "$id" --retry-for 5m -o tsv >wait 2>wait.err 3>&- & pids+=" $!"
    for err in one many cancel wait; do wait_until grep -q '; trying again$' $err.err; done
    "$DQ_TOP/bin/dq-sandbox" start --no-schema 3>&-
    rc=0
    for pid in $pids; do wait "$pid" || rc+=,$?; done
    [ "$rc" = 0,1 ] # a cancelled task
    is "message_body IN ('one', 'lines')" 2
    is "id = $id AND status = 4 AND version = 1" 1
    grep -c 'trying again' one.err many.err cancel.err wait.err | refute grep -v ':1$'
}

@test 'without a terminal, retry_for counts; on one, only --retry-for does' {
    ini=$BATS_TEST_TMPDIR/dq.ini
    printf '[mysql]\nsocket = /nonexistent/socket\n[dq]\nretry_for = 200ms\n' >"$ini"
    chmod 600 "$ini"
    try dq --config "$ini" add t; [ "$rc" -eq 69 ]
    [[ $err == *'check host, port and socket in [mysql]; tried for 200ms' ]]
    for verb in 'add t --retry-for 0s' 'list' 'check'; do
        try dq --config "$ini" $verb; [ "$rc" -eq 69 ] || [ "$verb" = check ]
        [[ $err != *'tried for'* ]]
    done
    rc=0
    "$DQ_TOP/test/lib/terminal" 200 "$DQ_BIN/dq" --config "$ini" add t </dev/null >shown || rc=$?
    [ "$rc" -eq 69 ]
    refute grep 'tried for' shown
    "$DQ_TOP/test/lib/terminal" 200 "$DQ_BIN/dq" --config "$ini" add t --retry-for 30ms </dev/null >shown || rc=$?
    grep 'socket.*; trying again' shown
    grep 'tried for 30ms' shown
}

@test 'a missing server, account, database or schema, an older or a newer schema: each has its message and status' {
    export DQ_DQ_RETRY_FOR=0s
    ini=$BATS_TEST_TMPDIR/dq.ini
    socket=$(sed -n 's/^socket = //p' "$DQ_CONFIG")
    printf '[mysql]\nsocket = %s\nuser = dq\ndatabase = dq\n' /nonexistent/socket >"$ini"
    try dq --config "$ini" add t; [ "$rc" -eq 69 ]
    [[ $err == *'check host, port and socket in [mysql]' ]]
    try dq --config "$ini" list; [ "$rc" -eq 69 ]
    printf '[mysql]\nsocket = %s\nuser = nobody-here\ndatabase = dq\n' "$socket" >"$ini"
    try dq --config "$ini" add t; [ "$rc" -eq 77 ]
    printf '[mysql]\nsocket = %s\nuser = root\ndatabase = no_such_db\n' "$socket" >"$ini"
    try dq --config "$ini" add t; [ "$rc" -eq 78 ]
    sql 'CREATE DATABASE IF NOT EXISTS bare'
    printf '[mysql]\nsocket = %s\nuser = root\ndatabase = bare\n' "$socket" >"$ini"
    for verb in 'add t' list 'show 1' 'cancel 1' tags stats pollers purge; do
        try dq --config "$ini" $verb
        [ "$rc" -eq 78 ]
        [[ $err == *'run dq init'* ]]
    done
    dq --config "$ini" init
    dq --config "$ini" -q add t
    sql "UPDATE bare.dq_meta SET value = '99' WHERE name = 'schema_version'"
    dq --config "$ini" -q add t
    [[ $(dq --config "$ini" init) == *'schema version 99 of a newer dq, which works with this one, nothing to do' ]]
    sql "UPDATE bare.dq_meta SET value = '98' WHERE name = 'schema_compat'"
    for verb in 'add t' list tags init; do
        try dq --config "$ini" $verb
        [ "$rc" -eq 78 ]
        [[ $err == *'version 99, made by a newer dq and compatible back to 98, this dq is made for '*': upgrade dq' ]]
    done
    sql "UPDATE bare.dq_meta SET value = 1"
    for verb in 'add t' list tags; do
        try "$DQ_NEXT/dq" --config "$ini" $verb
        [ "$rc" -eq 78 ]
        [[ $err == *'version 1, compatible back to 1, this dq is made for 3: run dq init' ]]
    done
    [ "$(sql 'SELECT COUNT(*) FROM bare.dq_task')" -eq 2 ]
    sql 'DROP DATABASE bare'
}

@test 'a server that accepts connections but is silent or hangs up is reported with a hint' {
    python3 - "$BATS_TEST_TMPDIR" 3>&- <<'END' &
import os, socket, sys
silent, rude = (socket.socket(socket.AF_UNIX) for _ in range(2))
silent.bind(sys.argv[1] + '/silent')
silent.listen()
rude.bind(sys.argv[1] + '/rude')
rude.listen()
while True:
    rude.accept()[0].close()
END
    server=$!
    wait_until test -S "$BATS_TEST_TMPDIR/rude"
    own_ini "s|^socket *=.*|socket = $BATS_TEST_TMPDIR/silent\nconnect_timeout = 1s|"
    run "$DQ_BIN/dq" --config "$BATS_TEST_TMPDIR/own.ini" add t
    echo "$output"
    [ "$status" = 69 ]
    [[ $output == *'/silent: no answer within '[1-9]*' s; is the server running?'* ]]
    own_ini "s|^socket *=.*|socket = $BATS_TEST_TMPDIR/rude\nconnect_timeout = 1s|"
    run "$DQ_BIN/dq" --config "$BATS_TEST_TMPDIR/own.ini" add t
    kill "$server"
    echo "$output"
    [ "$status" = 69 ]
    [[ $output == *'/rude: the connection broke while it was being established; is the server running?'* ]]
}

@test 'an account with only the INSERT privilege can add tasks and gets their ids' {
    new_account inserter
    sql 'GRANT INSERT ON dq.dq_task TO inserter@localhost'
    try as inserter dq add t body --in 10m
    [ "$rc" -eq 0 ]
    [ "$out" = "$(sql 'SELECT id FROM dq_task')" ]
    [[ $err == 'due '*'in 10m' ]] # MariaDB 10.5 returns the time, too
    try as inserter dq add t --at 2031-01-02T03:04:05Z -o json
    [[ $out == *'"expected":"2031-01-02T03:04:05.000Z"'* ]]
    [[ $err == 'due '*'2031-01-02T03:04:05.000Z'* ]]
    dq -q add t --key k
    try as inserter dq add t --key k
    [ "$rc" -eq 77 ]
    [[ $err == *'a live task has that key'* ]]
    [ "$(count)" -eq 3 ]
    sql 'DROP USER inserter@localhost'
}

# break_adds: ends the connections that wait for a lock on dq_task, then the lock.
break_adds()
{
    wait_until waiting
    for id in $(sql "SELECT id FROM information_schema.processlist WHERE user = 'inserter'"); do sql "KILL $id"; done
    sql "KILL $(sql "SELECT id FROM information_schema.processlist WHERE info LIKE '%SLEEP(1000)'")"
}
waiting()
{
    [ -n "$(sql "SELECT 1 FROM information_schema.processlist
                 WHERE user = 'inserter' AND info LIKE 'INSERT INTO dq_task%'")" ]
}
locked() { [ -n "$(sql "SELECT 1 FROM information_schema.processlist WHERE info LIKE '%SLEEP(1000)'")" ]; }
lock() { sql 'LOCK TABLES dq_task WRITE; SELECT SLEEP(1000)' >"$BATS_TEST_TMPDIR/lock" 2>&1 3>&- & wait_until locked; }

@test 'an add with an unknown outcome exits with 69 and says how to find out' {
    new_account inserter
    sql 'GRANT INSERT ON dq.dq_task TO inserter@localhost;
         GRANT SELECT ON dq.dq_meta TO inserter@localhost'
    lock
    break_adds 3>&- &
    try as inserter dq add t
    [ "$rc" -eq 69 ]
    [[ $err == *'is not known'*'dq list --since 10m shows it' ]]
    wait
    lock
    break_adds 3>&- &
    try as inserter dq add --from - --skip 1 <<<$'{"tag":"t"}
{"tag":"t"}
{"tag":"t"}'
    [ "$rc" -eq 69 ]
    [[ $err == *'lines 2 to 3: '*'is not known'*'; run: dq list -t t '*'; if it shows line 3, '* ]]
    [[ $err == *'continue with --skip 3, else with --skip 1' ]]
    dq -q add t 'an earlier one' --in 1h
    yes '{"tag":"t","body":"x","in":"1h"}' | head -n 2000 | sed '$s/x/the last/' | dq -q add --from - >/dev/null
    dq -q add other 'of somebody'
    command=$(grep -o 'dq list .*,body' <<<"$err")
    [[ $(eval "$command") == *'the last' ]]
    wait
    sql 'DROP USER inserter@localhost'
}

@test 'the producer of grants.sql.example can add one task or many, but cannot read bodies' {
    sql "$(sed "s/'%'/'localhost'/; s/ IDENTIFIED BY '[^']*'//" "$DQ_TOP/sql/grants.sql.example")"
    try as dq_producer dq add t body --key k --in 10m
    [ "$rc" -eq 0 ]
    [[ $err == 'due '*', in 10m' ]]
    id=$out
    try as dq_producer dq add t other --key k
    [ "$rc" -eq 0 ]
    [ "$out" = "$id" ]
    try as dq_producer dq add --from - <<<$'{"tag":"t","body":"1"}\n{"tag":"t","body":"2"}\n{"tag":"t","body":"3"}'
    [ "$rc" -eq 0 ]
    [[ $out == '3 added'* ]]
    try as dq_producer dq add --from - --key-conflict error <<<$'{"tag":"t","key":"a"}\n{"tag":"t","key":"b"}'
    [ "$rc" -eq 0 ]
    [ "$(count)" -eq 6 ]
    for verb in "show $id" "cancel $id" "delete $id"; do
        try as dq_producer dq $verb
        [ "$rc" -eq 77 ]
    done
    [ "$(sql "SELECT status FROM dq_task WHERE id = $id")" -eq 0 ]
}

@test 'a configuration that is missing, writable by others, or invalid is reported with file and line' {
    ini=$BATS_TEST_TMPDIR/dq.ini
    try dq --config "$BATS_TEST_TMPDIR/absent.ini" list; [ "$rc" -eq 78 ]
    cp "$DQ_CONFIG" "$ini"
    chmod 0666 "$ini"
    try dq --config "$ini" list; [ "$rc" -eq 78 ]
    chmod 0600 "$ini"
    printf '[mysql]\nsokket = x\n' >"$ini"
    try dq --config "$ini" list; [ "$rc" -eq 78 ]
    [[ $err == "dq: list: $ini:2:"*socket* ]]
    printf '[mysql]\nport = 99999\n' >"$ini"
    try dq --config "$ini" list; [ "$rc" -eq 78 ]
    [[ $err == "dq: list: $ini:2:"* ]]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/err")" -eq 1 ]
}

@test 'add makes one connection and one writing statement' {
    sql "SET GLOBAL log_output = 'TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log = 1"
    dq -q add t x --in 10m
    sql 'SET GLOBAL general_log = 0'
    logged() { sql "SELECT COUNT(*) FROM mysql.general_log WHERE user_host NOT LIKE '%root%' AND command_type = $1"; }
    [ "$(logged "'Connect' AND user_host LIKE '%dq%'")" -eq 1 ]
    [ "$(logged "'Query' AND argument LIKE 'INSERT INTO dq_task%'")" -eq 1 ]
    # the settings, the highest id, the INSERT, and what it stored: MySQL has no RETURNING
    [ "$(logged "'Query'")" -le "$([[ $(sql 'SELECT VERSION()') == *MariaDB* ]] && echo 3 || echo 4)" ]
}

# bats test_tags=bare
@test 'an id that cannot be printed on stdout is reported on stderr, also if stdout is closed' {
    rc=0
    dq add t >/dev/full 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    [ "$rc" -eq 71 ]
    [ "$(cat "$BATS_TEST_TMPDIR/err")" = "dq: add: task $(sql 'SELECT MAX(id) FROM dq_task') was added, but:\
 cannot write to standard output: No space left on device" ]
    rc=0
    dq list 2>"$BATS_TEST_TMPDIR/err" >&- || rc=$?
    [ "$rc" -eq 71 ]
    [ "$(cat "$BATS_TEST_TMPDIR/err")" = 'dq: list: cannot write to standard output: Bad file descriptor' ]
}

@test 'a row that a unique index of somebody else refuses is an error, never taken for a task with its key' {
    local options
    sql 'ALTER TABLE dq_task ADD UNIQUE KEY theirs (tag, delay_time, message_body(10))'
    id=$(dq -q add t body --key one)
    for options in '' '--key two' '--key two --key-conflict again'; do
        try dq add t body $options
        [ "$rc" -eq 65 ]
        [[ $err == *"for key '"*"theirs'"* ]]
    done
    try dq add t body --key one
    [ "$rc" -eq 0 ] && [ "$out" = "$id" ]
    for line in '{"tag": "t", "body": "body"}' '{"tag": "t", "body": "body", "key": "two"}'; do
        try dq add --from - <<<"$line"
        [ "$rc" -eq 65 ]
        printf '%s\n%s\n' "$line" '{"tag": "t", "body": "other", "key": "other"}' | try dq add --from -
        [ "$rc" -eq 65 ]
    done
    for key in NULL "'two'"; do
        run sql "CALL dq_add_options('t', $key, 'body',
                                     '{\"key_conflict\": \"replace\", \"max_attempts\": 7}', @id)"
        [ "$status" -ne 0 ]
        [[ $output == *"Out of range value for column 'live'"* ]]
    done
    [ "$(sql 'SELECT id, task_key, version, max_attempts FROM dq_task')" = "$id"$'\tone\t0\tNULL' ]
    sql 'ALTER TABLE dq_task DROP KEY theirs'
}
