# Every example of the manuals and of the documents for users is run. test/lib/blocks.awk finds them; the table below
# names the test of each; one without fails. They run in a directory of their own; nothing is left in the tree.
load ../lib/sandbox

# document, beginning of the example's first lines | how it is run: a test below, a test elsewhere, or why it is not
EXAMPLES='
doc/dq-add.1: dq list -o ndjson | dq add --from -   | piped
doc/dq-add.1: coproc ADD                           | test/cli/bulk.bats
doc/dq-cancel.1: cancel 30 tasks (mail.welcome)     | prompt
doc/dq.1: $ dq add mail.welcome                     | typed
doc/dq.1: $ dq export >tasks.ndjson                 | typed
doc/dq.1: $ dq add order.cancel-unpaid              | typed
doc/dq.1: $ head -c 1000 /dev/urandom               | typed
doc/dq.1: $ printf                                  | typed
doc/dq.1: $ dq list --due-before                    | typed
doc/dq.1: $ dq reschedule                           | typed
doc/dq.1: $ dq pause                                | typed
doc/dq.1: $ dq stats                                | typed
doc/dq.1: id=$(dq add -q backup.run) && dq wait     | waits
doc/dq.1: $ dq check                                | test/cli/night.bats
doc/dq.1: $ dq errors                               | test/cli/night.bats
doc/dq.1: $ dq cancel --since 10m                   | test/cli/night.bats
doc/dq.1: $ dq list --tag                           | test/cli/night.bats
doc/dq.1: $ dq forecast                             | test/cli/night.bats
doc/dq.1: * * * * * dq line=$(dq check              | alarm
doc/dq.1: * * * * * dq dq stats                     | page
doc/dq.1: location /dq/ {                           | -- a part of the settings of nginx
doc/dq.1: # printf                                  | -- changes files of the system
doc/dqd.8: * * * * * dq dqd --for 55s               | cron
doc/dq-schedule.1: dq schedule import-crontab my.c  | test/daemon/schedule_move.bats
doc/dqd.8: dqd --check-config && systemctl reload   | reload
doc/dqd.8: dqd --tag                                | debug
doc/dqd.8: podman build --format docker             | test/packages/engine
doc/dq.ini.5: usermod -aG dq www-data               | -- changes accounts of the system
doc/dq.ini.5: [mysql]                               | settings
doc/dq.ini.5: DQ_MYSQL_HOST=db.internal             | test/cli/environment.bats
doc/dq-handlers.5: defaults:                        | handlers
doc/dq-handlers.5: setsid                           | -- shows what does not work
doc/dq-handlers.5: handlers:/  "shop.*":            | test/daemon/stay.bats
doc/dq-handlers.5: <?php                            | test/daemon/stay.bats
doc/dq-handlers.5: import base64                    | test/daemon/stay.bats
doc/dq-handlers.5: run: |                           | outlives
doc/dq-handlers.5: {"result":"done"}                | answers
doc/dq-handlers.5: echo "the shop is closed"        | closed
doc/dq-handlers.5: answer() {                       | function
doc/dq-handlers.5: {"id":1,"result":"done"}         | verdicts
doc/dq-handlers.5: {"id":17,"status":"failed"       | test/daemon/follow-up.bats
doc/dq-handlers.5: handlers:/  failed.mail:         | failed
doc/dq-handlers.5: handlers:/  "http.*":            | http
doc/dq-handlers.5: handlers:/  "index.*":           | index
doc/dq-handlers.5: CREATE TABLE task_seen           | test/handlers/to_mysql.py
doc/dq-sandbox.1: dq-sandbox start                  | sandbox
README: $ dq                                        | test/cli/readme.bats
README: $ bin/quickstart                            | test/cli/readme.bats
README:    +---------+                              | -- a drawing
README: handlers:/  hello:                          | test/cli/readme.bats
README: $ date | dq add                             | test/cli/readme.bats
README:                        tasks per second     | -- a table
README: # apt-get build-dep ./etc                   | test/packages/clone
README: # apt install ./deb/dq_*.deb                | test/packages/inside
README: # apt-get install                           | test/cli/readme.bats
README: $ ./autogen.sh && ./configure               | test/cli/quickstart.bats
README: mysql> CREATE DATABASE dq;                  | installation
README: # useradd --system dq                       | installation
README: host = db1                                  | installation
README: $ dq init                                   | installation
doc/producers: START TRANSACTION;                   | orders
doc/producers: CALL dq_cancel_key                   | orders
doc/producers: CALL dq_schedule_set                 | test/cli/schedule_sql.bats
doc/producers: $ dq add --sql                       | prints
doc/producers: ERROR 1644                           | refusal
doc/producers: 1305                                 | -- a table
doc/producers: INSERT INTO dq_task                  | inserted
doc/producers:                 MariaDB 10.11        | -- a table
doc/upgrading: works                                | -- a table
doc/upgrading: dq init adds failed                  | -- a table
doc/upgrading: dq init --plan                       | plan
'
ROWS=$(tr -s ' ' <<<"$EXAMPLES")
DOCUMENTS="$(cd "${DQ_TOP:-$BATS_TEST_DIRNAME/../..}" && echo doc/dq*.[158]) README doc/producers doc/upgrading"

setup_file()
{
    sandbox_start
    tree_files >"$BATS_FILE_TMPDIR/tree"
}

setup()
{
    sandbox_clear
    cd "$BATS_TEST_TMPDIR"
    mkdir bin
    ln -s "$DQ_BIN/dq" "$DQ_BIN/dqd" bin/
    PATH=$PWD/bin:$PATH
    block=$PWD/block
}

# The logs are those of make check, if this is where it runs.
tree_files()
{
    (cd "$DQ_TOP" &&
        find . \( -name .git -o -name __pycache__ -o -name '*.log' -o -name '*.trs' \) -prune -o -print | sort)
}

# The blocks of a document, each in a file: block.1, block.2 ...
split_blocks()
{
    rm -f "$BATS_TEST_TMPDIR"/block.*
    (cd "$DQ_TOP" && awk -f test/lib/blocks.awk "$1") |
        awk -v to="$BATS_TEST_TMPDIR/block" '/^@ / { close(file); file = to "." ++n; next } { print >file }'
}

# block_key DOCUMENT FILE: as the table has it; two lines if the first says too little
block_key()
{
    local first second
    { IFS= read -r first; IFS= read -r second || true; } <"$2"
    case $first in handlers:) first+=/$second ;; esac
    printf '%s: %s\n' "$1" "$first"
}

# how_to_run KEY: the second column of the row whose beginning fits, the longest
how_to_run()
{
    KEY=$1 awk 'match($0, /.* \| /) {
            n = RLENGTH - 3
            if (n > longest && index(ENVIRON["KEY"], substr($0, 1, n)) == 1) { longest = n; how = substr($0, n + 4) }
        }
        END { print how }' <<<"$ROWS"
}

# is_of_help DOCUMENT FILE: the examples of a command in its page, which are those of dq help and run with them
is_of_help()
{
    local verb=${1#doc/dq-}
    [[ $1 == doc/dq-*.1 ]] && "$DQ_BIN/dq" help "${verb%.1}" 2>/dev/null | grep -qxF -- "  $(head -n 1 "$2")"
}

# example DOCUMENT TEXT: the block that contains this line
example()
{
    local file
    split_blocks "$1"
    file=$(grep -lF -e "$2" "$BATS_TEST_TMPDIR"/block.* | head -n 1)
    cat "${file:-/nonexistent}"
}

status_of() { sql "SELECT GROUP_CONCAT(DISTINCT status ORDER BY status) FROM dq_task WHERE tag LIKE '$1'"; }
is_status() { [ "$(status_of "$1")" = "$2" ]; }
no_due() { [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 0 AND expected_time <= UTC_TIMESTAMP(3)')" = 0 ]; }

@test 'every example has a test, and every row of the table an example' {
    sed -n 's/ *| [^|]*$//p' <<<"$ROWS" | grep . >left
    for document in $DOCUMENTS; do
        split_blocks "$document"
        for file in "$BATS_TEST_TMPDIR"/block.*; do
            [ -e "$file" ] && ! is_of_help "$document" "$file" || continue
            key=$(block_key "$document" "$file" | tr -s ' ')
            how=$(how_to_run "$key")
            case $how in
            '') echo "$key: no test; add a row to EXAMPLES" ;;
            --*) ;;
            test/*) [ -e "$DQ_TOP/$how" ] || echo "$document: there is no $how" ;;
            *)
                grep -qF "@test '$how: " "$BATS_TEST_DIRNAME/examples.bats" ||
                    echo "$document: no test is called $how"
                ;;
            esac
            printf '%s\n' "$key" >>keys
        done
    done >findings
    awk 'NR == FNR { keys[n++] = $0; next }
        { for (i = 0; i < n && index(keys[i], $0) != 1; i++); if (i == n) print }' keys left >unused
    mv unused left
    sed 's/$/: the table names what is not there/' left >>findings
    cat findings
    [ ! -s findings ]
}

# ---- dq(1)

@test 'typed: each line of dq(1) that begins with $ works as printed' {
    mandoc -T ascii "$DQ_TOP/doc/dq.1" | sed -n 's/.\x08//g; /^TROUBLESHOOTING/q; s/^ *\$ //p' >lines
    [ "$(wc -l <lines)" -ge 15 ]
    while IFS= read -r line; do
        echo "\$ $line"
        bash -e -o pipefail -c "$line" </dev/null
    done <lines
    [ "$(sql 'SELECT COUNT(*) FROM dq_task')" -ge 8 ]
}

@test 'piped: a list becomes tasks again' {
    for body in one two; do dq -q add mail.welcome "$body" --in 1h; done
    bash -e -o pipefail -c "$(example doc/dq-add.1 'dq list -o ndjson | dq add --from -')"
    [ "$(sql "SELECT GROUP_CONCAT(message_body ORDER BY id) FROM dq_task WHERE status = 0")" = one,two,one,two ]
}

@test 'prompt: dq cancel asks as dq-cancel(1) shows' {
    for _ in $(seq 30); do echo '{"tag":"mail.welcome","in":"1h"}'; done | dq -q add --from - >/dev/null
    own_ini 's/^\[mysql\]/[dq]\nname = prod\n[mysql]/'
    shown=$(example doc/dq-cancel.1 'cancel 30 tasks')
    printf 'wait [y/N]\ntype n\n' |
        DQ_CONFIG=$PWD/own.ini "$DQ_TOP/test/lib/terminal" 120 "$DQ_BIN/dq" cancel -t mail.welcome >seen || true
    cat seen
    grep -qF "${shown/db1/localhost}" seen
    is_status mail.welcome 0
}

@test 'waits: a script waits for a task, and has its exit status' {
    write_handlers <<<'handlers: {backup.run: {run: "exit 3", retry: never}}'
    dqd_start --resident
    rc=0
    bash -c "$(example doc/dq.1 'dq wait "$id"')" </dev/null || rc=$?
    [ "$rc" -eq 3 ]
    dqd_stop
}

@test 'alarm: the line for cron is silent while all is well, and says what is wrong' {
    line=$(example doc/dq.1 'line=$(dq check')
    fake_dqd hello
    dq -q add hello
    [ -z "$(sh -c "${line#'* * * * * dq '}" 2>&1)" ]
    sql "UPDATE dq_task SET create_time = '2026-01-01', expected_time = '2026-01-01'"
    [[ $(sh -c "${line#'* * * * * dq '}") == 'CRITICAL: '* ]]
}

# ---- dqd(8)

@test 'page: cron writes the page of dq(1)' {
    line=$(example doc/dq.1 'dq stats --since 24h --html')
    [[ $line == '* * * * * dq dq stats '* ]]
    line=${line#'* * * * * dq '}
    sh -c "${line/\/var\/www\/dq/.}"
    grep -q '<meta http-equiv="refresh" content="60">' index.html
}

@test 'cron: the line for cron runs dqd, and is that of etc/cron.d' {
    write_handlers <<<'handlers: {hello: {run: "true"}}'
    dq -q add hello
    printf '#!/bin/sh\nexec cat >"%s/logged"\n' "$PWD" >bin/logger
    chmod +x bin/logger
    line=$(example doc/dqd.8 'dqd --for 55s')
    grep -qxF "$line" "$DQ_TOP/etc/cron.d/dq"
    [[ $line == '* * * * * dq dqd '* ]]
    command=${line#'* * * * * dq '}
    bash -e -o pipefail -c "${command/55s/3s}" </dev/null
    is_status hello 1
    [ -s logged ]
}

@test 'reload: a new handlers file is checked and put into effect' {
    write_handlers <<<'handlers: {old: {run: "true"}}'
    dqd_start --resident
    printf '#!/bin/sh\n[ "$*" = "reload dqd" ] && kill -HUP %d\n' "$DQD_PID" >bin/systemctl
    chmod +x bin/systemctl
    dq -q add old
    wait_until is_status old 1
    write_handlers <<<'handlers: {fresh: {run: "true"}}'
    dq -q add fresh
    bash -e -c "$(example doc/dqd.8 'systemctl reload')"
    wait_until is_status fresh 1
    write_handlers <<<'handlers: {wrong: {}}'
    printf '#!/bin/sh\ntouch "%s/reloaded"\n' "$PWD" >bin/systemctl
    run bash -c "$(example doc/dqd.8 'systemctl reload')"
    [ "$status" -eq 78 ]
    [ ! -e reloaded ]
    dqd_stop
}

@test 'debug: dqd runs one kind of task, and logs what it does' {
    write_handlers <<<'handlers: {"*": {run: "true"}}'
    dq -q add mail.welcome
    dq -q add other
    bash -e -c "$(example doc/dqd.8 '--log-level debug')" 2>log
    is_status mail.welcome 1
    is_status other 0
    grep -q debug log
}

# ---- dq.ini(5)

@test 'settings: the example of dq.ini(5) is accepted, its handlers and password with it' {
    echo secret >password
    chmod 600 password
    echo 'handlers: {hello: {run: "true"}}' >handlers.yaml
    touch ca.pem
    chmod 644 handlers.yaml ca.pem
    example doc/dq.ini.5 '[mysql]' | sed "s|/etc/dq|$PWD|; s|^user = dq\$|user = $(id -un)|" >dq.ini
    chmod 600 dq.ini
    dqd --config dq.ini --check-config
    dqd --config dq.ini --list-handlers | grep -q hello
    rm password
    run dq --config dq.ini list
    [[ $output == *"$PWD/password"* ]]
}

# ---- dq-handlers(5): the recipes

@test 'handlers: the first example serves its tags' {
    mkdir local
    printf '#!/bin/sh\necho "$SHOP $(cat)" >>"%s/cancelled"\n' "$PWD" >local/cancel-order
    printf '#!/bin/sh\necho "$DQ_BATCH" >"%s/sent"; cat >/dev/null\n' "$PWD" >local/send-mails
    chmod +x local/*
    example doc/dq-handlers.5 'defaults:' | sed "s|/usr/local/bin|$PWD/local|" | write_handlers
    dq -q add order.cancel-unpaid 4711
    for _ in 1 2 3; do dq -q add mail.welcome; done
    dqd
    [ "$(cat cancelled)" = 'main 4711' ]
    [ "$(cat sent)" = 3 ]
    is_status % 1
}

@test 'failed: a payment that has failed is refunded, and a refund that fails is mailed to nobody' {
    mkdir local
    printf '#!/bin/sh\ncat >>"%s/mails"\n' "$PWD" >local/mail
    printf '#!/bin/sh\nexit 65\n' >local/pay
    printf '#!/bin/sh\necho "$1" >>"%s/refunds"\nexit 65\n' "$PWD" >local/refund
    chmod +x local/*
    example doc/dq-handlers.5 'on_failed: failed.mail' |
        sed "s|/usr/local/[a-z/]*/\([a-z]*\)|$PWD/local/\1|" | write_handlers
    dq -q add payment.card --key order-7
    dq -q add payment.cash # has no key, so nothing can be refunded
    dqd
    [ "$(cat refunds)" = order-7 ]
    is_status payment.% 2 && [ ! -e mails ]
}

@test 'outlives: a process outlives its handler, which ends without waiting for it' {
    printf '#!/bin/sh\nexec 9>&-\nuntil [ -e "%s/go" ]; do sleep 0.05; done\ntouch "%s/came"\n' "$PWD" "$PWD" >bin/later
    chmod +x bin/later
    { echo 'handlers:'; echo '  hello:'; example doc/dq-handlers.5 'exec later' | sed 's/^/    /'; } |
        sed "s|exec later|exec $PWD/bin/later|" | write_handlers
    dq -q add hello
    dqd
    is_status hello 1
    [ ! -e came ]
    touch go
    wait_until test -e came
}

@test 'answers: each line decides about its task' {
    example doc/dq-handlers.5 '{"result":"done"}' >answers
    write_handlers <<<"handlers: {t: {run: 'sed -n \$(cat)p $PWD/answers >&\$DQ_REPLY_FD; exit 1'}}"
    for n in 1 2 3 4 5; do dq -q add t $n; done
    dqd
    sql 'SELECT status, attempt, TIMESTAMPDIFF(MINUTE, create_time, expected_time), error_stack FROM dq_task' >rows
    printf '%s\t%s\t%s\t%s\n' 1 1 0 NULL 0 1 2 'asked to wait 2m: busy' 0 0 0 'snoozed for 30s: HTTP 429' \
        2 1 0 'no such address' 0 0 60 'snoozed for 1h: the shop is closed' | diff - rows
}

@test 'closed: the last line of the output is the reason' {
    { echo 'handlers: {t: {run: "sh script"}}' | sed "s|script|$PWD/script|"; } | write_handlers
    example doc/dq-handlers.5 'echo "the shop is closed"' >script
    dq -q add t
    dqd
    [ "$(sql 'SELECT error_stack FROM dq_task')" = 'asked to wait 2m: the shop is closed' ]
}

@test 'function: any text becomes valid JSON, in every shell' {
    example doc/dq-handlers.5 'answer() {' >script
    for shell in dash bash 'busybox sh'; do
        type ${shell% *} >/dev/null || continue
        printf 'a "quoted" \\ back\\\\slash\n\ttab $(id) %%s \351 \303\251 \001 end' >log
        DQ_REPLY_FD=3 $shell script 3>answer
        [ "$(cat answer)" = '{"result":"fail","error":"?tab $(id) %s ? ?? ? end"}' ]
        sed '$d' script >function
        echo 'answer retry "$(cat log)" 2m' >>function
        DQ_REPLY_FD=3 $shell function 3>answer
        python3 -m json.tool answer
        grep -qF '"a ?quoted? ? back??slash??tab $(id) %s ? ?? ? end","after":"2m"}' answer
    done
}

@test 'verdicts: a batch decides about each of its tasks' {
    example doc/dq-handlers.5 '{"id":1,"result":"done"}' >verdicts
    sql 'ALTER TABLE dq_task AUTO_INCREMENT = 1'
    write_handlers <<<"handlers: {t: {run: 'cat $PWD/verdicts', batch: 10}}"
    for _ in 1 2 3; do dq -q add t; done
    dqd
    [ "$(sql 'SELECT GROUP_CONCAT(id, ":", status ORDER BY id) FROM dq_task')" = 1:1,2:0,3:2 ]
    [ "$(sql 'SELECT TIMESTAMPDIFF(MINUTE, create_time, expected_time), error_stack FROM dq_task WHERE id = 2')" = \
        $'10\tasked to wait 10m: busy' ]
    [ "$(sql 'SELECT error_stack FROM dq_task WHERE id = 3')" = 'no such address' ]
}

@test 'http: each answer of a web service is done, a failure, or a reason to try again' {
    cat >server.py <<'PYTHON'
import http.server
import sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = int(body.split(b"\0")[0])
        with open("requests", "ab") as file:
            file.write(b"%s %s\n" % (self.headers["Idempotency-Key"].encode(), body.hex().encode()))
        self.send_response(code)
        self.end_headers()
        self.wfile.write(b"answer\n")
    def log_message(self, *words):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
with open("port", "w") as file:
    file.write(str(server.server_port))
server.serve_forever()
PYTHON
    python3 server.py 3>&- &
    server=$!
    wait_until test -s port
    example doc/dq-handlers.5 '"http.*"' | sed "s|https://example.org|http://127.0.0.1:$(cat port)|" | write_handlers
    for code in 200 204 400 404 408 425 429 500 503; do printf '%s\0\377\n' "$code" | dq -q add "http.$code" -; done
    dqd
    kill "$server"
    [ "$(sql 'SELECT GROUP_CONCAT(tag, ":", status ORDER BY tag) FROM dq_task')" = \
        http.200:1,http.204:1,http.400:2,http.404:2,http.408:0,http.425:0,http.429:0,http.500:0,http.503:0 ]
    id=$(sql "SELECT id FROM dq_task WHERE tag = 'http.404'")
    grep -qx "dq-$id 34303400ff0a" requests
    [ "$(wc -l <requests)" = 9 ]
    dq -q run-now --tag http.503 -y
    dqd # nobody answers
    [ "$(sql "SELECT status, attempt FROM dq_task WHERE tag = 'http.503'")" = $'0\t2' ]
}

@test 'index: a shell command handles a batch, and nothing of one that cannot be read, or without jq' {
    mkdir local empty
    printf '#!/bin/sh\n%s >>"%s/indexed"\n' "$(type -P cat)" "$PWD" | install -m 755 /dev/stdin local/index-documents
    example doc/dq-handlers.5 '"index.*"' | sed "s|/usr/local/bin|$PWD/local|" >one
    sed "1d; s/index\.\*/none.*/; \$a\    env: {PATH: $PWD/empty}" one | cat one - | write_handlers
    for body in one $'two "words"\n' ''; do dq -q add index.pages "$body"; done
    for body in 'caf\351' three; do printf "$body" | dq -q add index.bytes -; done
    dq -q add none.at-all four
    dqd
    diff <(sort indexed) <(printf '%s\n' '"one"' '"two \"words\"\n"' '""' | sort)
    [ "$(sql 'SELECT GROUP_CONCAT(status, attempt ORDER BY id) FROM dq_task')" = 11,11,11,01,01,00 ]
}

# ---- dq-sandbox(1)

@test 'sandbox: the example of dq-sandbox(1) works as printed' {
    ln -s "$DQ_TOP/bin/dq-sandbox" bin/
    example doc/dq-sandbox.1 'dq-sandbox start' >commands
    env -u DQ_CONFIG -u DQ_SANDBOX -u DQ_HANDLERS bash -euo pipefail -x commands 3>&- </dev/null
    [ ! -e sandbox ]
}

# ---- README: the installation, with directories, names and accounts of the test's own

@test 'installation: what README says makes a dq that works' {
    sed_names="s|/etc/dq|$PWD/etc/dq|g; s|-g dq |-g $(id -gn) |; s/\bdq IDENTIFIED/dq2 IDENTIFIED/; s/TO dq;/TO dq2;/"
    sed_names+="; s/DATABASE dq;/DATABASE dq2;/; s/ON dq\./ON dq2./"
    ln -s "$DQ_TOP/etc" source
    mkdir etc
    sql "$(example README 'mysql> CREATE' | sed "s/^mysql> //; $sed_names")"
    example README '# useradd' | grep -v useradd | sed "s/^# //; s| etc/| source/|g
        s| /usr/local/share/doc/dq/examples/| source/|; $sed_names" >commands
    [ "$(wc -l <commands)" -ge 3 ]
    bash -euo pipefail -x commands
    example README 'host = db1' | sed "s|^host = .*|socket = $(readlink -f "$DQ_SANDBOX/server")/mysql.sock|
        s/^user = .*/user = dq2/; \$a database = dq2
        $sed_names" >lines
    sed -i -e "/^\[mysql\]/r lines" "$PWD/etc/dq/dq.ini"
    example README '$ dq init' | sed -n 's/^\$ //p' >commands
    [ "$(cat commands)" = $'dq init\ndqd --check-config' ]
    DQ_CONFIG=$PWD/etc/dq/dq.ini bash -euo pipefail -x commands
    DQ_CONFIG=$PWD/etc/dq/dq.ini dq -q add hello
    [ "$(sql 'SELECT COUNT(*) FROM dq2.dq_task')" = 1 ]
    sql 'DROP DATABASE dq2; DROP USER dq2'
}

# ---- doc/producers, doc/upgrading

@test 'orders: an application adds and cancels a task in SQL' {
    sql 'CREATE TABLE orders (id INT PRIMARY KEY, state TEXT)'
    sql "$(example doc/producers 'START TRANSACTION')"
    [ "$(sql 'SELECT task_key, message_body, delay_time, status FROM dq_task')" = $'order-1001\t1001\t1800000\t0' ]
    sql "$(example doc/producers 'CALL dq_cancel_key(')"
    is_status order.cancel-unpaid 4
    sql 'DROP TABLE orders'
}

@test 'prints: dq add --sql prints the CALL that doc/producers shows' {
    example doc/producers '$ dq add --sql' >shown
    bash -e -c "$(sed -n 's/^\$ //p' shown)" </dev/null | diff - <(sed 1d shown)
}

@test 'refusal: a wrong argument is refused as doc/producers shows' {
    example doc/producers 'ERROR 1644' | sed 's/, \.\.\.$//; s/ *("error".*//' >shown
    run sql "CALL dq_add('a b', NULL, '', 0, @id)"
    [[ $output == *"$(sed -n '1s/ERROR 1644 (45000)//p' shown)"* ]]
    sql "CALL dq_add('t', 'k', '', 60000, @id)"
    run sql "CALL dq_add_options('t', 'k', '', '{\"key_conflict\":\"error\"}', @id)"
    [[ $output == *"ERROR 1062 (45000)"* ]]
    said=$(sed -E 's/task [0-9]+/task N/' <<<"$output")
    [[ $said == *"$(sed -nE '2s/.*45000\)//; s/task [0-9]+/task N/p' shown)"* ]]
}

@test 'inserted: a plain INSERT adds a task that runs' {
    sql "$(example doc/producers 'INSERT INTO dq_task')"
    [ "$(sql 'SELECT task_key, body_size, status FROM dq_task')" = $'order-1001\t4\t0' ]
    write_handlers <<<"handlers: {order.cancel-unpaid: {run: 'cat >$PWD/got'}}"
    dq -q run-now --key order-1001 -y
    dqd
    [ "$(cat got)" = 1001 ]
}

@test 'plan: dq init --plan has nothing to do in a current database' {
    bash -e -c "$(example doc/upgrading 'dq init --plan')" </dev/null
}

# ---- dq help VERB

@test 'every example of dq help works, but for those that never end' {
    write_handlers <<<'handlers: {"*": {run: "true"}}'
    printf '#!/bin/sh\nexec mariadb --no-defaults --user=root --socket="%s/mysql.sock" "$@"\n' \
        "$(readlink -f "$DQ_SANDBOX/server")" >bin/mysql
    chmod +x bin/mysql
    printf 'tag,body\nmail.welcome,"user 17"\n' >orders.csv
    echo '{}' >body.json
    echo '@daily /usr/bin/shop' >shop.crontab
    dqd_start --resident
    for verb in $(dq help | awk '/^[a-z].*:$/ { verbs = !/^options/ } verbs && /^  [a-z]/ { print $1 }'); do
        dq help "$verb" | sed -n '/^examples:$/,/^$/s/^  dq /dq /p'
    done >lines
    [ "$(wc -l <lines)" -ge 50 ]
    sql 'ALTER TABLE dq_task AUTO_INCREMENT = 17'
    sql "INSERT INTO dq_task (id, tag, message_body, expected_time, create_time) VALUES
         (17, 'slow.export', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)),
         (18, 'mail.welcome', '', UTC_TIMESTAMP(3) + INTERVAL 1 DAY, UTC_TIMESTAMP(3)),
         (124700, 'slow.export', '', UTC_TIMESTAMP(3) + INTERVAL 1 DAY, UTC_TIMESTAMP(3))"
    while IFS= read -r line; do
        case $line in # a screen; until interrupted; load; into a shell or /etc: tested elsewhere
        'dq top'* | 'dq list '*' --watch '* | 'dq events -f' | 'dq bench'* | 'dq completion '*' | '*) continue ;;
        esac
        rc=0
        bash -o pipefail -c "$line" >said 2>&1 </dev/null || rc=$?
        echo "$rc: $line"
        case $rc in # 1: nothing matched, in the wrong state; doctor: a warning; check: a critical value
        0 | 1) ;;
        2) [[ $line == 'dq '@(doctor|check)* ]] ;;
        65) grep -q 'exists already; without --keep-ids' said ;;
        *) cat said; false ;;
        esac
    done <lines
    dqd_stop
}

@test 'nothing was left in the tree' {
    tree_files | diff "$BATS_FILE_TMPDIR/tree" -
}
