#!/usr/bin/env bats
# What dqd says to a wrong command line, wrong files and a missing database: one line, the documented exit status.

load ../lib/sandbox

refused() { # refused STATUS TEXT ARG...
    local want=$1 text=$2
    shift 2
    run "$DQ_BIN/dqd" "$@"
    [ "$status" = "$want" ]
    [[ $output == *"$text"* ]]
    [ "${#lines[@]}" = 1 ]
}

@test "invalid command lines are usage errors" {
    refused 64 'did you mean --resident?' --residen1
    refused 64 'unexpected argument "now"' now
    refused 64 'cannot be combined' --once --resident
    refused 64 '--check-config and --list-handlers cannot be combined' --check-config --list-handlers
    refused 64 'cannot be combined' --check-config --once
    refused 64 'cannot be combined' --for 5s --list-handlers
    refused 64 'needs a value' --for
    refused 64 '--tag is empty' --tag ''
    refused 64 '--tag: a comma does not separate tags; write --tag a --tag b, or ?' --tag a,b
    refused 64 '--tag: "a " ends with a blank' --tag 'a '
    refused 64 'unknown unit' --for 5x
    refused 64 '--slots: 0 is out of range: 1 to 4096' --slots 0
    refused 64 '--slots: 4097 is out of range: 1 to 4096' --slots 4097
    refused 64 '--log-level: "loud" is not one of error, warn, notice, info, debug' --log-level loud
}

@test "help and version need no configuration" {
    run env -u DQ_CONFIG "$DQ_BIN/dqd" --help
    [ "$status" = 0 ]
    [[ $output == usage:* ]]
    run env -u DQ_CONFIG "$DQ_BIN/dqd" --version
    [ "$status" = 0 ]
    [[ $output == 'dqd '[0-9]* ]]
}

# limited OPTION LIMIT COMMAND...: what it prints goes to no file, which might have no room either
limited() { run bash -c 'ulimit "$1" "$2" && exec "${@:3}"' - "$@"; echo "$output"; }

# bats test_tags=bare
@test 'a limit of the system that is too low is named, and nothing is begun' {
    write_handlers <<<'handlers: {t: {run: "cat"}}'
    id=$(dq -q add t body)
    while read -r option limit text; do
        limited "$option" "$limit" "$DQ_BIN/dqd"
        [ "$status" = 71 ]
        [ "$output" = "dqd: $text" ]
    done <<'END'
-s 128 the stack is limited to 128 KiB; 256 are needed (ulimit -s, LimitSTACK= of systemd)
-n 40 open files are limited to 40; 64 are needed (ulimit -n, LimitNOFILE= of systemd)
-f 0 the size of files is limited to 0 KiB; 64 are needed (ulimit -f, LimitFSIZE= of systemd)
END
    limited -s 128 "$DQ_BIN/dq" list
    [ "$status" = 71 ]
    [ "$output" = 'dq: the stack is limited to 128 KiB; 256 are needed (ulimit -s, LimitSTACK= of systemd)' ]
    limited -f 0 "$DQ_BIN/dq" stats --html "$BATS_TEST_TMPDIR/page"
    [ "$status" = 71 ]
    [[ $output == *"dq: stats: cannot write $BATS_TEST_TMPDIR/page: File too large" ]]
    [ "$(sql "SELECT status, attempt FROM dq_task WHERE id = $id")" = $'0\t0' ]
    limited -Sf 0 "$DQ_BIN/dqd" # a limit that dqd may raise
    [ "$status" = 0 ]
    [ "$(sql "SELECT status, attempt FROM dq_task WHERE id = $id")" = $'1\t1' ]
    sql 'DELETE FROM dq_task'
}

@test 'with few open files, no more is handed over than they allow' {
    write_handlers <<<'handlers: {t: {run: "true"}}'
    for ((i = 0; i < 1000; i++)); do echo '{"tag":"t","body":"x"}'; done | dq add -q --from -
    limited -n 100 "$DQ_BIN/dqd" --once
    [ "$status" = 0 ]
    [[ $output != *'too many open files'* && $output != *'cannot be started'* ]]
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 1 AND attempt = 1')" = 1000 ]
    sql 'DELETE FROM dq_task'

    write_handlers <<<'handlers: {t: {run: "sleep 1", max_running: 100, batch: 2}}'
    for ((i = 0; i < 200; i++)); do echo '{"tag":"t","body":"x"}'; done | dq add -q --from -
    limited -n 128 "$DQ_BIN/dqd" --once --slots 100
    [ "$status" = 0 ]
    [[ $output == *'fewer handlers than slots run'*'limit=128 slots=100 at_most=32'* && $output != *'is short of'* ]]
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 1 AND attempt = 1')" = 200 ]
    sql 'DELETE FROM dq_task'
}

@test 'output that cannot be written is an error' {
    local option
    write_handlers <<<'handlers: {t: {run: "true"}}'
    for option in --help --version --list-handlers --check-config; do
        run bash -c '"$DQ_BIN/dqd" "$1" 2>&1 >/dev/full' - "$option"
        [ "$status" = 71 ]
        [ "$output" = 'dqd: cannot write to standard output: No space left on device' ]
    done
}

@test "--check-config and --list-handlers print errors and handlers" {
    write_handlers <<'END'
handlers:
  t:
    run: 'true'
    timeout: 90s
END
    run dqd --check-config
    [ "$status" = 0 ]
    [[ $output == *'1 handlers'* || $output == *'1 handler'* ]]
    run dqd --list-handlers
    [[ ${lines[0]} == 'handler  line   timeout  attempts  max_running  batch  user      run' ]]
    [[ ${lines[1]} =~ ^t\ +[0-9]+\ +1m30s\ +10\ +[0-9]+\ +1\ +-\ +true$ ]]
    write_handlers <<'END'
handlers:
  several.lines: {run: "one\ntwo"}
  words: {run: [prog, "a b", c]}
  shell: {run: 'printf "\033\\n"'}
END
    run dqd --list-handlers
    [ "${#lines[@]}" = 4 ]
    [[ ${lines[3]} == *' printf "\033\\n"' ]]
    [[ ${lines[1]} == *' one\ntwo' ]]
    [[ ${lines[2]} == *' ["prog","a b","c"]' ]]
    own_ini 's|^\[mysql\]|&\npassword_file = /nonexistent/password|'
    refused 78 'there is no such password file' --check-config --config "$BATS_TEST_TMPDIR/own.ini"
    install -m 666 /dev/null "$BATS_TEST_TMPDIR/options"
    own_ini "s|^\[mysql\]|&\ndefaults_file = $BATS_TEST_TMPDIR/options|"
    refused 78 'others can write to the MySQL option file' --check-config --config "$BATS_TEST_TMPDIR/own.ini"
    write_handlers <<'END'
handlers:
  t:
    run: 'true'
    timeout: 90x
END
    refused 78 'handlers.yaml:4:14:' --check-config
    write_handlers <<<'handlers: {}'
    own_ini 's/^\[dqd\]/&\nuser = nobody-of-that-name/'
    refused 78 'no such account' --check-config --config "$BATS_TEST_TMPDIR/own.ini"
}

@test "--check-config warns about handlers that cannot start" {
    mkdir "$BATS_TEST_TMPDIR/h"
    echo 'no program' >"$BATS_TEST_TMPDIR/h/text"
    write_handlers <<END
handlers:
  fine: {run: [sh, -c, 'true']}
  shell.line: {run: '/nonexistent/in-a-line && true'}
  line: {run: /nonexistent/handler --fast}
  gone: {run: [/nonexistent/handler]}
  gone.cwd: {run: 'true', cwd: /nonexistent/dir}
  no.dir: {run: 'true', cwd: $BATS_TEST_TMPDIR/h/text}
  text: {run: [$BATS_TEST_TMPDIR/h/text]}
  name: {run: [no-program-of-that-name]}
END
    run dqd --check-config
    [ "$status" = 0 ]
    [ "${#lines[@]}" = 7 ]
    [[ ${lines[0]} == *'/handlers.yaml:4: warning: line '*'/nonexistent/handler: No such file'* ]]
    [[ ${lines[1]} == *':5: warning: gone '*'/nonexistent/handler: No such file'* ]]
    [[ ${lines[2]} == *':6: warning: gone.cwd '*'cwd /nonexistent/dir: No such file'* ]]
    [[ ${lines[3]} == *':7: warning: no.dir '*'Not a directory' ]]
    [[ ${lines[4]} == *':8: warning: text '*'is not an executable file' ]]
    [[ ${lines[5]} == *':9: warning: name '*'no such program'* ]]
    [[ ${lines[6]} == *'8 handlers, 6 warnings' ]]
}

@test '--check-config prints nothing on which a terminal would act' {
    local dir=$BATS_TEST_TMPDIR/$'a\033[31m\302\233\342\200\256\377'
    mkdir "$dir"
    printf 'handlers: {t: {run: [/nonexistent], cwd: "/\\e[31m\\N"}}\n' >"$dir/handlers.yaml"
    own_ini 's|^handlers *=.*|handlers = handlers.yaml|'
    mv "$BATS_TEST_TMPDIR/own.ini" "$dir/"
    run "$DQ_BIN/dqd" --check-config --config "$dir/own.ini"
    [ "$status" = 0 ]
    local shown='/a\x1B[31m\u{009B}\u{202E}\xFF/'
    [[ ${lines[0]} == *"${shown}handlers.yaml:1: warning: t cannot be started at present: cwd /"* ]]
    [[ ${lines[1]} == *"${shown}own.ini and "*'/handlers.yaml are fine: 1 handler, 1 warning' ]]
    run "$DQ_BIN/dqd" --check-config --config "$dir/none.ini"
    [ "$status" = 78 ]
    [[ $output == *'/a?[31m??????/none.ini: there is no such configuration file' ]]
}

@test "--check-config rejects a lock file that cannot be used" {
    write_handlers <<<'handlers: {t: {run: "true"}}'
    locked_by() { own_ini "s|^lock_file *=.*|lock_file = $1|"; }
    locked_by /nonexistent/dqd.lock
    refused 78 'own.ini: [dqd] lock_file: cannot create a lock file in /nonexistent: No such file' \
        --check-config --config "$BATS_TEST_TMPDIR/own.ini"
    mkdir "$BATS_TEST_TMPDIR/dir"
    locked_by "$BATS_TEST_TMPDIR/dir"
    refused 78 'is not a regular file' --check-config --config "$BATS_TEST_TMPDIR/own.ini"
    locked_by "$BATS_TEST_TMPDIR/dir/new.lock"
    "$DQ_BIN/dqd" --check-config --config "$BATS_TEST_TMPDIR/own.ini"
    [ ! -e "$BATS_TEST_TMPDIR/dir/new.lock" ]
    locked_by /proc/version # belongs to root, as this run may: then to uid 65534
    if [ "$(id -u)" = 0 ]; then
        : >"$BATS_TEST_TMPDIR/dir/other.lock"
        chown 65534 "$BATS_TEST_TMPDIR/dir/other.lock"
        locked_by "$BATS_TEST_TMPDIR/dir/other.lock"
    fi
    run "$DQ_BIN/dqd" --check-config --config "$BATS_TEST_TMPDIR/own.ini"
    [ "$status" = 0 ]
    [[ ${lines[0]} == *'warning: the lock file '*' belongs to user id '* ]]
    [[ $output == *'1 handler, 1 warning' ]]
}

# As an account that nobody else has, with these variables only, and with $run as /run.
as_account() # as_account VARIABLE=VALUE... ./dqd ARG...
{
    try unshare --mount --propagation private sh -c 'mount --bind "$0" /run && exec "$@"' "$run" \
        setpriv --reuid="$account" --regid="$account" --clear-groups env -i PATH="$PATH" "$@"
}

# bats test_tags=bare
@test 'the lock file is where no other account can be first' {
    local account=$((2000000000 + $$)) session
    local home=$BATS_TEST_TMPDIR/home run=$BATS_TEST_TMPDIR/run tmp=/tmp/dqd-$account
    [ "$(id -u)" = 0 ] || skip 'needs root, to have other accounts'
    refused=$(unshare --mount true 2>&1) || skip "no namespace for mounts, as in a chroot: $refused"
    cd "$BATS_TEST_TMPDIR"
    chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" .
    echo 'handlers: {t: {run: "true"}}' >handlers.yaml
    printf '[mysql]\nsocket = /nonexistent\n[dqd]\nwake_dir =\nhandlers = handlers.yaml\n' >dq.ini
    install -m 0755 "$DQ_BIN/dqd" dqd
    mkdir "$run"
    install -d -m 700 -o "$account" "$home" session
    once() { as_account "$@" ./dqd --config dq.ini; [ "$rc" = 69 ]; } # there is no database: the lock has been taken
    locks_are_in() # locks_are_in FOLDER, the only one
    {
        local found
        found=$(find "$home" session "$run" "$tmp" -name 'dqd-*.lock' 2>/dev/null) || true
        [[ $found == "$1/dqd-$account-"????????????????.lock ]]
        [ "$(stat -c '%a %u' "$1")" = "700 $account" ]
    }
    # a session of the account sets $XDG_RUNTIME_DIR, cron does not: both lock the same file
    once HOME="$home" XDG_RUNTIME_DIR="$PWD/session"
    once HOME="$home"
    locks_are_in "$home/.local/state/dq"
    rm -r "$home/.local"
    # /run/dq, unless others can write it
    install -d -m 700 -o "$account" "$run/dq"
    once HOME="$home"
    locks_are_in "$run/dq"
    rm "$run"/dq/*
    chmod 777 "$run/dq"
    once HOME="$home"
    locks_are_in "$home/.local/state/dq"
    rm -r "$home/.local" "$run/dq"
    # no home: a directory that is verified
    once HOME=/nonexistent
    locks_are_in "$tmp"
    chown "$((account + 1))" "$tmp"
    as_account HOME=/nonexistent ./dqd --config dq.ini
    [ "$rc" = 71 ]
    [ "$err" = "dqd: no directory for the lock file: $tmp is not this account's alone; set [dqd] lock_file" ]
    as_account HOME=/nonexistent ./dqd --config dq.ini --check-config
    [ "$rc" = 0 ]
    [[ $err == *"dq.ini: warning: no directory for the lock file: $tmp is not"* ]]
    once HOME=/nonexistent DQ_DQD_LOCK_FILE="$home/lock"
    [ -f "$home/lock" ]
    rm -r "$tmp"
}

@test "--check-config rejects missing TLS files, and warns about no handlers and an unusable wake_dir" {
    write_handlers <<<'handlers:'
    own_ini 's|^\[mysql\]|&\ntls_ca = none.pem|'
    refused 78 "tls_ca $BATS_TEST_TMPDIR/none.pem: No such file" --check-config --config "$BATS_TEST_TMPDIR/own.ini"
    own_ini 's|^\[mysql\]|&\ntls_cert = own.ini\ntls_key = none.key|'
    refused 78 "tls_key $BATS_TEST_TMPDIR/none.key: No such file" --check-config --config "$BATS_TEST_TMPDIR/own.ini"
    own_ini 's|^\[mysql\]|&\ntls_cert = none.pem\ntls_key = own.ini|'
    refused 78 "tls_cert $BATS_TEST_TMPDIR/none.pem: No such file" --check-config --config "$BATS_TEST_TMPDIR/own.ini"
    own_ini "s|^\[dqd\]|&\nmetrics_file = $BATS_TEST_TMPDIR/dq.metrics|"
    run "$DQ_BIN/dqd" --check-config --config "$BATS_TEST_TMPDIR/own.ini"
    [[ ${lines[0]} == *"warning: [dqd] metrics_file = $BATS_TEST_TMPDIR/dq.metrics: "*'only *.prom' ]]
    for dir in "$DQ_HANDLERS" /proc/self; do
        own_ini "s|^wake_dir *=.*|wake_dir = $dir|"
        run "$DQ_BIN/dqd" --check-config --config "$BATS_TEST_TMPDIR/own.ini"
        echo "$output"
        [ "$status" = 0 ]
        [[ ${lines[0]} == *"own.ini: warning: [dqd] wake_dir = $dir: "*'could not wake'* ]]
        [[ ${lines[1]} == *'warning: there are no handlers'* ]]
        [[ ${lines[2]} == *'0 handlers, 2 warnings' ]]
    done
}

@test "files that are missing or writable by others are refused" {
    refused 78 /nonexistent/dq.ini --config /nonexistent/dq.ini
    cp "$DQ_CONFIG" "$BATS_TEST_TMPDIR/loose.ini"
    chmod 666 "$BATS_TEST_TMPDIR/loose.ini"
    refused 78 loose.ini --config "$BATS_TEST_TMPDIR/loose.ini"
}

@test "a missing server, database or schema has its message and exit status" {
    write_handlers <<'END'
handlers: {}
END
    own_ini 's|^socket *=.*|socket = /nonexistent/mysql.sock|'
    refused 69 /nonexistent/mysql.sock --config "$BATS_TEST_TMPDIR/own.ini"
    own_ini 's|^database *=.*|database = elsewhere|; s|^user *=.*|user = root|'
    refused 78 elsewhere --config "$BATS_TEST_TMPDIR/own.ini"
    sql 'CREATE DATABASE bare'
    own_ini 's|^database *=.*|database = bare|; s|^user *=.*|user = root|'
    refused 78 'dq init' --config "$BATS_TEST_TMPDIR/own.ini"
}

as_reader() # as_reader ARG...: dqd of an account that may only read, and say that it lives
{
    write_handlers <<<'handlers: {t: {run: "true"}}'
    new_account reader
    sql 'GRANT SELECT ON dq.* TO reader@localhost;
         GRANT INSERT, UPDATE, DELETE ON dq.dq_poller TO reader@localhost'
    own_ini 's/^user *=.*/user = reader/'
    [ "$(sql 'SELECT COUNT(*) FROM dq_task')" = 1 ] || dq add t
    run timeout 300 "$DQ_BIN/dqd" --log-level error --config "$BATS_TEST_TMPDIR/own.ini" "$@"
    echo "$output"
}

@test "a pass ends at a missing privilege and names it" {
    as_reader
    [ "$status" = 77 ]
    [[ $output == *'command denied to user'*'grants.sql.example lists what each account needs, see dqd(8)' ]]
    grep -q 'sql/grants.sql.example' "$DQ_TOP/doc/dqd.8"
    [ -f "$DQ_TOP/sql/grants.sql.example" ]
    [ "${#lines[@]}" = 1 ]
}

@test "--for retries despite a missing privilege and fails if it is still missing at the end" {
    as_reader --for 3s
    [ "$status" = 77 ]
    [[ ${lines[0]} == *'tasks stay pending" duty=claim error='*'command denied to user'* ]]
    [[ ${lines[1]} == 'dqd: '*'command denied to user'* ]]
    [ "$(grep -c 'duty=claim' <<<"$output")" = 1 ]
}

@test "a pass that cannot record a result says so and exits when the lease has ended" {
    write_handlers <<<'handlers: {t: {run: "exit 65"}}'
    new_account forgetful
    sql 'GRANT SELECT ON dq.* TO forgetful@localhost;
         GRANT SELECT, INSERT, UPDATE, DELETE ON dq.dq_task TO forgetful@localhost;
         GRANT INSERT, UPDATE, DELETE ON dq.dq_poller TO forgetful@localhost;
         GRANT INSERT, UPDATE, DELETE ON dq.dq_limit TO forgetful@localhost; DELETE FROM dq_task'
    own_ini 's/^user *=.*/user = forgetful/; s/^\[dqd\]/&\nlease = 2s\nheartbeat = 500ms/'
    dq add t
    run timeout 300 "$DQ_BIN/dqd" --config "$BATS_TEST_TMPDIR/own.ini"
    echo "$output"
    [ "$status" = 77 ]
    [ "$(grep -c 'this pass waits.*run again.*at_most=2s results=1' <<<"$output")" = 1 ]
    [[ ${lines[-1]} == 'dqd: '*'command denied to user'*dq_attempt* ]]
}

@test "with stderr closed, the log is written to no other file" {
    write_handlers <<<'handlers: {}'
    lock=$(sed -n 's/^lock_file *= *//p' "$DQ_CONFIG")
    dqd 2>&-
    [ -f "$lock" ]
    refute grep 'msg=' "$lock"
}

@test "a new password in password_file needs no restart, unless dqd can no longer read the file" {
    file=$BATS_TEST_TMPDIR/password
    change() # change PASSWORD MODE: on the server and in the file, and the connections break
    {
        sql "ALTER USER worker@localhost IDENTIFIED BY '$1'"
        install -m "$2" /dev/stdin "$file" <<<"$1"
        sql "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE user = 'worker'" |
            while read -r kill; do sql "$kill" || true; done
    }
    logged() { grep -q "$1" "$DQD_LOG"; }
    new_account worker
    sql 'GRANT ALL ON dq.* TO worker@localhost'
    change one 600
    write_handlers <<<'handlers: {t: {run: "true"}}'
    own_ini "s|^user *=.*|user = worker\npassword_file = $file|"
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini
    dqd_start --resident
    wait_until logged 'msg="connected"'
    change two 600
    id=$(dq add t)
    dq wait --timeout 1m "$id"
    change three 644
    wait_until logged 'if the password was changed, restart'
    chmod 600 "$file"
    id=$(dq add t)
    dq wait --timeout 1m "$id"
    dqd_stop
    sql 'DROP USER worker@localhost'
}

# systemctl show quotes a value with blanks, and escapes within the quotes, as the shell does.
@test 'the Debian package checks the settings with the environment of the service, blanks and all' {
    mkdir "$BATS_TEST_TMPDIR/bin"
    cat >"$BATS_TEST_TMPDIR/bin/systemctl" <<'SH'
#!/bin/sh
case $* in
*=User*) echo dq ;;
*=Environment*) echo '"DQ_MYSQL_HOST=db1, db2" DQ_DQD_SLOTS=3 "DQ_DQ_NAME=a\"\$HOME\\ *"' ;;
esac
SH
    printf '#!/bin/sh\n[ "$*" = "${*#-u dq -- }" ] || shift 3\nexec "$@"\n' >"$BATS_TEST_TMPDIR/bin/runuser"
    chmod +x "$BATS_TEST_TMPDIR/bin/"*
    sed -n '/^as_service()/,/^}/p; /^property()/p' "$DQ_TOP/etc/debian/dqd.postinst" >"$BATS_TEST_TMPDIR/functions"
    echo 'as_service sh -c "env >$1; echo \"\$1\" >>$1" - "x  y"' >>"$BATS_TEST_TMPDIR/functions"
    PATH=$BATS_TEST_TMPDIR/bin:$PATH sh -e "$BATS_TEST_TMPDIR/functions" "$BATS_TEST_TMPDIR/env"
    grep -Fx 'DQ_MYSQL_HOST=db1, db2' "$BATS_TEST_TMPDIR/env"
    grep -Fx 'DQ_DQD_SLOTS=3' "$BATS_TEST_TMPDIR/env"
    grep -Fx 'DQ_DQ_NAME=a"$HOME\ *' "$BATS_TEST_TMPDIR/env"
    grep -Fx 'x  y' "$BATS_TEST_TMPDIR/env"
}

# the command of the unit | its other settings | what becomes of dqd at an upgrade
UNITS='
dqd --resident                                     | Environment=DQ_CONFIG=good     | restart dqd.service
/usr/bin/dqd --tag "a.*" --slots 3 --tag=a.* --resident | Environment=DQ_CONFIG=good     | restart dqd.service
dqd --resident                                     | Environment=DQ_CONFIG=bad      | Correct the error
dqd --resident --config bad                        | Environment=DQ_CONFIG=good     | Correct the error
dqd --config=bad --resident                        | Environment=DQ_CONFIG=good     | Correct the error
dqd --resident --config good                       | Environment=DQ_CONFIG=bad      | restart dqd.service
dqd --resident --config good                       | EnvironmentFiles=/x (ignore_errors=no) | cannot be checked
dqd --resident --config good                       | PassEnvironment=DQ_CONFIG      | cannot be checked
dqd --resident --config "good 1"                   | Environment=DQ_CONFIG=bad      | restart dqd.service
dqd --resident --config good"                      | Environment=DQ_CONFIG=good     | cannot be checked
dqd --resident --config good 1                     | Environment=DQ_CONFIG=good     | cannot be checked
dqd --resident --config ${CONFIG}                  | Environment=DQ_CONFIG=good     | cannot be checked
dqd --resident --config dq.ini                     | Environment=DQ_CONFIG=good     | cannot be checked
dqd --resident --config                            | Environment=DQ_CONFIG=good     | cannot be checked
/bin/sh -c exec dqd --resident                     | Environment=DQ_CONFIG=good     | cannot be checked
'

@test 'the Debian package restarts dqd only after a check of the settings that the unit names' {
    cd "$BATS_TEST_TMPDIR"
    mkdir bin
    cat >bin/systemctl <<'SH'
#!/bin/sh
case $2 in
*=ExecStart) echo "{ path=/usr/bin/dqd ; argv[]=$COMMAND ; ignore_errors=no ; start_time=[n/a] ; pid=7 }" ;;
--property=*) printf '%s\n' "$SETTING" | grep -E "^($(echo "${2#*=}" | tr , '|'))=" | cut -d = -f 2- ;;
esac
SH
    printf '#!/bin/sh\nshift 3\nexec "$@"\n' >bin/runuser
    printf '#!/bin/sh\necho "$*"\n' >bin/deb-systemd-invoke
    chmod +x bin/*
    sed "s|/run/systemd/system|$PWD|" "$DQ_TOP/etc/debian/dqd.postinst" >postinst
    write_handlers <<<'handlers: {t: {run: "true"}}'
    printf '[dqd]\nslotz = 3\n' >bad
    cp -p "$DQ_CONFIG" "$DQ_CONFIG 1"
    sed "/^$/d; s| *[|] *|@|g; s|\([ =]\)bad|\1$PWD/bad|g; s|\([\" =]\)good|\1$DQ_CONFIG|g" <<<"$UNITS" >units
    while IFS=@ read -r COMMAND SETTING expected; do
        said=$(export COMMAND SETTING; PATH=$PWD/bin:$DQ_BIN:$PATH sh postinst configure 0.1 2>&1)
        [[ $said == *"$expected"* ]] && [ "$(grep -c restart <<<"$said")" = 1 ] ||
            { echo "$COMMAND, $SETTING: $said"; false; }
    done <units
}
