# tags, pause, resume, stats, pollers, init, version: what an operator looks at.

load ../lib/sandbox

setup()
{
    sandbox_clear
    write_handlers <<'END'
handlers:
  known: {run: "true"}
  "mail.*": {run: "true"}
END
}

# task TAG STATUS DUE-SECONDS LATE-MS: finished ones ran LATE-MS after they were due.
task()
{
    sql "INSERT INTO dq_task (tag, message_body, status, expected_time, execution_time, finish_time, create_time)
         VALUES ('$1', '', $2, UTC_TIMESTAMP(3) + INTERVAL $3 SECOND,
                 IF($2 IN (1, 2, 3), expected_time + INTERVAL ${4:-0} * 1000 MICROSECOND, NULL),
                 IF($2 IN (1, 2, 4), execution_time, NULL), UTC_TIMESTAMP(3) - INTERVAL 2 HOUR)"
}

@test 'tags shows counts, due tasks, oldest, next, and handler or none' {
    fake_dqd known 'mail.*'
    task known 0 600; task known 0 -120; task known 1 -300; task known 3 -10; task nobody 2 -10; task mail.x 4 -10
    dq tags -o tsv | tr '\t' ' ' >"$BATS_TEST_TMPDIR/out"
    cat "$BATS_TEST_TMPDIR/out"
    names='tag pending running done failed cancelled due late sampled next paused paused_until handler handled'
    [ "$(sed -n 1p "$BATS_TEST_TMPDIR/out")" = "$names paused_by pause_reason" ]
    grep -qxE 'known 2 1 1 0 0 1 12[0-9]{4} false  false  known true  ' "$BATS_TEST_TMPDIR/out"
    grep -qxF 'mail.x 0 0 0 0 1 0  false  false  mail.* true  ' "$BATS_TEST_TMPDIR/out"
    grep -qxF 'nobody 0 0 0 1 0 0  false  false  none false  ' "$BATS_TEST_TMPDIR/out"
    [ "$(dq tags --tag 'n*' -o id)" = nobody ]
    [ "$(dq tags -t nobody -t 'k*' -o id | paste -sd' ')" = 'known nobody' ]
    [ "$(dq stats -t nobody -t 'k*' -o tsv | cut -f1 | paste -sd' ')" = 'tag  known nobody' ]
    [ "$(dq forecast -t nobody -t known --for 1h --by hour -o tsv | awk -F'\t' '{ n += $2 } END { print n }')" -eq 2 ]
    [[ $(dq tags --tag known) =~ \ 1\ +2m ]]
    [[ $(dq tags --tag nobody -o json) == *'"handler":"none","handled":false'* ]]
    TERM=xterm "$DQ_TOP/test/lib/terminal" 200 "$DQ_BIN/dq" tags </dev/null | grep -q "$(printf '\033\\[33m')none"
    [ "$(dq tags -o json -t 'zzz')" = '[]' ]
    [[ $(dq tags --tag nobody -o json) == *'"paused":false,"paused_until":null'* ]]
    sql "UPDATE dq_task SET status = 1 WHERE tag = 'known' AND status = 0 AND expected_time < UTC_TIMESTAMP(3)"
    dq tags -t known -o tsv | tr '\t' ' ' | grep -qxE 'known 1 1 2 0 0 0  false [0-9T:.-]+Z false  known true  '
}

@test 'tags colours only paused tags, late ones and missing handlers as warnings' {
    fake_dqd known 'mail.*'
    task known 0 600
    seen() { TERM=xterm "$DQ_TOP/test/lib/terminal" 200 "$DQ_BIN/dq" tags </dev/null; }
    warned() { seen | grep -c "$(printf '\033\\[33m')" || true; }
    [ "$(warned)" -eq 0 ]
    dq -q pause known
    [ "$(warned)" -eq 1 ]
    seen | grep -q "$(printf '\033\\[33m')resumed"
    dq -q resume known
    sql 'DELETE FROM dq_limit' # since then it would be late
    task known 0 -600
    seen | grep -q "$(printf '\033\\[33m')10m"
}

@test 'the trend is a list of numbers in JSON' {
    task known 1 -10
    [[ $(dq stats -o json) =~ \"trend\":\[[0-9,]+\] ]]
    [[ $(dq stats --by hour -o ndjson | tail -n 1) =~ \"trend\":\[[0-9]+\] ]]
    [[ $(dq forecast -o ndjson | tail -n 1) =~ \"trend\":\[0\] ]]
}

@test 'a table without rows says so, and a misspelt tag gets the one that may be meant' {
    task image.resize 1 -10
    [ "$(dq list -t image.resze 2>&1 >/dev/null | head -n 1)" = \
        'no task has the tag "image.resze": did you mean "image.resize"?' ]
    for verb in tags errors events; do
        [[ $(dq $verb -t image.resze 2>&1 >/dev/null) == *'did you mean "image.resize"?'* ]]
    done
    [ "$(dq list -t image.resize -s failed 2>&1 >/dev/null | head -n 1)" = 'no task matches' ]
    [[ $(dq errors 2>&1 >/dev/null) == *'nothing failed in that time'* ]]
    [ "$(dq events 2>&1 >/dev/null)" = 'nothing happened in that time' ]
    [ "$(dq events "$(dq list -o id -s all)" -e failed 2>&1 >/dev/null)" = 'no event of the task matches' ]
    for verbose in '' -v; do
        [ "$(dq pollers $verbose 2>&1 >/dev/null)" = 'no dqd is alive, and none was lost within a day' ]
    done
    [ -z "$(dq list -q -t nosuch 2>&1 >/dev/null)" ]
    [ -z "$(dq errors -t nosuch -o json 2>&1 >/dev/null)" ]
}

@test 'how late a tag is has a mark if not all of its tasks could be looked at' {
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT 'past', '', '2020-01-01', UTC_TIMESTAMP(3) - INTERVAL 1 HOUR FROM $(numbers 4200)"
    [[ $(dq tags | tail -n 1) =~ ^past\ .*\ ~1h ]]
    sql "DELETE FROM dq_task LIMIT 200"
    [[ $(dq tags | tail -n 1) =~ ^past\ .*\ \ 1h ]]
}

@test 'the columns of tags are the same, whatever the tags are' {
    fake_dqd known 'mail.*'
    task known 0 0
    task nobody 0 0
    heading=$(dq tags | sed -n 1p)
    [[ $heading == *'HANDLER  PAUSE REASON' ]]
    dq -q pause known --reason 'provider is down'
    [ "$(dq tags | sed -n 1p | tr -s ' ')" = "$(tr -s ' ' <<<"$heading")" ]
    [[ $(dq tags | sed -n 2p) == *'  known    provider is down' ]]
    [[ $(dq tags | sed -n 3p) == *'  -' ]]
    [[ $(dq tags -t known -o json) == *'"handled":true,"paused_by":"'*'@'*'","pause_reason":"provider is down"}'* ]]
}

@test 'tables fit the terminal; tags and stats leave columns out and keep the tag whole' {
    tag=$(printf 'a%.0s' {1..40})
    task "$tag" 0 -10
    sql "INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after, version,
                                lease, handlers)
         VALUES
         (REPEAT('a', 16), REPEAT('h', 60), 7, 'resident', 8, 3, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 60000, '0.1.0',
          60000, 0)"
    shown()
    {
        LC_ALL=C.UTF-8 NO_COLOR=1 "$DQ_TOP/test/lib/terminal" "$1" bash -c "$DQ_BIN/dq -q $2" </dev/null | tr -d '\r'
    }
    widest() { shown "$@" | LC_ALL=C.UTF-8 wc -L; }
    for verb in list pollers; do
        echo "$verb: $(widest 100 "$verb")"
        [ "$(widest 100 "$verb")" -le 100 ]
    done
    [ "$(widest 80 list)" -le 80 ]
    for columns in 80 120 200; do
        for verb in tags stats 'stats --by minute --since 3m'; do
            shown "$columns" "$verb"
            [ "$(widest "$columns" "$verb")" -le "$columns" ]
            [[ $verb == *--by* ]] || shown "$columns" "$verb" | grep -q "^$tag "
        done
        # the most useful ones stay
        [[ $(shown "$columns" tags | sed -n 1p) == *FAILED*DUE*LATE* ]]
        [[ $(shown "$columns" stats | sed -n 1p) == *FAILED*DUE*LATE* ]]
    done
    [[ $(shown 80 tags | sed -n 1p) != *CANCELLED* ]]
    [[ $(shown 200 tags | sed -n 1p) == *CANCELLED*NEXT*HANDLER* ]]
    [[ $(dq tags | sed -n 1p) == *CANCELLED*NEXT*HANDLER* ]]
}

@test 'on 80 columns one long tag or error takes no column away' {
    fake_dqd 'import.*' order.cancel-unpaid
    task order.cancel-unpaid 0 -600
    task "$(printf 'x%.0s' {1..120})" 0 600
    heading() { shown "$1" | sed -n 1p; }
    shown()
    {
        LC_ALL=C.UTF-8 NO_COLOR=1 "$DQ_TOP/test/lib/terminal" 80 bash -c "$DQ_BIN/dq -q $1" </dev/null | tr -d '\r'
    }
    for verb in tags stats; do
        [[ $(heading "$verb") == *PENDING*FAILED*DUE*LATE* ]]
        shown "$verb" | grep -q '^order\.cancel-unpaid  .* 10m'
        shown "$verb" | grep -qE '^x{20,}… '
    done
    sql "UPDATE dq_task SET status = 2, finish_time = UTC_TIMESTAMP(3), error_stack = REPEAT('long ', 30), attempt = 1,
         execution_time = UTC_TIMESTAMP(3), exit_code = 1 WHERE tag LIKE 'order%';
         INSERT INTO dq_attempt (task_id, version, attempt, start_time, finish_time, outcome, error_stack)
         SELECT id, 2, 1, finish_time, finish_time, 'exit', error_stack FROM dq_task WHERE tag LIKE 'order%'"
    [[ $(shown 'list -t order*') == *' order.cancel-unpaid '*' long long '* ]]
    [[ $(shown 'list -s failed') == *' order.cancel-unpaid '*' long long long long '* ]]
    [[ $(shown errors) == *FAILURES*FAILED*FIRST*'order.cancel-unpaid  long long long long '* ]]
    [[ $(shown 'pollers -v') == *HANDLER*'MAX RUNNING'*RESTING*' order.cancel-unpaid '* ]]
}

@test 'tags knows handlers from the dqds, not from the file of this host' {
    task known 0 0
    echo 'nonsense: [' >"$DQ_HANDLERS"
    [[ $(dq tags -o json 2>"$BATS_TEST_TMPDIR/err") == *'"handler":null,"handled":null'* ]]
    [ "$(cat "$BATS_TEST_TMPDIR/err")" = 'no dqd is alive' ]
    fake_dqd 'k*'
    [[ $(dq tags -o json 2>&1) == *'"handler":"k*","handled":true'* ]]
}

@test 'a glob pauses the tags that match, also those that appear later, and resume names what still holds' {
    fake_dqd known 'mail.*'
    task mail.a 0 -99
    task mail_a 0 -99
    task known 0 -99
    run dq pause 'mail.*' --for 2h --reason 'provider is down'
    [ "${lines[0]}" = "mail.* is paused for 2h; running handlers continue. To resume: dq resume 'mail.*'" ]
    [ "${lines[1]}" = '1 tag matches now; tags that appear later are paused, too' ]
    task mail.later 0 -99
    paused() { dq tags -o json | jq -r '[.[] | select(.paused) | .tag] | join(" ")'; }
    [ "$(paused)" = 'mail.a mail.later' ]
    [ "$(dq tags -t mail.a -o json | jq -r '.[0].pause_reason')" = 'provider is down' ]
    [ "$(dq list -c tag,status --no-header | LC_ALL=C sort | tr -s ' \n' ' ')" = \
        'known pending mail.a paused mail.later paused mail_a pending ' ]
    id=$(sql "SELECT id FROM dq_task WHERE tag = 'mail.a'")
    [[ $(dq show "$id") == *'mail.* paused until 2'*' by '*': provider is down'* ]]
    dq why "$id" >"$BATS_TEST_TMPDIR/why"
    grep -qE '^  paused for [0-9hms]+: provider is down +mail\.\*, by ' "$BATS_TEST_TMPDIR/why"
    grep -qxF "  dq resume 'mail.*'" "$BATS_TEST_TMPDIR/why"
    run dq check --max-late 90s -t 'mail.*'
    [ "$status" -eq 0 ] # a paused tag is not late
    [ "$(dq events -o json | jq -r '.[-1] | [.event, .tag] | @tsv')" = $'pause\tmail.*' ]
    dq -q pause --all
    dq -q pause mail.a
    [ "$(paused)" = 'known mail.a mail.later mail_a' ]
    run dq resume known
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "* is still paused: dq resume '*'" ]
    [ "${lines[1]}" = 'dq: resume: tag "known" is not paused' ]
    run dq resume --all
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = '* is resumed' ]
    [ "$(printf '%s\n' "${lines[@]:1}" | LC_ALL=C sort)" = "$(printf '%s\n' \
        "mail.* is still paused: dq resume 'mail.*'" 'mail.a is still paused: dq resume mail.a')" ]
    run dq resume mail.a
    [ "$output" = $'mail.a is resumed\nmail.* is still paused: dq resume \'mail.*\'' ]
    [ "$(dq resume 'mail.*' --over 1h --dry-run)" = '2 tasks would be spread' ]
    dq -q resume 'mail.*'
    [ "$(paused)" = '' ]
    for wrong in '--all known' "'ma il*'" "'mail.*,pay.*'"; do
        eval "run dq pause $wrong"
        [ "$status" -eq 64 ] || [ "$status" -eq 65 ]
        [ "${#lines[@]}" -eq 1 ]
    done
    [ "$(sql 'SELECT COUNT(*) FROM dq_limit WHERE paused_until > UTC_TIMESTAMP(3)')" -eq 0 ]
}

@test 'pause lasts for a duration, until a time, or until resume, and records who and why' {
    fake_dqd known 'mail.*'
    task known 0 0
    dq -q pause known
    [[ $(dq tags -t known) =~ resumed\ +known\  ]]
    [[ $(dq tags -t known -o json) == *'"paused":true,"paused_until":null'* ]]
    [[ $(dq tags -t known -o tsv | tr '\t' ' ') == *' true  known true '* ]]
    dq -q pause known --for 2h --reason 'provider is down'
    [ "$(sql "SELECT TIMESTAMPDIFF(MINUTE, UTC_TIMESTAMP(3), paused_until) IN (119, 120), pause_reason
              FROM dq_limit WHERE name = 'known'")" = $'1\tprovider is down' ]
    dq -q pause known --until 2031-01-01T00:00:00Z
    [[ $(dq tags -t known -o json) == *'"paused":true,"paused_until":"2031-01-01T00:00:00.000Z"'* ]]
    [[ $(dq tags -t known) == *' 2031-01-01 '* ]]
    [ "$(sql "SELECT paused_until FROM dq_limit WHERE name = 'known'")" = '2031-01-01 00:00:00.000' ]
    [ -n "$(sql "SELECT paused_by FROM dq_limit WHERE name = 'known' AND paused_by LIKE '%@%'")" ]
    run dq pause known --for 90m
    [[ $output == 'known is paused for 1h30m; '*$'\n''that is shorter: it was paused until 2031-01-01 '* ]]
    run dq pause known --for 2h
    [[ $output == 'known is paused for 2h; '* && $output != *shorter* ]]
    dq -q pause 'know*'
    run dq pause 'know*' --for 1h
    [[ $output == *'that is shorter: it was paused until resumed'* ]]
    dq -q resume 'know*'
    TZ=Europe/Berlin run dq pause known --until '2031-01-01 12:00'
    [[ $output == 'known is paused until 2031-01-01 12:00:00.000 +01:00; '* ]]
    run dq pause known --until 2020-01-01
    [ "$status" -eq 64 ]
    [[ $output == 'dq: pause: --until: 2020-01-01 is in the past' ]]
    [ "$(sql "SELECT paused_until FROM dq_limit WHERE name = 'known'")" = '2031-01-01 11:00:00.000' ]
    run dq pause known --for 0s
    [ "$status" -eq 64 ]
    [[ $output == 'dq: pause: --for must be longer than 0'* ]]
    [ "$(sql "SELECT paused_until FROM dq_limit WHERE name = 'known'")" = '2031-01-01 11:00:00.000' ]
    run dq pause "bob's tag"
    [ "$status" = 65 ]
    [[ $output == 'dq: pause: a tag must not contain quotes: byte 4 is U+0027; a tag has no '* ]]
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         VALUES ('bob\'s tag ', '', '2031-01-01', '2026-01-01')"
    run dq pause "bob's tag"
    [[ $output == "bob's tag is paused; "*'To resume: dq resume '* ]]
    resume=$(grep -o 'dq resume .*' <<<"$output")
    for verb in pause resume; do
        run dq $verb "bob's tag "
        [ "$status" -eq 65 ]
    done
    [[ $output == *'ends with a blank, which the database ignores; leave it out' ]]
    eval "$resume"
    sql "DELETE FROM dq_task WHERE tag = 'bob\'s tag'"
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         VALUES ('star*', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
    dq -q pause 'star*'
    dq -q resume 'star*'
    sql "DELETE FROM dq_task WHERE tag = 'star*'; DELETE FROM dq_limit WHERE name = 'star*'"
    dq -q pause never.seen
    [ "$(dq tags -o id | tr '\n' ' ')" = 'known never.seen ' ]
    run dq resume known
    [ "$status" -eq 0 ]
    run dq resume known
    [ "$status" -eq 1 ]
    [[ $output == 'dq: resume: tag "known" is not paused' ]]
    run dq pause ''
    [ "$status" -eq 65 ]
    run dq pause known --for 1h --until tomorrow
    [ "$status" -eq 64 ]
}

@test 'pollers shows host, process, mode, slots, and whether a dqd is alive' {
    [ "$(dq pollers -o json)" = '[]' ]
    sql "INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after, version,
                                lease, handlers)
         VALUES
         (REPEAT('a', 16), 'h1', 7, 'resident', 8, 3,
          UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 60000, '0.1.0', 60000, 0),
         (REPEAT('b', 16), 'h2', 8, 'once', 4, 0,
          UTC_TIMESTAMP(3) - INTERVAL 2 HOUR, UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, 5000, '0.0.9', 60000, 0)"
    [[ $(dq pollers | sed -n 2p) =~ ^h1\ +7\ +resident\ +8\ +3\ .*0\.1\.0\ +yes$ ]]
    [[ $(dq pollers | sed -n 3p) =~ ^h2\ +8\ +once\ +4\ +-\ .*0\.0\.9\ +no$ ]]
    [[ $(dq pollers -o ndjson | sed -n 1p) == '{"host":"h1","pid":7,"mode":"resident",'* ]]
    [[ $(dq pollers -o ndjson | sed -n 1p) == *'"alive":true,"next_pass":null,"quiet":false}' ]]
    [[ $(dq pollers -o ndjson | sed -n 1p) == *'"version":"0.1.0"'* ]]
}

@test 'init prints what it did, can be repeated, and can run concurrently' {
    local version
    version=$(dq version -o json | sed 's/.*"schema":\([0-9]*\),.*/\1/')
    [[ $(dq init) == *"schema version $version, nothing to do" ]]
    ini=$BATS_TEST_TMPDIR/dq.ini
    sed 's/^user = .*/user = root/; s/^database = .*/database = fresh/' "$DQ_CONFIG" >"$ini"
    chmod 0600 "$ini"
    for i in 1 2 3; do dq --config "$ini" -q init >"$BATS_TEST_TMPDIR/out.$i" 3>&- & done
    for job in $(jobs -p); do wait "$job"; done
    [ "$(grep -c "upgraded from version 0 to $version" "$BATS_TEST_TMPDIR"/out.* | grep -c ':1$')" -ge 1 ]
    [ "$(dq --config "$ini" init -o json)" = "{\"from\":$version,\"to\":$version}" ]
    sql 'DROP DATABASE fresh; CREATE DATABASE fresh'
    sql "USE fresh; $(dq init --print-sql)"
    [[ $(dq --config "$ini" init) == *"schema version $version, nothing to do" ]]
    sql 'DROP DATABASE fresh'
}

@test 'init --plan prints what is left to do, with its cost, and changes nothing' {
    ini=$BATS_TEST_TMPDIR/dq.ini
    sed 's/^user = .*/user = root/; s/^database = .*/database = early/' "$DQ_CONFIG" >"$ini"
    chmod 0600 "$ini"
    sql 'CREATE DATABASE early'
    run dq --config "$ini" init --plan -o ndjson
    [[ ${lines[0]} == '{"migration":"0001_base","table":"dq_meta","rows":0,"touched":0,'* ]]
    [[ ${lines[0]} == *'"writers_wait":false,"statement":"CREATE TABLE IF NOT EXISTS dq_meta '* ]]
    [ "$(sql "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'early'")" = 0 ]
    dq --config "$ini" -q init
    run "$DQ_NEXT/dq" --config "$ini" init --plan
    echo "$output"
    [[ ${lines[0]} == 'MIGRATION '*'TABLE '*'ROWS  TOUCHED  WRITERS WAIT  STATEMENT' ]]
    [[ ${lines[1]} =~ ^next_columns\ +dq_task\ +0\ +0\ +no\ +'ALTER TABLE dq_task ADD COLUMN trace ' ]]
    [[ $output == *' CREATE TABLE IF NOT EXISTS dq_extra (...)'$'\n'* ]]
    [[ $output == *$'\nschema version 1 to 3, which works with programs made for 1 and later' ]]
    run "$DQ_NEXT/dq" --config "$ini" list
    [ "$status" -eq 78 ]
    [[ $output == *': the schema is version 1, compatible back to 1, this dq is made for '*': run dq init' ]]
    [[ $("$DQ_NEXT/dq" --config "$ini" init) == *'upgraded from version 1 to 3'* ]]
    [[ $("$DQ_NEXT/dq" --config "$ini" init --plan 2>&1) == *': nothing to do'* ]]
    sql 'DROP DATABASE early'
}

@test 'init names differences in existing tables and changes nothing' {
    ini=$BATS_TEST_TMPDIR/dq.ini
    sed 's/^user = .*/user = root/; s/^database = .*/database = others/' "$DQ_CONFIG" >"$ini"
    chmod 0600 "$ini"
    sql 'CREATE DATABASE others; CREATE TABLE others.dq_task (id int PRIMARY KEY, what text)'
    run dq --config "$ini" init
    [ "$status" -eq 78 ]
    [[ $output == 'dq: init: '*': these are not the tables of dq: column dq_task.id is int NOT NULL, not bigint '* ]]
    [[ $output == *'; and '[0-9]*' more. Put them right (see dq init --print-sql), or give dq a database of its own' ]]
    [ "$(sql "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'others'")" = 1 ]
    sql 'DROP DATABASE others; CREATE DATABASE others'
    dq --config "$ini" -q init
    sql 'ALTER TABLE others.dq_task DROP INDEX due'
    run dq --config "$ini" init
    [ "$status" -eq 78 ]
    [[ $output == *': index dq_task.due is missing: (status, tag, expected_time). Put '* ]]
    sql 'DROP DATABASE others'
}

@test 'a table of records that is lost is named, and dq init --print-sql makes it again' {
    sql 'DROP TABLE dq_event'
    run dq pause t
    [[ $output == *'dq_event'*'run dq init' ]]
    run dq init
    [ "$status" -eq 78 ]
    [[ $output == *': table dq_event is missing. Put them right (see dq init --print-sql), '* ]]
    sql "$(dq init --print-sql --no-routines)"
    dq -q pause t
    dq -q resume t
    dq -q init
}

@test 'version -v also prints the versions of the server, the schema and the live dqds' {
    sql "INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after, version,
                                lease, handlers)
         VALUES
         (REPEAT('a', 16), 'h', 7, 'resident', 8, 3, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 60000, '7.8.9', 60000, 0),
         (REPEAT('b', 16), 'h', 8, 'resident', 8, 3, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 60000, '4.5.6', 60000, 0),
         (REPEAT('c', 16), 'h', 9, 'resident', 8, 3, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 60000, '7.8.9', 60000, 0),
         (REPEAT('d', 16), 'h', 10, 'resident', 8, 3,
          UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) - INTERVAL 2 MINUTE, 60000, '1.2.3', 60000, 0)"
    run dq version -v
    echo "$output"
    [[ $output =~ server\ +(MariaDB|MySQL)\ [1-9][0-9.]+ ]]
    made_for=$(ls "$DQ_TOP"/sql/0*.sql | wc -l)
    [[ $output =~ schema\ +$made_for$'\n' ]]
    [[ $output =~ schema_version\ +$made_for$'\n' ]]
    [[ $output =~ schema_compat\ +1$'\n' ]]
    [[ $output =~ dqds\ +'2 of 7.8.9, 1 of 4.5.6'$ ]]
    sql "UPDATE dq_meta SET value = value + IF(name = 'schema_version', 3, 1)"
    run dq version -v
    sql "UPDATE dq_meta SET value = value - IF(name = 'schema_version', 3, 1)"
    [[ $output =~ schema\ +$made_for$'\n' ]]
    [[ $output =~ schema_version\ +$((made_for + 3))$'\n' ]]
    [[ $output =~ schema_compat\ +2$'\n' ]]
}
