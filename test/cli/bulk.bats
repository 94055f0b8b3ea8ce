# dq add --from: NDJSON, TSV and CSV, whole chunks or nothing, the line of a fault.

load ../lib/sandbox

setup()
{
    sandbox_clear
    cd "$BATS_TEST_TMPDIR"
}

added() { [ "$(count)" -eq "$1" ]; }
lines() { seq "$1" | sed 's/.*/{"tag":"bulk","in":"1h","body":"&"}/'; }

# Without the line that dq add prints if it took long.
untimed() { grep -v '^took '; }

# refused LINE TEXT: the file x.ndjson (or the one in $file) is refused at LINE with TEXT, and nothing is added.
refused()
{
    try dq add --from "${file:-x.ndjson}"
    [ "$rc" -eq 65 ]
    [[ $err == "dq: add: ${file:-x.ndjson}:$1: "*"$2"*"; nothing was added" ]]
    [ "$(wc -l <err)" -eq 1 ]
    [ "$(count)" -eq 0 ]
}

@test 'an NDJSON file may use every member' {
    cat >x.ndjson <<'END'
{"tag":"a","body":"hällo\n\u0000","key":"k1","in":"10m","max_attempts":2}
{"tag":"b","body_base64":"AP8b","at":"2031-01-01T00:00:00Z"}

{"at":"+1h","tag":"c","key":null}
END
    try dq add --from x.ndjson -o json
    [ "$rc" -eq 0 ]
    [ "$out" = '{"added":3,"kept":0}' ]
    sql 'SELECT tag, HEX(message_body), task_key, max_attempts, delay_time FROM dq_task ORDER BY id' >rows
    [ "$(tr '\t\n' ' ,' <rows)" = 'a 68C3A46C6C6F0A00 k1 2 600000,b 00FF1B NULL NULL 0,c  NULL NULL 0,' ]
    [ "$(sql "SELECT expected_time FROM dq_task WHERE tag = 'b'")" = '2031-01-01 00:00:00.000' ]
    [ "$(sql "SELECT TIMESTAMPDIFF(MINUTE, create_time, expected_time) IN (59, 60)
              FROM dq_task WHERE tag = 'c'")" -eq 1 ]
}

@test 'a TSV file may have a heading and escapes' {
    printf 'a\t10m\tk1\tline\\none\\t\\x00\\xfe\\\\\r\nb\t2031-01-01 00:00\t\t\nc\n' >x.tsv
    TZ=UTC try dq add --from x.tsv
    [ "$out" = '3 added, 0 kept' ]
    [ "$(sql 'SELECT tag, HEX(message_body), task_key, delay_time FROM dq_task ORDER BY id' | tr '\t\n' ' ,')" = \
        'a 6C696E650A6F6E650900FE5C k1 600000,b  NULL 0,c  NULL 0,' ]
    sandbox_clear
    printf 'tag\tbody\tmax_attempts\tin\nx\tbody of x\t5\t1m\n' | try dq add --from - --format tsv
    [ "$(sql 'SELECT tag, message_body, max_attempts, delay_time FROM dq_task' | tr '\t' ' ')" = 'x body of x 5 60000' ]
    sandbox_clear
    printf 'tag\nx\n\ny\n' | try dq add --from -
    [ "$(sql 'SELECT tag FROM dq_task ORDER BY id' | paste -sd,)" = x,y ]
    sandbox_clear
    printf 'body\t1m\n' | try dq add --from - # no heading: 1m is no column
    [ "$(sql 'SELECT tag, delay_time FROM dq_task' | tr '\t' ' ')" = 'body 60000' ]
    sandbox_clear
    printf 'tag\tbody\tin\tbody\nx\ty\t1m\tz\n' >x.tsv
    file=x.tsv refused 1 'heading: "body" appears twice'
    printf 'x\t\t\ta\\\rb\n' >x.tsv
    file=x.tsv refused 1 'field 4: a backslash must be followed by t, n, r, xHH or a backslash'
}

@test 'a CSV file has a heading, quotes, records of several lines, and any end of line' {
    {
        printf '\357\273\277key,tag,body,at,max_attempts\r\nk1,a,"say ""x"", \r\ny",2031-01-01T00:00:00Z,2\r\n'
        printf ',"b",plain,,\r\n\r\n,c,"",in 1h,\r\n'
    } >x.csv
    try dq add --from x.csv
    [ "$out" = '3 added, 0 kept' ]
    sql 'SELECT tag, HEX(message_body), task_key, max_attempts FROM dq_task ORDER BY id' >rows
    hex=$(printf 'say "x", \r\ny' | od -An -tx1 | tr -d ' \n' | tr a-f A-F)
    [ "$(tr '\t\n' ' ,' <rows)" = "a $hex k1 2,b 706C61696E NULL NULL,c  NULL NULL," ]
    [ "$(sql "SELECT expected_time FROM dq_task WHERE tag = 'a'")" = '2031-01-01 00:00:00.000' ]
    sandbox_clear
    printf 'tag,in\nx,5m' | try dq add --from - # by its heading
    [ "$(sql 'SELECT tag, delay_time FROM dq_task')" = $'x\t300000' ]
    sandbox_clear
    printf 'tag\nx\n' | try dq add --from - --format csv
    [ "$(sql 'SELECT tag FROM dq_task')" = x ]
}

@test 'a CSV file that is not RFC 4180 is refused at the line at which its record begins' {
    file=x.csv
    hint='; CSV begins with a line that names its columns, such as tag,body,at'
    printf 'hello,10m\n' >x.csv; refused 1 "a column of dq list$hint"
    [[ $err == *'heading: "hello" is not one of the fields of add --from, such as tag, at or body, or a column'* ]]
    printf 'body,at\nx,\n' >x.csv; refused 1 "heading: there is no column tag$hint"
    printf 'tag;body\nx;y\n' >x.csv; refused 1 "heading: \"tag;body\" is not one of"
    printf 'tag,body\na,b\nb,"x"y\n' >x.csv; refused 3 'field 2: there is text behind the closing quote'
    printf 'tag,body\na,b"c"\n' >x.csv; refused 2 'field 2: it contains a quote'
    printf 'tag,body\na,"1\n2\n3"\nb,"open\nc,d\n' >x.csv; refused 5 'the quotes of a field are not closed'
    printf 'tag,body\na,b,c\n' >x.csv; refused 2 'more than 2 fields; put a field that contains a comma between quotes'
    printf 'tag,body\n\na\n' >x.csv; refused 3 'only 1 of 2 fields'
    printf 'tag,body\n"a\nb",c\n' >x.csv; refused 2 'a tag must not contain control characters'
    file=lines
    printf 'hello,10m\nhello,20m\n' >lines
    refused 1 'commas or the wildcards * and ?: byte 6 is U+002C'
    [[ $err == *'for CSV, name the columns in the first line (tag,body,at), and give --format csv; nothing'* ]]
}

@test 'add --from reports what was added in every output format' {
    echo '{"tag":"a"}' >x.ndjson
    [ "$(dq add --from x.ndjson -o tsv)" = $'added\tkept\n1\t0' ]
    [ "$(dq add --from x.ndjson -o ndjson)" = '{"added":1,"kept":0}' ]
    [ "$(dq add --from x.ndjson 2>&1 | untimed)" = '1 added, 0 kept' ]
    [ "$(dq add --from x.ndjson --dry-run)" = '1 task is valid' ]
}

@test 'with -o id each line is added when it is read, and its id printed before the next one comes' {
    local id
    coproc ADD { dq -q add -o id --from - 2>err; }
    local pid=$ADD_PID
    for ((i = 1; i <= 3; i++)); do
        echo '{"tag":"a","key":"k'$((i % 2))'"}' >&"${ADD[1]}"
        read -r -t 60 id <&"${ADD[0]}"
        [ "$id" = "$(sql "SELECT id FROM dq_task WHERE task_key = 'k$((i % 2))'")" ]
    done
    [ "$(count)" -eq 2 ]
    echo '{"tag":"a b"}' >&"${ADD[1]}"
    wait "$pid" || [ $? -eq 65 ]
    grep -q 'standard input:4: a tag must not contain white space.*--skip 3' err
}

@test 'with -o id nothing more is added when an id cannot be written' {
    lines 3 >x.ndjson
    dq add -o id --from x.ndjson >/dev/full 2>err && rc=0 || rc=$?
    [ "$rc" -eq 71 ]
    [[ $(<err) == *'cannot write to standard output: '*'; lines up to 1 are in: continue with --skip 1' ]]
    added 1
}

@test 'the format of a file follows from its name, or else from its first line' {
    lines 2 >noname
    dq -q add --from noname
    printf 't\t1m\n' >other
    dq -q add --from other
    lines 1 | dq -q add --from -
    echo '  {"tag":"t"}' | dq -q add --from -
    printf 'when\ttag\n1h\tt\n' | dq -q add --from -
    [ "$(count)" -eq 6 ]
    echo '[{"tag":"a"}]' >array
    file=array try dq add --from array
    [ "$rc" -eq 65 ]
    [[ $err == *'array:1: '*"jq -c '.[]'"* ]]
}

@test 'the NDJSON and TSV output of list can be added again' {
    printf 'a\033[31m\n\t\\x' | dq -q add t - --key 'k\ 1'
    dq list -o tsv --columns tag,key,body >x.tsv
    dq -q cancel --key 'k\ 1' -y
    dq -q add --from x.tsv
    [ "$(sql 'SELECT COUNT(DISTINCT message_body), COUNT(DISTINCT task_key), COUNT(*) FROM dq_task')" = $'1\t1\t2' ]
    dq list -o tsv -c tag -s all | dq -q add --from -
    [ "$(sql 'SELECT COUNT(*), COUNT(DISTINCT tag) FROM dq_task')" = $'4\t1' ]
}

@test 'every kind of invalid line is reported with its line number, and nothing is added' {
    lines 3 >good
    for bad in '{"tag":"a"' '"tag"' '{"tag":"a"} x' '{"tag":"a","tag":"b"}'; do
        { cat good; echo "$bad"; } >x.ndjson
        refused 4 ''
    done
    { cat good; echo '{"body":"x"}'; } >x.ndjson; refused 4 tag
    { cat good; echo '{"tag":7}'; } >x.ndjson; refused 4 tag
    { cat good; echo '{"tag":"a","bdoy":"x"}'; } >x.ndjson; refused 4 body
    { cat good; echo '{"tag":""}'; } >x.ndjson; refused 4 'a tag must not be empty'
    { cat good; echo '{"tag":"a\u001b"}'; } >x.ndjson; refused 4 ''
    { cat good; echo '{"tag":"a","key":""}'; } >x.ndjson; refused 4 ''
    { cat good; echo '{"tag":"a","in":"10x"}'; } >x.ndjson; refused 4 'at character 3'
    { cat good; echo '{"tag":"a","in":10}'; } >x.ndjson; refused 4 in
    { cat good; echo '{"tag":"a","at":"2026-02-31"}'; } >x.ndjson; refused 4 ''
    { cat good; echo '{"tag":"a","in":"1m","at":"tomorrow"}'; } >x.ndjson; refused 4 'cannot be combined'
    { cat good; echo '{"tag":"a","max_attempts":0}'; } >x.ndjson; refused 4 max_attempts
    { cat good; echo '{"tag":"a","max_attempts":1.5}'; } >x.ndjson; refused 4 max_attempts
    { cat good; echo '{"tag":"a","attempted":0}'; } >x.ndjson; refused 4 '"attempted" 0 is out of range: 1 to '
    { cat good; echo '{"tag":"a","attempted":10}'; } >x.ndjson; refused 4 'attempted 10 times of 10: no attempt is left'
    { cat good; echo '{"tag":"a","body":"x","body_base64":"eA=="}'; } >x.ndjson; refused 4 body
    { cat good; echo '{"tag":"a","body_base64":"e"}'; } >x.ndjson; refused 4 ''
    { cat good; printf '{"tag":"a","body":"\377"}\n'; } >x.ndjson; refused 4 ''
    file=x.tsv
    printf 'a\t1m\nb\t1m\tk\tbody\tmore\n' >x.tsv; refused 2 'more than 4 fields'
    printf 'a\t1m\nb\t1m\tk\tba\\d\n' >x.tsv; refused 2 'backslash'
    printf 'tag\tbdoy\na\tx\n' >x.tsv; refused 1 'bdoy'
    printf 'tag\tbody\0\na\tx\n' >x.tsv; refused 1 'heading: "body" is not one of'
    for name in error key 'key\texpected'; do
        printf "$name"'\na\n' >x.tsv; refused 1 'heading: there is no column tag; if it is a task, write the line "tag"'
    done
    printf 'a\t1m\n\t1m\n' >x.tsv; refused 2 'a tag must not be empty'
    try dq add --from absent.ndjson
    [ "$rc" -eq 65 ]
}

@test 'after an invalid line, earlier chunks are stored, its own is not, and --skip continues there' {
    lines 6500 | sed '5700s/bulk/ /; 5700s/"in"/"inn"/' >x.ndjson
    try dq add --from x.ndjson
    [ "$rc" -eq 65 ]
    [ -z "$out" ]
    [[ $err == *'x.ndjson:5700: '*'; lines up to 4000 are in: continue with --skip 4000' ]]
    [ "$(count)" -eq 4000 ]
    lines 6500 >x.ndjson
    try dq add --from x.ndjson --skip 4000
    [ "$out" = '2500 added, 0 kept' ]
    [ "$(sql 'SELECT COUNT(*), COUNT(DISTINCT message_body) FROM dq_task')" = $'6500\t6500' ]
}

@test '--key-conflict applies to every line; with error, the line is named and its chunk is not added' {
    dq -q add bulk old --key k2
    printf '{"tag":"bulk","key":"k1"}\n{"tag":"bulk","key":"k2","body":"new"}\n{"tag":"bulk","key":"k3"}\n' >x.ndjson
    try dq add --from x.ndjson --key-conflict error
    [ "$rc" -eq 65 ]
    [[ $err == 'dq: add: x.ndjson:2: '*'nothing was added' ]]
    [ "$(count)" -eq 1 ]
    try dq add --from x.ndjson -o json
    [ "$out" = '{"added":2,"kept":1}' ]
    dq -q add --from x.ndjson --key-conflict replace
    [ "$(sql "SELECT COUNT(*), MAX(message_body) FROM dq_task WHERE status = 0")" = $'3\tnew' ]
}

@test 'a file of many chunks is added completely' {
    lines 20500 >x.ndjson # the last chunk is a part
    try dq add --from x.ndjson
    [ "$rc" -eq 0 ]
    [ "$out" = '20500 added, 0 kept' ]
    [[ -z $err || $err =~ ^took\ .*\ lines/s$ ]] # nothing in less than a second
    [ "$(sql 'SELECT COUNT(*), COUNT(DISTINCT message_body) FROM dq_task')" = $'20500\t20500' ]
}

# bats test_tags=bare
@test 'memory use does not grow with the file' {
    local peaks=() tasks pid
    mkfifo feed
    ASAN_OPTIONS=quarantine_size_mb=1 "$DQ_BIN/dq" add --from - --format ndjson --dry-run <feed >out 3>&- &
    pid=$!
    exec 9>feed
    for tasks in 30000 60000; do
        yes "{\"tag\":\"a\",\"body\":\"$(printf '%0200d' 0)\"}" | head -n "$tasks" >&9
        peaks+=("$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status")")
    done
    exec 9>&-
    wait "$pid"
    [ "$(cat out)" = '90000 tasks are valid' ]
    echo "peaks: ${peaks[*]} KiB"
    [ "${peaks[1]}" -lt $((peaks[0] + 4000)) ] # 68 bytes a task
}

@test 'a long line is accepted, an endless one is refused' {
    { printf '{"tag":"a","body":"'; head -c 3000000 /dev/zero | tr '\0' x; printf '"}'; } >x.ndjson
    dq -q add --from x.ndjson
    [ "$(sql 'SELECT body_size FROM dq_task')" -eq 3000000 ]
    sandbox_clear
    try sh -c 'head -c 70000000 /dev/zero | tr "\0" x | "$DQ_BIN/dq" add --format tsv --from -'
    [ "$rc" -eq 65 ]
    [[ $err == *'standard input:1: the line is longer than 64 MiB'* ]]
    try timeout 60 "$DQ_BIN/dq" import /dev/zero
    [ "$rc" -eq 65 ]
    [[ $err == *'/dev/zero:1: the line is longer than '* ]]
}

@test 'an interrupted add --from reports how far it got' {
    mkfifo feed
    "$DQ_BIN/dq" add --from - <feed >out 2>err 3>&- &
    pid=$!
    exec 9>feed
    lines 4500 >&9
    wait_until added 4000
    kill -TERM "$pid" # the pipe stays open, and silent
    wait_until grep -q interrupted err
    rc=0
    wait "$pid" || rc=$?
    exec 9>&-
    cat err
    [ "$rc" -eq 75 ]
    grep -qE 'standard input: interrupted at line 45[0-9]+; lines up to 4000 are in: continue with --skip 4000$' err
    [ "$(count)" -eq 4000 ]
}

@test 'an empty file adds nothing; -q prints nothing on stderr; progress is shown on a terminal only' {
    : >x.ndjson
    try dq -q add --from x.ndjson
    [ "$rc" -eq 0 ]
    [ "$out" = '0 added, 0 kept' ]
    [ -z "$err" ]
    lines 5000 >x.ndjson
    try dq -q add --from x.ndjson
    [ -z "$err" ]
}

@test 'the progress bar on a terminal is erased at the end' {
    lines 20000 >x.ndjson
    "$DQ_TOP/test/lib/terminal" 80 "$DQ_BIN/dq" add --from x.ndjson </dev/null >seen
    grep -q '20000 added, 0 kept' seen
    grep -qE '\[#*\.*\] +[0-9]+%' seen
}

@test 'each tag that no dqd serves is reported once, with the tag that may have been meant' {
    fake_dqd hello 'mail.*'
    printf '%s\n' helo hello helo mial.x mail.x helo >file.tsv
    [ "$(dq add --from file.tsv 2>&1 | untimed)" = '6 added, 0 kept' ]
    dq -v add --from file.tsv >out 2>&1
    cat out
    [ "$(grep -c 'no dqd serves' out)" -eq 2 ]
    grep -qx 'no dqd serves tag "helo"; did you mean "hello"?' out
    grep -qx 'no dqd serves tag "mial.x"; did you mean "mail.x"?' out
    seq -f 'other.%g' 30 >file.tsv
    dq -v add --from file.tsv >out 2>&1
    [ "$(grep -c 'no dqd serves tag' out)" -eq 10 ]
    grep -qx 'no dqd serves 20 more tags' out
    [ "$(dq -v add --from file.tsv --dry-run 2>&1)" = '30 tasks are valid' ]
}

@test 'tasks of a file that their producer has tried are due after the next wait, or at a time of their own' {
    fake_dqd own
    sql "UPDATE dq_handler SET retry = '7000,8000'"
    printf 'tag,attempted,in\nown,2,\nother,3,\nown,1,1h\n' | dq add --from - --format csv
    [ "$(sql 'SELECT tag, attempt, delay_time FROM dq_task ORDER BY id' | tr '\t\n' ' ,')" = \
        'own 2 8000,other 3 60000,own 1 3600000,' ]
    printf '{"tag":"own","attempted":1}\n' >x.ndjson
    [ "$(dq add --from x.ndjson --sql)" = \
        "CALL dq_add_options('own', NULL, X'', \
'{\"delay_ms\": 5000, \"attempted\": 1, \"key_conflict\": \"keep\"}', @id);" ]
}

@test '--over spreads what a file adds evenly, in its order, each from its own time' {
    spread() # the gaps between the tasks, in ms
    {
        sql 'SELECT TIMESTAMPDIFF(MICROSECOND, create_time, expected_time) DIV 1000 FROM dq_task ORDER BY id' |
            awk 'NR > 1 { print $1 - last } { last = $1 }' | sort | uniq -c | tr -s ' '
    }
    lines 100 >x.ndjson
    [[ $(dq add --from x.ndjson --over 100s 2>&1) == *'spread evenly over 1m40s'* ]]
    [ "$(spread)" = ' 99 1000' ]
    is 'delay_time = 3600000' 1
    for how in 'cat x.ndjson' "sed 1i\\\xef\xbb\xbf x.ndjson"; do
        sandbox_clear
        $how | tr -d '\n' | sed 's/}/}\n\n/g' | dq add --from - --over 100s --skip 100
        [ "$(spread)" = ' 49 2000' ]
    done
    sandbox_clear
    { echo tag,body,at; seq 1 50 | sed 's/.*/t,"two\nlines",2031-01-02T03:04:05Z/'; } >x.csv
    dq add --from x.csv --over 50m
    [ "$(sql 'SELECT MIN(expected_time), MAX(expected_time), COUNT(DISTINCT expected_time) FROM dq_task')" = \
        $'2031-01-02 03:04:05.000\t2031-01-02 03:53:05.000\t50' ]
}

@test 'a chunk that meets a deadlock is sent five times, by add --from and by import' {
    printf '%s\n' t >lines.tsv
    dq -q add t >id
    dq -q export >lines.ndjson
    # A table without transactions counts what is rolled back.
    sql $'CREATE TABLE try (n int AUTO_INCREMENT PRIMARY KEY) ENGINE=MyISAM;
        CREATE TABLE lucky (n int PRIMARY KEY);
        DELIMITER //
        CREATE TRIGGER unlucky BEFORE INSERT ON dq_task FOR EACH ROW BEGIN
            INSERT INTO try () VALUES ();
            IF LAST_INSERT_ID() < (SELECT n FROM lucky) THEN
                SIGNAL SQLSTATE \'40001\' SET MYSQL_ERRNO = 1213;
            END IF;
        END//'
    for lucky in 5 6; do
        for command in 'add --from lines.tsv' 'import lines.ndjson'; do
            sql "TRUNCATE try; DELETE FROM lucky; INSERT INTO lucky VALUES ($lucky); DELETE FROM dq_task"
            # shellcheck disable=SC2086 # words
            try dq -q $command
            [ "$rc" -eq $((lucky == 5 ? 0 : 75)) ]
            [ "$(count)" -eq $((lucky == 5)) ]
            [ "$(sql 'SELECT COUNT(*) FROM try')" -eq 5 ]
        done
    done
    sql 'DROP TRIGGER unlucky; DROP TABLE try, lucky'
}

@test 'a line whose key another session has locked keeps neither those before it nor other adds waiting' {
    local adding
    printf 't\t1h\t\ta\nt\t1h\tl\tb\nx\t1h\tk\tc\nt\t1h\t\td\n' >x.tsv
    lock_task "$(dq add x other --in 1h)"
    echo "INSERT INTO dq_task (tag, task_key, expected_time, create_time, message_body)
        VALUES ('x', 'k', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), ''); SELECT 'stored';" >&9
    wait_until grep -qx stored locked
    try dq add --from x.tsv
    [ "$rc" -eq 75 ]
    [[ $err == "dq: add: x.tsv:3: "*'; lines up to 2 are in: continue with --skip 2' ]]
    is "tag = 't'" 2
    dq add --from x.tsv --key-conflict again >out 2>err 3>&- 9>&- &
    adding=$!
    wait_until is "tag = 't'" 3
    dq add t free --in 1h 9>&-
    echo 'COMMIT;' >&9
    wait "$adding"
    [ "$(<out)" = '4 added, 0 kept' ]
    is "tag = 't'" 5
    exec 9>&-
}
