# dq export and dq import: nothing is lost, conflicts are named with their line, chunks are whole.

load ../lib/sandbox

setup()
{
    sandbox_clear
    cd "$BATS_TEST_TMPDIR"
}


# Every column, bytes and all, but for add_token: it belongs to the statement that stored the row.
table()
{
    sql 'SELECT id, tag, task_key, live, HEX(message_body), body_size, status, version, run, attempt, max_attempts,
            HEX(claim_token), host, pid, lease_until, delay_time, expected_time, execution_time, finish_time, exit_code,
            `signal`, HEX(error_stack), HEX(output), create_time, update_time FROM dq_task ORDER BY id'
    sql 'SELECT task_id, version, attempt, host, pid, start_time, finish_time, outcome, exit_code, `signal`,
            HEX(error_stack), HEX(output) FROM dq_attempt ORDER BY task_id, version'
}

# Tasks in each state but running, with attempts, outputs and bodies of any bytes.
fill()
{
    write_handlers <<'END'
defaults: {retry: [1h]}
handlers:
  good: {run: 'printf "h\303\244\000\377"'}
  bad: {run: "echo why >&2; exit 65"}
  later: {run: "exit 1"}
  kill: {run: "kill -9 $$"}
END
    printf '\000\001\377"\\\n\t\342\200\256\360\237\230\200' | dq -q add good - >ids
    dq -q add good --key 'k "1"' --in 1h --max-attempts 7 >>ids
    for tag in good bad later kill; do dq -q add "$tag" "$tag" >>ids; done
    dq -q cancel "$(dq -q add good 'to be cancelled' --in 1h)"
    dqd >dqd.log 2>&1
    [ "$(sql 'SELECT COUNT(DISTINCT status) FROM dq_task')" -eq 4 ]
    sql 'UPDATE dq_task SET run = id * 2'
    [ "$(sql 'SELECT COUNT(*) FROM dq_attempt')" -ge 3 ]
}

@test 'what is exported and imported with its ids is the same to the byte and the millisecond' {
    fill
    table >before
    dq export >one 2>notes
    cat notes
    grep -qx "$(count) tasks and $(sql 'SELECT COUNT(*) FROM dq_attempt') attempts exported" notes
    sandbox_clear
    try dq import --keep-ids one
    [ "$rc" -eq 0 ]
    [ "$out" = "$(sed 's/exported/imported/' notes)" ]
    table | diff before -
    dq -q export | diff one -
    [ "$(sql "SELECT verb, tasks FROM dq_event WHERE verb = 'import' ORDER BY event_time DESC LIMIT 1")" = \
        "import"$'\t'"$(count)" ]
}

# Columns that an import does not bring back, each with the reason.
unmoved()
{
    cat <<'END'
dq_task.add_token belongs to the statement that stored the row
dq_task.lease_until no dqd owns an imported task
dq_task.again_time empty unless it is running
dq_task.again_body exported as the body
END
}

# A value for each column: by its name if not every value will do, else by its type.
values()
{
    sql "SELECT column_name, CASE
            WHEN column_name IN ('id', 'task_id') THEN '77' WHEN column_name = 'status' THEN '1'
            WHEN column_name = 'priority' THEN '6'
            WHEN column_name = 'live' THEN 'NULL' WHEN column_name = 'body_size' THEN '16'
            WHEN column_name = 'outcome' THEN '''exit'''
            WHEN data_type = 'datetime' THEN CONCAT('''2026-01-02 03:04:', 10 + ordinal_position, '.5''')
            WHEN data_type LIKE '%int' THEN ordinal_position
            ELSE CONCAT('REPEAT(''', CHAR(96 + ordinal_position), ''', 16)') END
         FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '$1'
         ORDER BY ordinal_position"
}

# A column that was added to a table, but not to its list of columns, is lost here.
@test 'export and import carry every column that the tables have' {
    local tables='dq_task dq_attempt' table column value
    for table in $tables; do
        values "$table" >"$table"
        [ "$(wc -l <"$table")" -gt 10 ]
        sql "INSERT INTO $table ($(cut -f 1 "$table" | sed 's/.*/`&`/' | paste -sd,))
             VALUES ($(cut -f 2 "$table" | paste -sd,))"
    done
    dq -q export >one
    sandbox_clear
    try dq import --keep-ids one
    [ "$rc" -eq 0 ]
    for table in $tables; do
        while IFS=$'\t' read -r column value; do
            [ "$(sql "SELECT COUNT(*) FROM $table WHERE \`$column\` <=> $value")" = 1 ] || echo "$table.$column"
        done <"$table"
    done >lost
    unmoved | cut -d ' ' -f 1 | diff - lost
}

@test 'a body of zero bytes near max_allowed_packet is imported again' {
    local packet size=3000000
    packet=$(sql 'SELECT @@GLOBAL.max_allowed_packet; SET GLOBAL max_allowed_packet = 4194304')
    head -c "$size" /dev/zero | dq -q add t - >/dev/null # 18 MB as JSON: more than a line needs at least
    dq -q export >one
    sql 'DELETE FROM dq_task'
    try dq import one
    sql "SET GLOBAL max_allowed_packet = $packet"
    [ "$rc" -eq 0 ]
    [ "$(sql 'SELECT LENGTH(message_body), body_size, SHA2(message_body, 256) FROM dq_task')" = \
        "$size"$'\t'"$size"$'\t'"$(head -c "$size" /dev/zero | sha256sum | cut -c -64)" ]
}

@test 'with new ids, attempts follow their tasks' {
    fill
    dq -q export >one
    table | sed 's/^[0-9]*\t//' | sort >before
    highest=$(sql 'SELECT MAX(id) FROM dq_task')
    sql 'DELETE FROM dq_task; DELETE FROM dq_attempt'
    try dq import <one
    [ "$rc" -eq 0 ]
    [ "$(sql 'SELECT MIN(id) FROM dq_task')" -gt "$highest" ]
    table | sed 's/^[0-9]*\t//' | sort | diff before -
    [ "$(sql 'SELECT COUNT(*) FROM dq_attempt a LEFT JOIN dq_task t ON t.id = a.task_id AND t.version > a.version
              WHERE t.id IS NULL')" -eq 0 ]
}

@test 'filters select what is exported' {
    fill
    dq -q export -s failed >one
    failed=$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 2')
    [ "$failed" -gt 0 ]
    [ "$(grep -c '^{"id":' one)" -eq "$failed" ]
    [ "$(grep -c '"status":"failed"' one)" -eq "$failed" ]
    [ "$(grep -c '^{"task":' one)" -eq "$failed" ]
    dq -q export -t 'go*' | grep '^{"id"' >two
    [ "$(wc -l <two)" -eq "$(sql "SELECT COUNT(*) FROM dq_task WHERE tag = 'good'")" ]
    [ "$(wc -l <two)" -eq "$(grep -c '"tag":"good"' two)" ]
}

@test 'a task that changes its state meanwhile is in every export of its tag' {
    dq -q add mail.one x --in 1h
    local some
    some=$(for i in {1..500}; do echo 'UPDATE dq_task SET status = (status + 1) % 3;'; done)
    while [ ! -e end ]; do sql "$some"; done 3>&- & local changing=$!
    for i in {1..40}; do
        dq -q export -t 'mail.*' >"file.$i"
    done
    touch end
    wait $changing
    [ "$(cat file.* | grep -c '"tasks":1,')" -eq 40 ]
}

@test 'a running task is exported as pending, and its attempt does not count' {
    id=$(dq -q add t)
    sql "UPDATE dq_task SET status = 3, version = 5, attempt = 2, host = 'h', pid = 1,
         execution_time = UTC_TIMESTAMP(3), lease_until = UTC_TIMESTAMP(3)"
    try dq export
    [[ $out == *'"status":"pending","attempt":1,'*'"version":5,'* ]]
    [[ $out != *started* ]]
    [[ $err == *'1 running task is exported as pending: to move it, stop the dqds first'* ]]
    sql "UPDATE dq_task SET run = 3, again_time = UTC_TIMESTAMP(3), again_body = 'another'" # begins another run there
    [[ $(dq -q export) == *'"run":4,'*'"body":"another"'* ]]
    sandbox_clear
    echo "${out/pending/running}" >one
    try dq import <one
    [ "$rc" -eq 65 ]
    [[ $err == *'standard input:2: "status" "running" is none of pending, done, failed and cancelled'* ]]
}

@test 'an id or a key that is taken is an error with its line, and nothing is imported' {
    for n in 1 2 3; do dq -q add t "$n" --key "k$n" --in 1h >>ids; done
    dq -q export >one
    id=$(sed -n 2p ids)
    sql "DELETE FROM dq_task WHERE id <> $id"
    for option in '' --dry-run; do
        try dq import --keep-ids $option one
        [ "$rc" -eq 65 ]
        [[ $err == "dq: import: one:3: task $id exists already; without --keep-ids it gets another id"* ]]
        try dq import $option one
        [ "$rc" -eq 65 ]
        [[ $err == "dq: import: one:3: tag t, key k2: task $id has it and is pending"* ]]
        [ "$(count)" -eq 1 ]
    done
    sql 'DELETE FROM dq_task'
    cat one one >two
    try dq import two
    [[ $err == 'dq: import: two:7: tag t, key k1: two unfinished tasks have it; nothing was imported' ]]
    try dq import --keep-ids two
    [[ $err == 'dq: import: two:7: task '*' is there twice; nothing was imported' ]]
    try dq import --dry-run one
    [ "$out" = '3 tasks and 0 attempts can be imported' ]
    [ "$(count)" -eq 0 ]
}

@test 'after an invalid line, earlier chunks are stored, and --skip continues there' {
    at=2026-01-01T00:00:00.000Z
    for n in $(seq 1200); do
        echo "{'id':$n,'tag':'t','status':'done','expected':'$at','created':'$at'}"
        [ $((n % 2)) -eq 1 ] || # also the last one of a chunk
            echo "{'task':$n,'version':1,'attempt':1,'finished':'$at','outcome':'exit','exit':1}"
    done | tr "'" '"' >good
    sed '1399s/"tag"/"tga"/' good >one
    try dq import --keep-ids one
    [ "$rc" -eq 65 ]
    [[ $err == *'one:1399: unknown member "tga" (did you mean "tag"?); lines up to 750 are in: '* ]]
    [[ $err == *'continue with --skip 750' ]]
    skip=${err##* }
    [ "$(count)" -eq 500 ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_attempt')" -eq 250 ]
    try dq import --keep-ids good --skip "$skip" -o json
    [ "$out" = '{"tasks":700,"attempts":350}' ]
    [ "$(sql 'SELECT COUNT(*), SUM(task_id % 2) FROM dq_attempt')" = $'600\t0' ]
}

@test 'lines that dq export does not write are refused' {
    at=2026-01-01T00:00:00.000Z
    line="{\"id\":1,\"tag\":\"t\",\"status\":\"done\",\"expected\":\"$at\",\"created\":\"$at\"}"
    refused()
    {
        echo "$2" >one
        try dq import <one
        [ "$rc" -eq 65 ]
        [[ $err == "dq: import: standard input:1: $1"*'; nothing was imported' ]]
    }
    refused 'a tag may have at most 128 characters, this one has 129' "${line/\"t\"/\"$(printf 't%.0s' {1..129})\"}"
    refused 'a key may have at most 255 characters, this one has 256' \
        "${line%\}},\"key\":\"$(printf 'ä%.0s' {1..256})\"}"
    refused '"expected" "2026-01-01" is not a time like 2026-11-21T09:00:00.250Z' "${line/T00:00:00.000Z/}"
    refused '"id" 0 is out of range' "${line/:1,/:0,}"
    # an owner without a process id
    [ "$(dq import --dry-run <<<"${line%\}},\"pid\":0}")" = '1 task and 0 attempts can be imported' ]
    [ "$(dq import --dry-run <<<"${line%\}},\"missed\":71941}")" = '1 task and 0 attempts can be imported' ]
    refused '"exit" 65536 is out of range: 0 to 65535' "${line%\}},\"exit\":65536}"
    refused '"status" "finished" is none of' "${line/done/finished}"
    refused '"claim" has 1 bytes, not 16' "${line%\}},\"claim\":\"x\"}"
    refused 'an attempt of task 9, which is not before it' \
        '{"task":9,"version":1,"attempt":1,"finished":"2026-01-01T00:00:00.000Z","outcome":"exit"}'
    refused '"tasks" is missing' '{"end":true,"attempts":0}'
    refused '"outcome" "bad" is not known' \
        '{"task":9,"version":1,"attempt":1,"finished":"2026-01-01T00:00:00.000Z","outcome":"bad"}'
    refused 'not a JSON object' 'tag,body'
    [ "$(count)" -eq 0 ]
}

# moved NUMBER [FIRST]: so many done tasks with attempts of one version, as lines without an end.
moved()
{
    local at=2026-01-01T00:00:00.000Z n
    for ((n = ${2:-1}; n < ${2:-1} + $1; n++)); do
        echo "{'id':$n,'tag':'t','status':'done','expected':'$at','created':'$at'}"
        echo "{'task':$n,'version':1,'attempt':1,'finished':'$at','outcome':'exit','exit':1}"
    done | tr "'" '"'
}

@test 'a line is no longer than what the server could take' {
    packet=$(sql 'SELECT @@GLOBAL.max_allowed_packet; SET GLOBAL max_allowed_packet = 1048576')
    rc=0
    head -c 20M /dev/zero | tr '\0' '{' | dq import 2>err || rc=$?
    sql "SET GLOBAL max_allowed_packet = $packet"
    [ "$rc" -eq 65 ]
    cat err
    grep -q ':1: the line is longer than 16 MiB' err
}

@test 'an export ends with a line that counts what is before it, and an import of one that was cut off says so' {
    moved 3 >lines
    end='{"end":true,"tasks":3,"attempts":3}'
    dq -q import --keep-ids lines
    try dq export
    [ "$(tail -n 1 <<<"$out")" = "$end" ]
    echo "$out" >whole
    head -n 5 whole >cut
    sed 4,5d whole >gap
    cat gap whole >both
    missing='the line that ends an export is missing: the file may have been cut off'
    differs='the export that ends here had 3 tasks and 3 attempts, the file has 2 and 2'
    for option in '' --complete; do
        for from in whole "whole whole" "lines -"; do # also of several exports
            sandbox_clear
            cat ${from/-/<(echo "$end")} >good
            try dq import $option good
            [ "$rc" -eq 0 ]
            [[ $err != *missing* ]]
            [ "$(count)" -eq "$(grep -c '"id"' good)" ]
        done
    done
    said() { [ "$err" = "${1}$2: $3${1:+; nothing was imported}" ]; }
    for from in 'cut '"$missing" 'gap:6 '"$differs" 'both:6 '"$differs"; do
        name=${from%% *}
        why=${from#* }
        file=${name%:*}
        sandbox_clear
        try dq import "$file"
        [ "$rc" -eq 0 ]
        said '' "$name" "$why"
        [ "$(count)" -eq "$(grep -c '"id"' "$file")" ]
        sandbox_clear
        for command in 'dq import --complete "$file"' 'dq import --complete <"$file"' \
            'dq import --complete <(cat "$file")' 'dq import --complete - < <(cat "$file")'; do
            try eval "$command"
            [ "$rc" -eq 65 ]
            [ "$(count)" -eq 0 ]
        done
        said 'dq: import: ' "${name/#$file/standard input}" "$why"
        try dq import --complete --dry-run "$file"
        [ "$rc" -eq 65 ]
        try dq -q import "$file"
        [ -z "$err" ]
    done
}

@test 'with --complete nothing of a file is stored, and of other input no chunk behind a gap' {
    moved 1200 >cut
    try dq import --complete cut
    [ "$rc" -eq 65 ]
    [[ $err == *'may have been cut off; nothing was imported' ]]
    [ "$(count)" -eq 0 ]
    try dq import --complete <(cat cut)
    [ "$rc" -eq 65 ]
    [[ $err == *'may have been cut off; lines up to 2000 are in: continue with --skip 2000' ]]
    [ "$(count)" -eq 1000 ]
    { cat cut; echo '{"end":true,"tasks":1200,"attempts":1200}'; } >whole
    try dq import --complete whole --skip 2000 -o json
    [ "$out" = '{"tasks":200,"attempts":200}' ]
    [ -z "$err" ]
}

@test 'ids that were given in the other database are not given again, to imported tasks or to later ones' {
    for _ in 1 2 3; do dq -q add t --in 1h; done >ids
    last=$(tail -n 1 ids)
    sql "DELETE FROM dq_task WHERE id > $(head -n 1 ids)"
    dq -q export >one
    [ "$(head -n 1 one)" = '{"begin":true,"next_id":'"$((last + 1))}" ]
    sed "1s/[0-9]*}/$((last + 5000))}/" one >two # from a database with more tasks
    for option in '' --keep-ids; do
        sql 'DELETE FROM dq_task; ALTER TABLE dq_task AUTO_INCREMENT = 1'
        try dq import $option --dry-run two
        [ "$rc" -eq 0 ]
        [ "$(dq -q export | head -n 1)" = '{"begin":true,"next_id":1}' ]
        try dq import $option two
        [ "$rc" -eq 0 ]
        [ "$(count)" -eq 1 ]
        id=$(sql 'SELECT id FROM dq_task')
        if [ "$option" ]; then [ "$id" -eq "$(head -n 1 ids)" ]; else [ "$id" -ge $((last + 5000)) ]; fi
        [ "$(dq -q add t --in 1h)" -ge $((last + 5000)) ]
    done
    try dq import <<<'{"begin":true,"next_id":9007199254740993}'
    [ "$rc" -eq 65 ]
}

@test 'two attempts of one version are an error with the line' {
    moved 2 >one
    for n in 2 4; do
        sed "${n}p" one >two
        for option in '' --keep-ids --dry-run; do
            try dq import $option two
            [ "$rc" -eq 65 ]
            why="an attempt of task $((n / 2)) with version 1, behind one with version 1"
            [[ $err == "dq: import: two:$((n + 1)): $why"* ]]
        done
    done
    [ "$(count)" -eq 0 ]
}

@test 'an id that JSON does not carry exactly is not kept' {
    moved 1 9007199254740991 >one
    moved 1 9007199254740992 >>one
    for option in --keep-ids '--keep-ids --dry-run'; do
        try dq import $option one
        [ "$rc" -eq 65 ]
        [[ $err == 'dq: import: one:3: "id" 9007199254740992 cannot be kept: the greatest id is 9007199254740991;'* ]]
        [ "$(count)" -eq 0 ]
    done
    try dq import one
    [ "$rc" -eq 0 ]
    [ "$(sql 'SELECT COUNT(*), MAX(id) < 1000000000 FROM dq_task')" = $'2\t1' ]
}

# application TAG KEY [COLUMN VALUE]: a task that an application stored; SQL expressions.
application()
{
    sql "INSERT INTO dq_task (tag, task_key, message_body, body_size, expected_time, create_time${3:+, $3})
         VALUES ($1, $2, 'x', 1, '2099-01-01', '2026-01-01'${4:+, $4}); SELECT LAST_INSERT_ID()"
}

@test 'tasks of applications that dq add would refuse survive the way to the byte' {
    application "'t'" "'k '" >/dev/null
    application "'t'" "CONCAT(CHAR(9), 'k', CHAR(10))" >/dev/null
    application "'t'" "' '" 'status, live' '1, NULL' >/dev/null
    application "'a b,*?\"'" "REPEAT(_utf8mb4 0xf09f9880, 255)" >/dev/null
    application "''" "'k'" >/dev/null
    application "'-rf'" NULL >/dev/null
    run dq add t --key 'k '
    [ "$status" -eq 65 ]
    table >before
    try dq export
    [ "$rc" -eq 0 ]
    echo "$out" >one
    for keep in '' --keep-ids; do
        sandbox_clear
        try dq import $keep one
        [ "$rc" -eq 0 ] || { echo "$err"; return 1; }
    done
    table | diff before -
    dq -q export | sed 1d | diff <(sed 1d one) -
}

@test 'keys that differ in trailing blanks are the same key to an import, as to the server' {
    application "'t'" "'k '" >/dev/null
    dq -q export >one
    sed 's/"k "/"k"/' one >two
    try dq import two
    [ "$rc" -eq 65 ]
    [[ $err == 'dq: import: two:2: tag t, key k: task '*' has it and is pending; nothing was imported' ]]
    sandbox_clear
    cat one two >three
    try dq import three
    [[ $err == 'dq: import: three:5: tag t, key k: two unfinished tasks have it; nothing was imported' ]]
}

@test 'what cannot be moved is left out of an export, which says so and exits with 1' {
    moved=$(dq -q add t --in 1h)
    bad=$(application "'t'" "CONCAT('k', CHAR(0), 'x')")
    application "CONCAT('t', CHAR(0))" NULL >/dev/null
    application "'t'" NULL status 9 >/dev/null
    application "'t'" NULL version 9223372036854775808 >/dev/null
    sql "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome)
         VALUES ($moved, 1, 1, '2026-01-01', 'odd'), ($moved, 2, 2, '2026-01-01', 'exit'),
                ($moved, 9223372036854775808, 2, '2026-01-01', 'exit')"
    try dq export
    [ "$rc" -eq 1 ]
    [[ $err == *"dq: export: 4 tasks are left out, the first is $bad: "* ]]
    [[ $err == *"dq: export: 2 attempts are left out, the first of task $moved: "* ]]
    echo "$out" >one
    [ "$(wc -l <one)" -eq 4 ] # the beginning, one task, one attempt, and the end
    sandbox_clear
    try dq import --keep-ids one
    [ "$rc" -eq 0 ]
    dq -q export | diff one -
}

@test 'pending tasks that are due run after an import' {
    dq -q add t now
    dq -q export >one
    sandbox_clear
    try dq import one
    [[ $err == *'1 of them is pending and due: dqd runs it now'* ]]
    echo 'handlers: {t: {run: "true"}}' | write_handlers
    dqd
    [ "$(sql 'SELECT status FROM dq_task')" -eq 1 ]
}

# at_terminal LINE <SCRIPT: in `left`, what the terminal shows at the end, without progress that was erased. What runs
# there must not hold the pipe 9 open: if the test fails, it would wait forever.
at_terminal()
{
    rc=0
    PATH=$DQ_BIN:$PATH "$DQ_TOP/test/lib/terminal" 80 bash -c "exec $1" >seen 3>&- 9>&- || rc=$?
    tr -d '\r' <seen | sed 's/^.*\x1b\[K//' | tee left
}

# Done ones: small, and no dqd runs them.
tasks()
{
    sql "INSERT INTO dq_task (tag, message_body, body_size, status, expected_time, create_time)
         SELECT 't', 'x', 1, 1, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM $(numbers "$1")"
}

# The pipe is full, so that the export waits, until the terminal has shown that the interrupt was sent.
@test 'an interrupted export writes whole lines, and says how many tasks they are' {
    tasks 5000
    mkfifo pipe
    exec 9<>pipe
    at_terminal 'dq export >pipe' <<'END'
wait  tasks
key interrupt
wait ^C
run cat <pipe >rest &
wait missing
END
    exec 9>&-
    [ "$rc" -eq 75 ]
    count=$(sed -nE 's/^dq: export: interrupted after ([0-9]+) tasks: others are missing$/\1/p' left)
    [ "$count" -lt 5000 ]
    wait_until eval '[ "$(wc -l <rest)" -eq "$((count + 1))" ]'
    tail -n 1 rest | python3 -m json.tool
    refute grep -q '"end"' rest
}

@test 'an import that waits for input notices an interrupt' {
    tasks 501
    dq -q export >one
    sandbox_clear
    mkfifo pipe
    exec 9<>pipe
    cat one >&9 3>&- 9>&- &
    at_terminal 'dq import --keep-ids pipe' <<'END'
wait 500 tasks
key interrupt
wait continue with
END
    exec 9>&-
    [ "$rc" -eq 75 ]
    grep -qx 'dq: import: pipe: interrupted at line 50[123]; lines up to 501 are in: continue with --skip 501' left
    [ "$(count)" -eq 500 ]
    dq import --keep-ids one --skip 501
    [ "$(count)" -eq 501 ]
}

# bats test_tags=bare
# Its rows are too many to be printed whole.
digests()
{
    sql 'SELECT id, tag, SHA2(message_body, 256), body_size, SHA2(output, 256), status, expected_time,
            create_time FROM dq_task ORDER BY id'
}

@test 'memory does not grow with the number of tasks, and many survive the way' {
    sql "INSERT INTO dq_task (tag, message_body, body_size, output, status, expected_time, create_time)
         SELECT 't', REPEAT('x', 6000), 6000, REPEAT('y', 1500), 1, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)
         FROM $(numbers 10000)"
    digests >before
    python3 - "$DQ_BIN/dq" -q export >one 2>peak <<'END'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
END
    echo "peak of the export: $(cat peak) KiB"
    [ "$(cat peak)" -lt 60000 ]
    sql 'DELETE FROM dq_task'
    mkfifo feed
    "$DQ_BIN/dq" -q import --keep-ids feed >out 3>&- &
    pid=$!
    exec 9>feed
    cat one >&9
    peak=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status")
    exec 9>&-
    wait "$pid"
    cat out
    echo "peak: $peak KiB for $(wc -c <one) bytes"
    [ "$peak" -lt 60000 ]
    digests | diff before -
}
