# dq-sandbox: what it starts, what it refuses, what it leaves. No schema: dq itself is not needed here.
load ../lib/sandbox

# The first start installs a server, and leaves its data for the others.
setup_file() { export DQ_SANDBOX_TEMPLATE=$BATS_FILE_TMPDIR/template; }
teardown_file() { :; }

setup()
{
    cd "$BATS_TEST_TMPDIR"
    unset DQ_SANDBOX
    sandbox=$DQ_TOP/bin/dq-sandbox
}

teardown()
{
    local dir
    for dir in "$BATS_TEST_TMPDIR"/*/.dq-sandbox; do
        [ ! -e "$dir" ] || "$sandbox" destroy --force "${dir%/*}"
    done
}

start() { "$sandbox" start --no-schema "$@" 3>&-; }

@test 'the data of a template are those of a new server, and belong to the sandbox' {
    for box in one two; do
        start $box
        "$sandbox" sql $box -- -e 'SHOW TABLES FROM mysql; SHOW DATABASES; SELECT user, host FROM mysql.user' >$box.has
        "$sandbox" sql $box -- -e 'CREATE TABLE own (a int)'
        [ "$(stat -c %u:%g $box/server/data/ibdata1)" = "$(stat -L -c %u:%g $box/server)" ]
    done
    diff one.has two.has
    [ -e one/install.log ]
    [ ! -e two/install.log ]
    [ "$(ls "$DQ_SANDBOX_TEMPLATE" | wc -l)" -eq 1 ]
    [ "$(stat -c %a "$DQ_SANDBOX_TEMPLATE")" = 700 ]
}

@test 'start creates a server that listens on a socket only; a second start does nothing' {
    start box
    run "$sandbox" sql box -- -N -B -e 'SELECT @@skip_networking, @@innodb_flush_log_at_trx_commit, DATABASE()'
    [ "$output" = $'1\t1\tdq' ]
    run start box
    [ "$status" -eq 0 ]
    [[ $output == *'already running'* ]]
}

@test 'the default directory is ./sandbox, and DQ_SANDBOX names another' {
    start
    [ -s sandbox/dq.ini ]
    DQ_SANDBOX=other start
    [ -s other/dq.ini ]
}

@test 'only its owner can read dq.ini; the account in it has no privileges outside its databases' {
    start box
    [ "$(stat -c %a box/dq.ini)" = 600 ]
    grep -qx 'user = dq' box/dq.ini
    socket=$(sed -n 's/^socket = //p' box/dq.ini)
    run mariadb --no-defaults -S "$socket" -u dq -e 'SELECT user FROM mysql.user'
    [ "$status" -ne 0 ]
    mariadb --no-defaults -S "$socket" -u dq dq -e 'CREATE TABLE t (a int); CREATE DATABASE dq_other'
}

@test 'the server does not run as root, and only its account can enter its directory' {
    start box
    [ "$(stat -L -c %a box/server)" = 700 ]
    pid=$(cat box/server/pid)
    [ "$(stat -c %u "/proc/$pid")" -ne 0 ]
}

@test 'a sandbox works in a directory whose path is too long for a socket' {
    long=$(printf 'x%.0s' {1..120})
    start "$long"
    "$sandbox" status "$long"
    real=$(readlink -f "$long/server")
    "$sandbox" destroy "$long"
    [ ! -e "$real" ]
}

@test 'stop waits for the server to exit and keeps its data; a second stop succeeds' {
    start box
    "$sandbox" sql box -- -e 'CREATE TABLE kept (a int)'
    pid=$(cat box/server/pid)
    "$sandbox" stop box
    [ ! -e "/proc/$pid" ]
    "$sandbox" stop box
    run "$sandbox" status box
    [ "$status" -eq 3 ]
    start box
    run "$sandbox" sql box -- -N -B -e 'SHOW TABLES'
    [ "$output" = kept ]
}

@test 'a killed server is noticed and started again' {
    start box
    kill -KILL "$(cat box/server/pid)"
    wait_until not_running box
    start box
    "$sandbox" status box
}
not_running() { ! "$sandbox" status "$1" >/dev/null; }

@test 'two concurrent starts create one server' {
    start box &
    start box
    wait "$!"
    "$sandbox" status box
}

@test 'a start while another one makes its first files waits for that one' {
    mkdir box path
    cat >path/find <<END
#!/bin/sh
PATH=$PATH
"$sandbox" start --no-schema box >&2
exec find "\$@"
END
    chmod +x path/find
    PATH=$PWD/path:$PATH start box
    "$sandbox" status box
}

@test 'a moved sandbox works in its new place' {
    start box
    "$sandbox" stop box
    mv box 'new box'
    start 'new box'
    grep -qxF "lock_file = $PWD/new box/dqd.lock" 'new box/dq.ini'
    grep -qxF "wake_dir = $PWD/new box/wake" 'new box/dq.ini'
    grep -qxF "socket = $(readlink -f 'new box/server')/mysql.sock" 'new box/dq.ini'
}

@test 'a shell can evaluate the output of env, also with spaces in paths' {
    start 'a box'
    eval "$("$sandbox" env 'a box')"
    [ "$DQ_CONFIG" = "$PWD/a box/dq.ini" ]
    [ "$DQ_SANDBOX" = "$PWD/a box" ]
}

@test 'env puts dq, dqd and dq-sandbox into PATH, and nothing else' {
    start box
    path=$PATH
    eval "$("$sandbox" env box)"
    first=${PATH%%:*}
    [ "$PATH" = "$first:$path" ]
    [ "$(LC_ALL=C ls -A "$first")" = $'dq\ndq-sandbox\ndqd' ]
    [ "$first/dq" -ef "$DQ_BIN/dq" ]
    [ "$first/dqd" -ef "$DQ_BIN/dqd" ]
    dq-sandbox status
    dq-sandbox destroy
    start box
    dq-sandbox status
}

@test 'if the server cannot start, the reason is printed' {
    run start --options --no-such-option box
    [ "$status" -eq 69 ]
    [[ $output == *"unknown option '--no-such-option'"* ]]
    run "$DQ_TOP/bin/dq-sandbox" start --options
    [ "$status" -eq 64 ]
    [ "$output" = 'dq-sandbox: --options needs a value' ]
}

@test 'destroy deletes the files that start created and keeps others' {
    start box
    echo mine >box/notes
    "$sandbox" destroy box
    [ "$(cat box/notes)" = mine ]
    [ ! -e box/server ]
    "$sandbox" destroy --force box
    [ ! -e box ]
}

@test 'a directory that dq-sandbox did not create is neither used nor destroyed' {
    mkdir other
    echo mine >other/file
    for verb in start stop status env sql destroy; do
        run "$sandbox" "$verb" other
        [ "$status" -eq 78 ]
    done
    [ "$(cat other/file)" = mine ]
}

@test 'bad command lines are usage errors' {
    for line in '' frobnicate 'start --frob' 'stop --force' 'start a b'; do
        run "$sandbox" $line
        [ "$status" -eq 64 ]
    done
    [ -z "$(ls)" ]
}
