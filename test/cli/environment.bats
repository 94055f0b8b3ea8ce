# Settings in the environment, DQ_SECTION_KEY: through dq, dqd, their handlers, dq bench and dq-sandbox. The values and
# the messages of all keys are in test/unit/conf_env.c.

load ../lib/sandbox

setup() { sandbox_clear; }

@test 'a variable overrides the file, in dq and in dqd' {
    write_handlers <<'YAML'
handlers:
  t: {run: 'true'}
YAML
    dq add t >"$BATS_TEST_TMPDIR/id"
    [ "$(DQ_DQ_OUTPUT=id dq list)" = "$(cat "$BATS_TEST_TMPDIR/id")" ]
    DQ_MYSQL_DATABASE=nowhere run dq list
    [ "$status" = 77 ]
    [[ $output == *"to database 'nowhere'"* ]]
    DQ_DQD_HANDLERS=/dev/null/none.yaml run dqd --once
    [ "$status" = 78 ]
    [[ $output == 'dqd: /dev/null/none.yaml: '* ]]
    DQ_DQD_LOG_LEVEL=error run dqd --once
    [ "$status" = 0 ]
    [ -z "$output" ]
    [ "$(sql 'SELECT status FROM dq_task')" = 1 ]
}

@test 'a wrong variable is one line with its name, and a password is not shown' {
    DQ_DQD_SLOTS=many run dqd --check-config
    [ "$status" = 78 ]
    [ "$output" = 'dqd: DQ_DQD_SLOTS: slots = many is not a whole number; give 1 to 4096' ]
    DQ_MYSQL_HOTS=db1 run dq list
    [ "$status" = 78 ]
    [ "$output" = 'dq: list: DQ_MYSQL_HOTS: [mysql] has no key "hots"; did you mean DQ_MYSQL_HOST?' ]
    DQ_MYSQL_PASSWORD=S3cret run dq list
    [ "$status" = 78 ]
    [ "$output" = "dq: list: DQ_MYSQL_PASSWORD: a password is not taken from the environment; write it to a file, \
chmod 600 that, and name it: DQ_MYSQL_PASSWORD_FILE=PATH" ]
}

@test 'dqd --check-config and dq doctor list the variables that are in effect' {
    export DQ_DQD_SLOTS=3 DQ_MYSQL_CONNECT_TIMEOUT=3s
    run dqd --check-config
    [ "$status" = 0 ]
    [[ $output == *'; overridden by the environment: DQ_MYSQL_CONNECT_TIMEOUT DQ_DQD_SLOTS' ]]
    run dq doctor
    [[ $output == *'overridden by the environment: DQ_MYSQL_CONNECT_TIMEOUT DQ_DQD_SLOTS'* ]]
}

@test 'handlers do not inherit them, in dqd and in dq rehearse' {
    write_handlers <<YAML
handlers:
  t:
    run: env | grep -c '^DQ_\(DQD\|MYSQL\|DQ\|RETENTION\)_' || true
YAML
    dq add t
    export DQ_DQD_SLOTS=3 DQ_MYSQL_CONNECT_TIMEOUT=3s DQ_DQ_NAME=here
    dqd --once
    [ "$(sql 'SELECT output FROM dq_task')" = '0\n' ]
    [ "$(dq rehearse --tag t '' 2>/dev/null)" = 0 ]
}

@test 'a reload reads them again, and a changed file does not win' {
    write_handlers <<'YAML'
handlers:
  t: {run: 'true'}
YAML
    own_ini 's/^\[dqd\]/&\nlog_level = info\nslots = 4/'
    DQ_DQD_LOG_LEVEL=notice dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"
    wait_until eval '[ "$(sql "SELECT COUNT(*) FROM dq_poller")" = 1 ]'
    sed -i 's/^log_level = .*/log_level = debug/; s/^slots = .*/slots = 5/' "$BATS_TEST_TMPDIR/own.ini"
    kill -HUP "$DQD_PID"
    wait_until grep -q 'section=dqd key=slots' "$DQD_LOG"
    dq add t
    wait_until eval '[ "$(sql "SELECT status FROM dq_task")" = 1 ]'
    dqd_stop
    refute grep -qE ' (info|debug) ' "$DQD_LOG"
}

@test 'dq bench and dq-sandbox are not led to another database by them' {
    dq add precious 'of somebody' --in 1d
    rows=$(sql 'CHECKSUM TABLE dq_task, dq_poller')
    DQ_MYSQL_DATABASE=dq DQ_DQD_SLOTS=2 dq bench --for 2s >/dev/null
    [ "$(sql 'CHECKSUM TABLE dq_task, dq_poller')" = "$rows" ]
    export DQ_MYSQL_HOST=db.invalid DQ_DQ_NAME=elsewhere
    "$DQ_TOP/bin/dq-sandbox" start 3>&-
    eval "$("$DQ_TOP/bin/dq-sandbox" env)"
    [ -z "${DQ_MYSQL_HOST+set}${DQ_DQ_NAME+set}" ]
    "$DQ_BIN/dq" list >/dev/null
}

@test 'localhost is the local socket, and with a port it is reached over TCP' {
    export DQ_MYSQL_HOST=localhost DQ_MYSQL_PORT=1
    dq doctor | grep -F " at $DQ_SANDBOX/server/mysql.sock"
    for tls in preferred required; do
        export DQ_MYSQL_TLS=$tls
        DQ_MYSQL_HOST=localhost:1
        try dq list
        [ "$rc" = 69 ]
        [[ $err == 'dq: list: localhost:1: '* ]]
        DQ_MYSQL_HOST=localhost:1,localhost
        dq list
    done
}
