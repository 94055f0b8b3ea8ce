# dq list: filters, order, columns, formats; and that nothing in the data acts on a terminal.

load ../lib/sandbox

setup() { sandbox_clear; }

# task TAG STATUS DUE-MINUTES [KEY]: a row as dqd would have left it; its id is the number of the call.
task()
{
    local live=NULL key=NULL
    [ -z "${4:-}" ] || key="'$4'"
    case $2 in 0 | 3) [ "$key" = NULL ] || live=1 ;; esac
    sql "INSERT INTO dq_task (tag, task_key, live, message_body, body_size, status, expected_time, create_time)
         VALUES ('$1', $key, $live, 'body', 4, $2,
                 UTC_TIMESTAMP(3) + INTERVAL $3 MINUTE, UTC_TIMESTAMP(3) - INTERVAL 1 DAY)"
}

# ids ARG...: the tags that dq list prints, in their order (tags are unique here, ids are not known).
tags() { dq list -o tsv --no-header --columns tag "$@" | tr '\n' ' '; }

fill()
{
    task pending.soon 0 10 k1
    task pending.late 0 -5
    task running 3 -3 k2
    task done.old 1 -600
    task done.new 1 -60 k1
    task failed 2 -120
    task cancelled 4 -30
}

@test 'for programs list shows pending, running and failed tasks by default, sorted by expected time' {
    fill
    [ "$(tags)" = 'failed pending.late running pending.soon ' ]
}

@test 'for people list shows what is running, late and next, and then how many tasks have failed' {
    shown() { dq list "$@" -c tag --no-header 2>"$BATS_TEST_TMPDIR/err" | tr '\n' ' '; }
    fill
    task later.late 0 -1
    task later.soon 0 20
    fake_dqd
    [ "$(shown)" = 'running pending.late later.late pending.soon later.soon ' ]
    [ "$(cat "$BATS_TEST_TMPDIR/err")" = '1 task has failed: dq errors shows why, dq list -s failed lists them' ]
    # a filter or an order of one's own: all of them, as for programs
    [ "$(shown -t '*')" = 'failed pending.late running later.late pending.soon later.soon ' ]
    [ "$(shown --sort -id -n 1)" = 'later.soon ' ]
    [ ! -s "$BATS_TEST_TMPDIR/err" ] || [[ $(cat "$BATS_TEST_TMPDIR/err") == 'only the first 1 '* ]]
    # each part has room, however long those before it are
    for i in 1 2 3 4 5 6; do task "r$i" 3 -9; task "l$i" 0 -9; task "n$i" 0 30; done
    [ "$(shown -n 5 | tr -d '.[:digit:]')" = 'r r l l pendingsoon ' ]
    [[ $(head -n 1 "$BATS_TEST_TMPDIR/err") == 'only 5 tasks are listed, there are more (running, late, next); '* ]]
    [ "$(shown -n 10 | wc -w)" -eq 10 ]
    sql 'DELETE FROM dq_task WHERE status <> 0 OR expected_time < UTC_TIMESTAMP(3)'
    [ "$(shown -n 5)" = 'pending.soon later.soon n1 n2 n3 ' ]
    [[ $(cat "$BATS_TEST_TMPDIR/err") == 'only 5 tasks are listed, there are more (next); '* ]]
    [ "$(shown -n 1)" = 'pending.soon ' ]
    [[ $(cat "$BATS_TEST_TMPDIR/err") == 'only 1 task is listed, there are more (next); '* ]]
}

@test 'tasks of paused tags stand below the others, named as paused, and have room' {
    task held 0 -99
    task held 0 50
    task run 3 -5
    task held.run 3 -5
    dq -q pause held --reason 'provider is down'
    for i in 1 2 3 4 5 6; do task late 0 -9; task next 0 60; done
    dq list -c tag,status --no-header -n 10 2>err | tr -s ' ' | tr '\n' ',' | tr -d ' ' >rows
    local late=late:pending next=next:pending
    [ "$(sed -E 's/(running|pending|paused)/:\1/g' rows)" = \
        "run:running,held.run:running,$late,$late,$late,$late,$next,$next,held:paused,held:paused," ]
    dq list -c tag,status --no-header -n 5 2>&1 | grep -qE '^held +paused$'
    dq list -n 5 2>&1 | grep -qF 'there are more (late, next, paused)'
    dq list -o ndjson -c tag,status -t held | grep -qxF '{"tag":"held","status":"pending"}'
    many=$(for i in $(seq 250); do printf ",('t%s', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))" "$i"; done)
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time) VALUES ${many:1}"
    [ "$(dq list -c tag,status --no-header -n 300 | tail -n 2 | tr -s ' \n' ' ')" = 'held paused held paused ' ]
}

@test 'list filters by status, tag, key, due time and creation time, and by all of them together' {
    fill
    [ "$(tags -s done)" = 'done.new done.old ' ]
    [ "$(tags -s finished --sort expected)" = 'done.old failed done.new cancelled ' ]
    [ "$(tags -s live)" = 'pending.late running pending.soon ' ]
    [ "$(tags -s pending,canceled)" = 'cancelled pending.late pending.soon ' ]
    [ "$(tags -t 'pending.*')" = 'pending.late pending.soon ' ]
    [ "$(tags -t '*.ol?' -s all)" = 'done.old ' ]
    [ "$(tags -t 'done%' -s all)" = '' ]
    [ "$(tags -k k1 -s all)" = 'done.new pending.soon ' ]
    [ "$(tags -s all --due-before +0s)" = 'done.old failed done.new cancelled pending.late running ' ]
    [ "$(tags --due-after +0s)" = 'pending.soon ' ]
    sql "UPDATE dq_task SET create_time = UTC_TIMESTAMP(3) WHERE tag IN ('failed', 'cancelled')"
    for since in 2h '2 hours ago' 'an hour ago' "$(date -d '-2 hours' +%H:%M)"; do
        [ "$(tags --since "$since" -s all)" = 'failed cancelled ' ]
    done
    run dq list --since +1h
    [ "$status" -eq 64 ]
    [[ $output == 'dq: list: --since: +1h is '*', which is in the future'* ]]
    [ "$(tags --since 2d -s done,pending --due-after @0 -t '*o*' -k k1 --due-before +1h)" = 'done.new pending.soon ' ]
}

@test 'list has a total order, to which --limit applies' {
    fill
    [ "$(tags -s all --sort id)" = 'pending.soon pending.late running done.old done.new failed cancelled ' ]
    [ "$(tags -s all --sort -id -n 2)" = 'cancelled failed ' ]
    [ "$(tags -s all --sort -expected -n 3)" = 'pending.soon running pending.late ' ]
    [ "$(tags -n 0)" = "$(tags)" ]
}

@test '--columns selects columns in the given order, and an unknown one gets a suggestion' {
    fill
    [ "$(dq list -s failed -c status,tag)" = "$(printf 'STATUS  TAG\nfailed  failed')" ]
    [ "$(dq list -c tag --no-header -n 1)" = running ]
    rc=0
    dq list -c tag,statsu 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    [ "$rc" -eq 64 ]
    [ "$(cat "$BATS_TEST_TMPDIR/err")" = 'dq: list: there is no column "statsu": did you mean "status"?' ]
    for column in $(dq list -c help | awk '{ print $1 }'); do
        [ "$(dq list -t '*' -c "$column" | wc -l)" -eq 5 ]
    done
}

@test 'list is well formed in every output format, also when it is empty' {
    [ "$(dq list -o json)" = '[]' ]
    [ -z "$(dq list -o ndjson)" ]
    [ -z "$(dq list -o id)" ]
    [ "$(dq list -o tsv --no-header)" = '' ]
    [ "$(dq list | wc -l)" -eq 1 ]
    fill
    [ "$(dq list -o json | grep -c '"status":"')" -eq 4 ]
    [ "$(dq list -o json | head -c 2)" = '[{' ]
    [ "$(dq list -o json | tail -n 1 | tail -c 3)" = '}]' ]
    dq list -o ndjson -t running >"$BATS_TEST_TMPDIR/running"
    grep -qE '^\{"id":[0-9]+,"tag":"running","key":"k2","status":"running",' "$BATS_TEST_TMPDIR/running"
    grep -qE '"expected":"[0-9-]+T[0-9:.]+Z",.*\}$' "$BATS_TEST_TMPDIR/running"
    [ "$(dq list -o id -t running)" = "$(sql "SELECT id FROM dq_task WHERE tag = 'running'")" ]
    [[ $(dq list -o tsv -t running | tail -n 1) =~ ^[0-9]+$'\t'running$'\t'k2$'\t'running$'\t'0$'\t' ]]
}

@test 'the ids of list can be piped into another command' {
    fill
    dq list -o id --tag 'pending.*' | xargs "$DQ_BIN/dq" cancel
    [ "$(sql "SELECT COUNT(*) FROM dq_task WHERE status = 4")" -eq 3 ]
}

@test 'tables show times in the configured zone, formats for programs in UTC' {
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         VALUES ('t', '', '2031-07-01 10:00:00.250', UTC_TIMESTAMP(3))"
    [ "$(TZ=Europe/Berlin dq list -c expected --no-header)" = '2031-07-01 12:00:00' ]
    [ "$(TZ=Europe/Berlin dq list -c expected --no-header -o tsv)" = '2031-07-01T10:00:00.250Z' ]
    own_ini '$a [dq]\ntime_zone = utc\noutput = ndjson'
    export DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini
    [ "$(TZ=Europe/Berlin dq list -o table -c expected --no-header)" = '2031-07-01 10:00:00Z' ]
    [ "$(dq list -c tag)" = '{"tag":"t"}' ]
}

@test 'took is the run time of the last attempt, and so far of a running task' {
    sql "INSERT INTO dq_task (id, tag, message_body, status, expected_time, execution_time, finish_time, create_time)
         VALUES
         (1, 't', '', 1, '2026-01-01', '2026-01-01 00:00:01', '2026-01-01 00:00:03.500', '2026-01-01'),
         (2, 't', '', 3, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) - INTERVAL 90 SECOND, NULL, '2026-01-01'),
         (3, 't', '', 0, UTC_TIMESTAMP(3), '2026-01-01', NULL, '2026-01-01'),
         (4, 't', '', 4, UTC_TIMESTAMP(3), '2026-01-01', UTC_TIMESTAMP(3), '2026-01-01'),
         (5, 't', '', 2, '2026-01-01', '2026-01-01 00:00:01', '2026-01-01 00:00:02', '2026-01-01')"
    [ "$(dq list -o ndjson -c id,took -s all --sort id | sed -E 's/:9[0-9]{4}\}/:90000}/' | tr '\n' ' ')" = \
        '{"id":1,"took":2500} {"id":2,"took":90000} {"id":3,"took":null} {"id":4,"took":null} {"id":5,"took":1000} ' ]
    dq show 1 | grep -qE '^took +2\.5s$'
    [[ $(dq list) =~ \ TOOK\ .*\ 1m3[0-9]s ]]
}

@test 'due_in and late show how soon a task is due, and how late it is or started; none is negative' {
    task a 0 90
    task b 0 -90
    task c 3 -90
    task d 4 90
    sql "UPDATE dq_task SET create_time = expected_time - INTERVAL 1 DAY;
         UPDATE dq_task SET execution_time = expected_time + INTERVAL 5 SECOND WHERE tag = 'c';
         UPDATE dq_task SET execution_time = expected_time - INTERVAL 5 SECOND WHERE tag = 'd'"
    [[ $(dq list -c due_in,late --no-header -t a) =~ ^1h(29m|30m).*\ -$ ]]
    [[ $(dq list -c due_in,late --no-header -t b) =~ ^-\ +1h30m ]]
    [[ $(dq list -o ndjson -c due_in,late -t a) =~ ^\{\"due_in\":53[0-9]{5},\"late\":null\}$ ]]
    [[ $(dq list -o ndjson -c due_in,late -t b) =~ ^\{\"due_in\":null,\"late\":54[0-9]{5}\}$ ]]
    [ "$(dq list -o ndjson -c due_in,late -t c)" = '{"due_in":null,"late":5000}' ]
    [ "$(dq list -o ndjson -c due_in,late -t d -s all)" = '{"due_in":null,"late":null}' ]
}

@test 'late counts from when a task was due, created or moved, whichever was last' {
    late() { dq list -s all -o ndjson -c late -t "$1"; }
    sql "INSERT INTO dq_task
         (tag, message_body, status, expected_time, create_time, update_time, execution_time, host)
         SELECT tag, '', status, at, UTC_TIMESTAMP(3) - INTERVAL created MINUTE,
                UTC_TIMESTAMP(3) - INTERVAL moved MINUTE, at + INTERVAL started SECOND, token
         FROM (SELECT '2020-01-01' AS at) a,
              (SELECT 'added' AS tag, 0 AS status, 1 AS created, NULL AS moved, NULL AS started, NULL AS token
               UNION SELECT 'moved', 0, 120, 1, NULL, NULL
               UNION SELECT 'retried', 0, 120, 1, 5, 'token'
               UNION SELECT 'given.back', 0, 120, 1, NULL, 'token') t"
    sql "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time, update_time, execution_time)
         VALUES ('started', '', 3, '2020-01-01', '2026-01-01', '2026-01-02', '2026-01-01 00:00:07')"
    for tag in added moved retried; do
        late "$tag"
        [[ $(late "$tag") =~ ^\{\"late\":[67][0-9]{4}\}$ ]]
    done
    [[ $(late given.back) =~ ^\{\"late\":72[0-9]{5}\}$ ]] # a claim that started nothing moved nothing
    [ "$(late started)" = '{"late":7000}' ]
}

@test 'tags, keys, bodies and errors cannot control a terminal' {
    sql "INSERT INTO dq_task (tag, task_key, message_body, status, error_stack, expected_time, create_time) VALUES
         (CONCAT('a', CHAR(27), '[2J'), CONCAT('k', CHAR(10), 'x'),
          CONCAT(CHAR(0), CHAR(27), ']0;x', CHAR(7), CHAR(255)), 2,
          CONCAT(_utf8mb4 0xE280AEC29B, CHAR(13)), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
    for format in table tsv json ndjson; do
        dq list -o "$format" -c id,tag,key,error,body | LC_ALL=C tr -d '\n\t' >"$BATS_TEST_TMPDIR/$format"
        LC_ALL=C refute grep '[[:cntrl:]]' "$BATS_TEST_TMPDIR/$format"
    done
    [ "$(dq list -t '*' -c tag,key,body --no-header)" = 'a\x1B[2J  k\nx  \x00\x1B]0;x\x07\xFF' ]
    [[ $(dq list -s failed -c error --no-header) == *'\u{202E}'*'\r'* ]]
    id=$(dq list -o id)
    [ "$(dq show "$id" --full | LC_ALL=C tr -d '\n' | LC_ALL=C grep -c '[[:cntrl:]]')" -eq 0 ]
}

@test 'columns are aligned by display width, also with wide characters' {
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time) VALUES
         ('ascii', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)),
         (_utf8mb4 0xE8A882E596AE, '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
    [ "$(dq list -c tag,status --sort id)" = \
        $'TAG    STATUS\nascii  pending\n\350\250\202\345\226\256   pending' ]
}

@test 'numbers and durations are aligned to the right' {
    sql "INSERT INTO dq_task
             (tag, message_body, status, attempt, expected_time, execution_time, finish_time, create_time)
         VALUES ('t', '', 1, 1, '2026-01-01', '2026-01-01', '2026-01-01 00:00:00.005', '2026-01-01'),
                ('t', '', 1, 10, '2026-01-01', '2026-01-01', '2026-01-01 00:01:30', '2026-01-01')"
    [ "$(dq list -s done -c took,attempt,tag --sort id)" = \
        $' TOOK  ATTEMPT  TAG\n  5ms        1  t\n1m30s       10  t' ]
}

@test 'a terminal gets 50 rows, a note and colours; a pipe gets all rows without colours' {
    yes '{"tag":"x","in":"1h"}' | head -n 120 | dq -q add --from - >/dev/null
    task broken 2 0
    fake_dqd
    [ "$(dq list | wc -l)" -eq 121 ]
    [ "$(dq list | grep -c "$(printf '\033')" || true)" -eq 0 ]
    TERM=xterm "$DQ_TOP/test/lib/terminal" 200 "$DQ_BIN/dq" list </dev/null >"$BATS_TEST_TMPDIR/seen"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/seen")" -eq 53 ]
    sed -n 52p "$BATS_TEST_TMPDIR/seen" |
        grep -q 'only 50 tasks are listed, there are more (next); -n N lists more, -n 0 all'
    sed -n 53p "$BATS_TEST_TMPDIR/seen" | grep -q '^1 task has failed: '
    TERM=xterm "$DQ_TOP/test/lib/terminal" 200 "$DQ_BIN/dq" list -t '*' </dev/null >"$BATS_TEST_TMPDIR/seen"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/seen")" -eq 52 ]
    sed -n 52p "$BATS_TEST_TMPDIR/seen" |
        grep -q 'only the first 50 tasks are listed; -n N lists more, -n 0 all'
    grep -q "$(printf '\033\\[31m')failed" "$BATS_TEST_TMPDIR/seen"
    NO_COLOR=1 TERM=xterm "$DQ_TOP/test/lib/terminal" 200 "$DQ_BIN/dq" list -n 0 -t '*' </dev/null \
        >"$BATS_TEST_TMPDIR/seen"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/seen")" -eq 122 ]
    [ "$(grep -c "$(printf '\033')" "$BATS_TEST_TMPDIR/seen" || true)" -eq 0 ]
}

@test 'on a narrow terminal texts are truncated, the last column first, but never ids and states' {
    words=$(printf 'a\xc3\xa9\xe8\xa8\x82%.0s' $(seq 10))
    dq -q add "a.tag.of.some.length" --key "$words"
    dq -q add t
    sql "UPDATE dq_task SET status = 2, live = NULL, execution_time = UTC_TIMESTAMP(3), finish_time = UTC_TIMESTAMP(3),
         error_stack = CONCAT('$words', 'the end') WHERE task_key IS NOT NULL"
    on()
    {
        local columns=${2:-id,tag,key,status,error}
        LC_ALL=C.UTF-8 "$DQ_TOP/test/lib/terminal" "$1" "$DQ_BIN/dq" list -t '*' -c "$columns" </dev/null |
            tr -d '\r' >"$BATS_TEST_TMPDIR/seen"
    }
    widest() { awk 'length > n { n = length } END { print n }'; }
    row() { sed 's/\x1b\[[0-9]*m//g' "$BATS_TEST_TMPDIR/seen" | grep failed; }
    id=$(sql 'SELECT id FROM dq_task WHERE status = 2')
    on 200
    [[ $(row) == *'the end' ]]
    on 90
    [[ $(row) == *"$id  a.tag.of.some.length  $words  failed "*'…' ]]
    on 50
    [[ $(row) == *"$id "*'a.tag.of.so'*'…  a'*'…'*'failed '*'…' ]]
    [ "$(dq list -s failed -c id,tag,key,status,error | grep -c 'the end$')" = 1 ]
    on 20 id,tag,status
    [[ $(row) == *"$id  a.tag"*'…  failed' ]]
}

@test 'a full disk on stdout is an error, also if a note follows the table' {
    fill
    lost() { local rc=0; dq "$@" >/dev/full 2>"$BATS_TEST_TMPDIR/err" || rc=$?; [ "$rc" -eq 71 ]; }
    for verb in 'list -n 1' 'events -n 1' 'list --status failed -n 1'; do
        lost $verb
        grep -q '^dq: [a-z]*: cannot write to standard output: No space left on device$' "$BATS_TEST_TMPDIR/err"
    done
}

@test 'a closed pipe ends list without a message' {
    yes '{"tag":"x","body":"y"}' | head -n 20000 | dq -q add --from - >/dev/null
    [ "$(dq list -o ndjson 2>"$BATS_TEST_TMPDIR/err" | head -n 1 | wc -l)" -eq 1 ]
    [ ! -s "$BATS_TEST_TMPDIR/err" ]
}

# added N TAG MINUTES: so many failed tasks, created that long ago, a thousandth of a second apart.
added()
{
    sql "INSERT INTO dq_task (tag, message_body, status, expected_time, finish_time, create_time)
         SELECT '$2', '', 2, t, t, t FROM (SELECT n + INTERVAL seq * 1000 MICROSECOND AS t
         FROM $(numbers "$1"), (SELECT UTC_TIMESTAMP(3) - INTERVAL $3 MINUTE AS n) c) x"
}

@test 'list is sorted by lateness, creation and end, also beyond what a limit sorts' {
    fill
    # moved, added and ended in other orders than they are due
    sql "UPDATE dq_task SET update_time = UTC_TIMESTAMP(3) WHERE tag = 'pending.late';
         UPDATE dq_task SET create_time = UTC_TIMESTAMP(3) - INTERVAL id % 3 HOUR;
         UPDATE dq_task SET finish_time = UTC_TIMESTAMP(3) - INTERVAL id % 4 MINUTE WHERE status IN (1, 2, 4)"
    task pending.later 0 -4
    [ "$(tags --sort late)" = 'pending.later pending.late pending.soon ' ]
    [ "$(tags --sort late -n 1)" = 'pending.later ' ]
    by() { sql "SELECT tag FROM dq_task $1" | tr '\n' ' '; }
    [ "$(tags --sort created -s all)" = "$(by 'ORDER BY create_time DESC, id')" ]
    [ "$(tags --sort created -n 2 -t '*.*')" = \
        "$(by "WHERE tag LIKE '%.%' AND status IN (0, 2, 3) ORDER BY create_time DESC, id LIMIT 2")" ]
    [ "$(tags --sort finished)" = "$(by 'WHERE status IN (1, 2, 4) ORDER BY finish_time DESC, id')" ]
    [ "$(tags --sort finished -n 2 -s done)" = "$(by 'WHERE status = 1 ORDER BY finish_time DESC, id LIMIT 2')" ]
    [ "$(tags --sort finished -s pending)" = 'pending.soon pending.late pending.later ' ]
    added 12000 old 900
    for by in late created finished; do
        dq list -s failed --sort "$by" -n 1 >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err"
        note='tasks were sorted; a narrower filter or -n 0 sorts all'
        [ "$by" != created ] || note='the newest 10000 tasks of all tags were looked at; -n 0 looks at all'
        grep -qE "^only (10000 )?$note\$" "$BATS_TEST_TMPDIR/err"
        [ "$(dq list -s failed --sort "$by" -n 0 2>&1 | grep -cE '^(only| *[0-9])')" -eq 12001 ]
    done
}

@test '--sort created lists rows of before 1970 too, as the oldest' {
    added 2 old 900
    id=$(sql 'SELECT MIN(id) FROM dq_task')
    sql "UPDATE dq_task SET create_time = '1969-12-31 00:00:00' WHERE id = $id"
    [ "$(dq list -s all --sort created -n 5 -o id | tail -n 1)" = "$id" ]
}

@test '--since misses no task whose id is below that of an older task' {
    unordered='an import or a wrong clock broke the order of ids: --since had to read all tasks'
    counts()
    {
        dq list --since 2h -o tsv -c tag --no-header "$@" 2>"$BATS_TEST_TMPDIR/err" | sort | uniq -c | tr -s ' \n' ' '
    }
    added 32700 old 900 # ids are reserved in powers of 2: this leaves no gap
    added 30 new 90
    [ "$(counts)" = ' 30 new ' ]
    refute grep -F "$unordered" "$BATS_TEST_TMPDIR/err"
    # an import, which the bisection meets, and whose tasks are too many for those below to be seen
    dq export -t old 2>/dev/null | dq -q import -
    added 3000 last 0
    [ "$(counts)" = ' 3000 last 30 new ' ]
    [[ $(cat "$BATS_TEST_TMPDIR/err") == *"$unordered"* ]]
    # with a limit the work is bounded, and the answer marked
    counts -n 20
    grep -q '^only 10000 tasks were searched, there may be more' "$BATS_TEST_TMPDIR/err"
    refute grep -F "$unordered" "$BATS_TEST_TMPDIR/err"
    dq retry -t new --since 2h --dry-run >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err"
    [ "$(head -n 1 "$BATS_TEST_TMPDIR/out")" = '30 tasks would be retried' ]
    grep -qF "$unordered" "$BATS_TEST_TMPDIR/err"
    dq export -t new --since 2h 2>"$BATS_TEST_TMPDIR/err" >"$BATS_TEST_TMPDIR/out"
    [ "$(grep -c '^{"id":' "$BATS_TEST_TMPDIR/out")" -eq 30 ]
    grep -qF "$unordered" "$BATS_TEST_TMPDIR/err"
    # after it, the order is as it was
    sql "UPDATE dq_event SET event_time = event_time - INTERVAL 5 HOUR"
    sql "DELETE FROM dq_task WHERE tag = 'new'"
    [ "$(counts)" = ' 3000 last ' ]
    refute grep -F "$unordered" "$BATS_TEST_TMPDIR/err"
    # no import; few tasks of a program whose clock is right, among many of one whose clock is not
    sql 'DELETE FROM dq_task'
    added 6000 old 900
    for tag in new newer; do
        added 1000 wrong 300
        added 1 $tag 1
        added 1000 wrong 300
    done
    [ "$(counts)" = ' 1 new 1 newer ' ]
    grep -qF "$unordered" "$BATS_TEST_TMPDIR/err"
    # so many that those nearby show nothing
    sql 'DELETE FROM dq_task'
    added 10 old 900
    added 8000 more 1
    added 24000 wrong 300
    [ "$(counts)" = ' 8000 more ' ]
    grep -qF "$unordered" "$BATS_TEST_TMPDIR/err"
}

@test '--since sees a single task below older ones, also if all ids are high' {
    sql 'ALTER TABLE dq_task AUTO_INCREMENT = 12000'
    added 900 old 900
    sql "UPDATE dq_task SET tag = 'new', create_time = UTC_TIMESTAMP(3) WHERE id = 12100"
    [ "$(dq list --since 2h -o tsv -c id,tag --no-header 2>/dev/null)" = $'12100\tnew' ]
}

@test '--waiting lists what is due and has not started, with the reason, in every format' {
    fake_dqd mail slow late
    dq -q limit slow --hours "$(date -u -d '+2 hours' +%H:00)-$(date -u -d '+3 hours' +%H:00) UTC"
    dq -q pause 'mai*' --reason moving
    for tag in mail slow late none; do task $tag 0 -5; done
    task mail 0 5
    task slow 3 -5
    [ "$(dq list --waiting -o tsv --no-header -c tag,waits | sed 's/closed until .*/closed/')" = \
        $'mail\tpaused until resumed: moving\nslow\tclosed\nlate\t\nnone\tno dqd serves it' ] ||
        { dq list --waiting && false; }
    [[ $(dq list --waiting) == *WAITS*'paused until resumed: moving'*'closed until '* ]]
    [[ $(dq list --waiting -t none -o ndjson) == *'"waits":"no dqd serves it"'* ]]
    [[ $(dq list -t none -o ndjson) != *waits* ]]
    try dq list --waiting -s done
    [ "$rc" -eq 64 ]
    [[ $err == *'--waiting lists pending tasks'* ]]
}
