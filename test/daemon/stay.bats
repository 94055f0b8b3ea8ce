#!/usr/bin/env bats
# Processes that stay, with a server. runner_keep has every form of their ends.

load ../lib/sandbox
load ../lib/screen
setup() { sandbox_clear; cd "$BATS_TEST_TMPDIR"; }
teardown() { screen_end; dqd_reap; }

refused() { # YAML MESSAGE
    printf 'handlers:\n  t:\n    run: x\n%b' "$1" | write_handlers
    run dqd --check-config
    [ "$status" = 78 ] && [[ $output == *"handlers.yaml:"*"$2"* ]] || { echo "$output"; false; }
}

does_tasks() { # PROGRAM SUFFIX: the sample of a worker in this language
    local program
    program=$(command -v "$1") || skip "no $1 here"
    write_handlers <<END
handlers:
  t: {keep: 1, run: [$program, $DQ_TOP/etc/handlers.d/worker.$2],
      env: {PATH: "$PATH", PYTHONIOENCODING: latin-1, RUBYOPT: -EISO-8859-1}}
END
    for i in 1 2 3; do dq add t "body $i"; done
    printf 'quote" \\ \303\251' | dq add t -
    dqd
    is 'status = 1' 4
    is "output = 'body 2\n'" 1
    is "HEX(output) = '71756F746522205C20C3A90A'" 1
}

@test 'the worker for a shell does one task after another' { does_tasks sh sh; }
@test 'the worker in Perl does one task after another' { does_tasks perl pl; }
@test 'the worker in PHP does one task after another' { does_tasks php php; }
@test 'the worker in Python does one task after another' { does_tasks python3 py; }
@test 'the worker in Ruby does one task after another' { does_tasks ruby rb; }
@test 'the worker in JavaScript does one task after another' { does_tasks node js; }

@test 'the workers answer with an id above 2^53 as it is' {
    export DQ_REPLY_FD=3
    for worker in sh:sh perl:pl php:php python3:py ruby:rb node:js; do
        command -v "${worker%:*}" >/dev/null || continue
        printf '{"id":9007199254740993,"tag":"t","body":"\\"id\\":7"}\n' |
            timeout 60 "${worker%:*}" "$DQ_TOP/etc/handlers.d/worker.${worker#*:}" 3>replies
        grep -q '"id": *9007199254740993[,}]' replies || { cat replies; false; }
    done
}

@test 'the worker for a shell is not ready without jq' {
    mkdir empty
    printf 'handlers:\n  t: {keep: 1, run: [/bin/sh, %s], env: {PATH: %s}}\n' \
        "$DQ_TOP/etc/handlers.d/worker.sh" "$PWD/empty" | write_handlers
    dq add t
    run dqd
    [[ $output == *'exit status 127 before it was ready: '*jq* ]] || { echo "$output"; false; }
    is 'status = 0 AND attempt = 0' 1
}

@test 'the worker for a shell does nothing with a task that it could not read, and goes on' {
    mkdir bin
    printf '#!/bin/sh\ncase $2 in *$DIES_AT*) kill -KILL $$ ;; esac\nexec %s "$@"\n' "$(command -v jq)" >bin/jq
    chmod +x bin/jq
    sed 's/^work() .*/work() { echo "$1 $2" >>worked; }/' "$DQ_TOP/etc/handlers.d/worker.sh" >worker.sh
    for dies_at in .tag .body nowhere; do
        printf '{"id":%s,"tag":"t","body%s"}\n' 1 '":"one' 2 '_base64":"/w==' 3 '":"' |
            DIES_AT=$dies_at PATH=$PWD/bin:$PATH timeout 60 sh worker.sh 3>replies
        ended=retry
        [ "$dies_at" != nowhere ] || ended=done
        diff replies <(echo '{"ready":true}'
                       printf '{"id":%d,"result":"%s"}\n' 1 $ended 2 retry 3 $ended)
    done
    diff worked <(printf '%s\n' 't one' 't ')
}

@test 'the worker in JavaScript says what was thrown, whatever it is' {
    command -v node >/dev/null || skip 'no node here'
    sed 's/^async function work.*/function work(tag, body) { throw eval(body.toString()); }/' \
        "$DQ_TOP/etc/handlers.d/worker.js" >worker.js
    export DQ_REPLY_FD=3
    for thrown in "'text'" "new Error('text')" "({message: 'text'})" null; do
        printf '{"id":7,"tag":"t","body":"%s"}\n' "$thrown"
    done | timeout 60 node worker.js 3>replies
    answer='{"id":7,"result":"retry","error":"text"}'
    diff replies <(printf '%s\n' '{"ready":true}' "$answer" "$answer" "$answer" "${answer/text/null}")
}

exits() { # PROGRAM SUFFIX CODE: the sample of a worker, whose work ends as each body says, replaced by CODE
    command -v "$1" >/dev/null || skip "no $1 here"
    sed "s/^\( *\)\(sys.stdout.buffer.write\|puts body\).*/\1$3/" "$DQ_TOP/etc/handlers.d/worker.$2" >"worker.$2"
    export DQ_REPLY_FD=3
    printf '{"id":%s,"tag":"t","body":"%s"}\n' 1 0 2 3 3 0 | timeout 60 "$1" "worker.$2" 3>replies
    diff <(cut -d, -f1,2 replies | tr -d ' }') \
        <(printf '%s\n' '{"ready":true' '{"id":1,"result":"done"' '{"id":2,"result":"retry"' '{"id":3,"result":"done"')
}

@test 'the worker in Python goes on after sys.exit()' { exits python3 py 'sys.exit(int(body) or None)'; }
@test 'the worker in Ruby goes on after exit' { exits ruby rb 'exit body.to_i'; }

# console PROGRAM SCRIPT BODY...: into the files noted and replies, what the stub of a framework notes and answers.
console()
{
    local program=$1 script=$DQ_TOP/test/fault/frameworks/$2 id=0 body
    command -v "$program" >/dev/null || skip "no $program here"
    export DQ_REPLY_FD=3
    for body in "${@:3}"; do
        printf '{"id":%d,"tag":"order.note","body_base64":"%s"}\n' $((++id)) "$(printf %b "$body" | base64 -w 0)"
        # as dqd sends what is UTF-8
        [[ $body == *\\* ]] || printf '{"id":%d,"tag":"order.note","body":"%s"}\n' $((++id)) "$body"
    done | timeout 60 "$program" "$script" noted work 3>replies >&2
    sed -i 1d replies
}

@test 'the command of Django takes a body as an argument, whatever it is' {
    console python3 manage.py --all -- -5 'a b' 'refused\0351' 'caf\0351'
    diff noted <(printf '%s\n' --all --all -- -- -5 -5 'a b' 'a b' $'caf\351')
    diff replies <(printf '{"id": %s, "result": "done"}\n' 1 2 3 4 5 6 7 8
                   echo '{"id": 9, "result": "retry", "error": "refused?"}'
                   echo '{"id": 10, "result": "done"}')
}

@test 'a command of Django that ends with sys.exit() is done unless it says that it has failed' {
    console python3 manage.py 'exit None' 'exit 0' 'exit False' 'exit 3' "exit 'no stock'"
    diff replies <(printf '{"id": %s, "result": "done"}\n' 1 2 3 4 5 6
                   printf '{"id": %s, "result": "retry", "error": "%s"}\n' 7 3 8 3 9 'no stock' 10 'no stock')
}

@test 'the command of Laravel goes on with no transaction of the task before' {
    console php artisan.php --all open 'refused\0351' 'caf\0351'
    diff noted <(printf '%s\n' --all --all $'caf\351')
    open='"retry","error":"it left its transaction open, which was rolled back"'
    diff replies <(printf '{"id":%s,"result":%s}\n' 1 '"done"' 2 '"done"' 3 "$open" 4 "$open" \
                       5 '"retry","error":"refused\ufffd"' 6 '"done"')
}

# manual_worker TEXT FILE: the block of dq-handlers(5) with that line, as a file
manual_worker()
{
    (cd "$DQ_TOP" && awk -f test/lib/blocks.awk doc/dq-handlers.5) |
        awk -v line="$1" '/^@ / { text = ""; next } { text = text $0 "\n" } index($0, line) { found = 1 }
                          found { getline; while (!/^@ /) { text = text $0 "\n"; if ((getline) <= 0) break }
                                  printf "%s", text; exit }' >"$BATS_TEST_TMPDIR/$2"
    grep -qF -e "$1" "$BATS_TEST_TMPDIR/$2"
}

# The workers of the manual, with bodies and errors that are not UTF-8.
manual_does() # PROGRAM FILE
{
    local program
    program=$(command -v "$1") || skip "no $1 here"
    manual_worker '"shop.*":' handlers
    sed "s|/usr/bin/php, /srv/shop/worker.php|$program, $BATS_TEST_TMPDIR/$2|; s|/srv/shop/REVISION|$PWD/REVISION|
         \$a\    env: {PATH: \"$PATH\", PYTHONIOENCODING: latin-1}" "$BATS_TEST_TMPDIR/handlers" | write_handlers
    for body in one bad zwölf; do dq -q add shop.t $body --max-attempts 1; done
    printf '\377' | dq -q add shop.t -
    dqd
    is 'status = 1' 3
    is "status = 2 AND message_body = 'bad' AND error_stack LIKE 'bad%'" 1
    is "output = 'shop.t zwölf\n'" 1
    is "output LIKE 'shop.t %' AND HEX(output) LIKE '%FF%'" 1
}

@test 'the worker of dq-handlers(5) in PHP works as printed' {
    manual_worker '<?php' worker.php
    sed -i "s|/srv/shop|$BATS_TEST_TMPDIR|" worker.php
    cat >autoload.php <<'END'
<?php
class Shop {
    static function work($tag, $body) { if ($body === 'bad') throw new Exception("bad\xff"); echo "$tag $body\n"; }
}
END
    manual_does php worker.php
}

@test 'the worker of dq-handlers(5) in Python works as printed' {
    manual_worker 'import base64' worker.py
    cat >shop.py <<'END'
import sys
def work(tag, body):
    if body == "bad":
        raise Exception("bad")
    sys.stdout.write(tag + " ")
    sys.stdout.flush()
    sys.stdout.buffer.write((body.encode() if isinstance(body, str) else body) + b"\n")
END
    manual_does python3 worker.py
}

@test 'dq rehearse starts one and sends one line' {
    write_handlers <<'END'
handlers:
  t:
    keep: 2
    run: |
      echo '{"ready":true}' >&3
      while read -r line; do echo "$line"; echo "{\"id\":0,\"result\":\"done\"}" >&3; done
END
    run dq rehearse --tag t hello
    [ "$status" = 0 ] && [[ $output == *'"tag":"t"'*'"body":"hello"'* ]] || { echo "$output"; false; }
}

@test 'a process that does not become ready costs no attempt' {
    printf 'handlers:\n  t: {keep: 1, run: "echo no autoload; exit 1"}\n' | write_handlers
    dq add t
    run dqd
    [[ $output == *'exit status 1 before it was ready: no autoload'* ]] || { echo "$output"; false; }
    is 'status = 0 AND attempt = 0' 1
}

@test 'a file of restart_on that changes faster than processes start costs three starts and no attempt' {
    write_handlers <<'END'
handlers:
  t:
    keep: 2
    restart_on: [REVISION]
    cwd: .
    run: |
      [ -e still ] || { touch revision.$$; ln -f revision.$$ REVISION; }
      echo '{"ready":true}' >&3; read -r line
      id=${line#*:}; echo "{\"id\":${id%%,*},\"result\":\"done\"}" >&3
END
    sed -i "s|REVISION\]|$PWD/&|; s|cwd: .|cwd: $PWD|" "$DQ_HANDLERS"
    dq add t
    run timeout 60 "$DQ_BIN/dqd"
    [[ $output == *'restart_on: a file changes again before a process is ready'* ]] || { echo "$output"; false; }
    is 'status = 0 AND attempt = 0' 1
    [ "$(ls revision.* | wc -l)" = 3 ]
    touch still
    dqd
    is 'status = 1 AND attempt = 1' 1
}

@test 'mistakes are reported with file and line' {
    refused '    keep: 9\n' '4:11: keep: 9 is above max_running, 8'
    refused '    keep: 5\n    max_running: 4\n' '4:11: keep: 5 is above max_running, 4'
    refused '    keep: 2\n    recycle: {tasks: 0}\n' '5:22: tasks: 0 is out of range'
    refused '    keep: 2\n    recycle: {age: 0}\n' '5:20: age: 0 is out of range'
    refused '    keep: 2\n    recycle: {memory: 256}\n' 'memory: "256" is no size with a unit'
    refused '    keep: 2\n    recycle: {memory: 0m}\n' 'memory: "0m" is no size with a unit'
    refused '    keep: 2\n    recycle: {task: 5}\n' 'unknown key "task" in recycle'
    refused '    keep: 2\n    restart_on: x\n' 'restart_on must be a list of files'
    printf 'handlers:\n  t: {run: ":", keep: 2, restart_on: [/nowhere/REVISION]}\n' | write_handlers
    run dqd --check-config
    [ "$status" = 0 ] && [[ $output == *'restart_on /nowhere/REVISION: no such file'* ]] || { echo "$output"; false; }
}

@test 'logs -f follows the task of a process that stays, and at SIGTERM that task ends, and no other begins' {
    mkfifo go
    write_handlers <<END
handlers:
  t:
    keep: 1
    run: |
      echo '{"ready":true}' >&3
      while read -r line; do
        id=\${line#*:}; echo begun; read -r x <$PWD/go; echo ended
        echo "{\\"id\\":\${id%%,*},\\"result\\":\\"done\\"}" >&3
      done
      touch $PWD/left
END
    dqd_start --resident
    id=$(dq -q add t -o id)
    dq logs -f "$id" >followed 3>&- &
    local follower=$!
    wait_until grep -qx begun followed
    dq -q add t
    kill "$DQD_PID"
    wait_until grep -q 'asked to stop' "$DQD_LOG"
    echo >go
    wait "$follower"
    [ "$(cat followed)" = $'begun\nended' ]
    wait "$DQD_PID"
    [ -e left ]
    is 'status = 1' 1
    is 'status = 0 AND attempt = 0' 1
}

@test 'dq pollers -v says how many stay, and why one was replaced' {
    write_handlers <<'END'
handlers:
  "t*":
    keep: 2
    retry: never
    run: |
      echo '{"ready":true}' >&3
      while read -r line; do
        case $line in *die*) echo no memory; exit 3;; esac
        id=${line#*:}; echo "{\"id\":${id%%,*},\"result\":\"done\"}" >&3
      done
END
    kept() { dq pollers -v -o json | grep -q "\"kept\":\"$1"; }
    own_ini "s|^\[dqd\]|&\nheartbeat = 100ms\nmetrics_file = $BATS_TEST_TMPDIR/dq.prom|"
    written() { grep -qx "$1" "$BATS_TEST_TMPDIR/dq.prom"; }
    dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"
    dq add tt
    wait_until kept '0 busy, 1 idle, [0-9]* MB, 0 replaced\"'
    wait_until written 'dq_dqd_kept_idle{handler="t\*"} 1'
    screen_start 120 24 "LC_ALL=C.UTF-8 '$DQ_BIN/dq' top"
    sees '^dqd 1 of 1 alive   handlers 0 of [0-9]*   kept 1, 1 idle   failed 0'
    screen_end
    written 'dq_dqd_kept_busy{handler="t\*"} 0'
    written 'dq_dqd_kept_memory_bytes{handler="t\*"} [1-9][0-9]*'
    dq add tt die
    wait_until kept '0 busy, 0 idle, 0 MB, 1 replaced, last for: exit status 3 before it answered: no memory'
    wait_until written 'dq_dqd_kept_replaced_total{handler="t\*",reason="ended"} 1'
    written 'dq_dqd_kept_replaced_total{handler="t\*",reason="memory"} 0'
    promtool check metrics <"$BATS_TEST_TMPDIR/dq.prom"
    for name in $(sed -n 's/^# TYPE \(dq_dqd_kept[a-z_]*\) .*/\1/p' "$BATS_TEST_TMPDIR/dq.prom"); do
        grep -qF "$name" "$DQ_TOP/doc/dqd.8"
    done
    run dq doctor
    [[ $output == *'processes that t* keeps on '*': 0 busy, 0 idle, 0 MB, 1 replaced, last for: exit'* ]]
}
