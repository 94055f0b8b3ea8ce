#!/usr/bin/env bats
# dq schedule: as people set, read, pause and keep schedules in files. For dqd see test/daemon/schedule.bats.

bats_require_minimum_version 1.5.0
load ../lib/sandbox

setup()
{
    sandbox_clear
    sql 'DELETE FROM dq_schedule; DELETE FROM dq_slot'
    cd "$BATS_TEST_TMPDIR"
}

set_() { dq -q schedule set "$@"; }
stored() { sql "SELECT COUNT(*) FROM dq_schedule"; }
export_() { dq schedule export "$@"; }
of() { dq -o json schedule show "$1" | jq -r ".$2"; }

# refused STATUS TEXT ARGUMENT...: of dq schedule; nothing is written.
refused()
{
    local expected=$1 text=$2
    shift 2
    run -"$expected" --separate-stderr dq schedule "$@"
    [[ $stderr == *"$text"* ]] || { echo "$stderr"; return 1; }
    [ "$(wc -l <<<"$stderr")" = 1 ]
    [ "$(stored)" = 0 ]
}

@test 'set says what it has made, when it runs next, and what has changed' {
    run --separate-stderr dq schedule set report build '{"a": 1}' --cron '30 2 * * 1-5' --zone Europe/Berlin
    [[ $stderr == 'report is new; at 02:30 on Mondays to Fridays (Europe/Berlin); next: '* ]]
    run --separate-stderr dq schedule set report build '{"a": 1}' --cron '30 2 * * 1-5' --zone Europe/Berlin
    [[ $stderr == 'report is unchanged; '* ]]
    run --separate-stderr dq schedule set report build --every 10m --overlap one
    [[ $stderr == 'report is changed: body, kind, expression, zone, overlap; every 10m, '* ]]
    [ "$(of report overlap)" = one ]
    [ "$(of report body)" = '' ]
    [ "$(stored)" = 1 ]
    run -65 --separate-stderr dq schedule set report build --every 10m --new
    [[ $stderr == *'schedule report'*'exists already'* ]]
}

@test 'a cron expression without a zone has that of the host' {
    TZ=Asia/Tokyo set_ a t --cron @daily
    [ "$(of a zone)" = Asia/Tokyo ]
    TZ=UTC0 set_ b t --cron @daily
    [ "$(of b zone)" = UTC ]
    TZ=CET-1CEST run -64 --separate-stderr dq schedule set d t --cron @daily
    [[ $stderr == *'has no name; give --zone'* ]]
    set_ c t --every 1h
    [ "$(of c zone)" = UTC ]
}

@test 'bad input is one clear line, and nothing is written' {
    refused 64 'a schedule needs --cron, --every or --gap' set a t
    refused 64 'cron and --every cannot be combined' set a t --cron @daily --every 1h
    refused 64 'zone and --every cannot be combined' set a t --every 1h --zone UTC
    refused 65 'did you mean Europe/Berlin' set a t --cron @daily --zone Europe/Berln
    refused 65 'this never comes' set a t --cron '30 2 31 2 *'
    refused 65 'minute 61 is out of range' set a t --cron '61 * * * *'
    refused 65 'use --every 30s' set a t --cron '* * * * * *'
    refused 65 'leave this to its crontab' set a t --cron @reboot
    refused 65 'at least 1s' set a t --every 0.1s
    refused 64 'at most a year' set a t --every 1m --within 800d
    refused 64 'skip cannot be combined' set a t --every 1m --within 1h --catch-up skip
    refused 65 'has an @' set a@b t --every 1m
    refused 65 '65535 at most' set a t - --every 1m < <(head -c 65536 /dev/zero)
    refused 64 'did you mean "schedule set"' sett a t --every 1m
    refused 64 'did you mean --cron' set a t --crn @daily
    refused 1 'schedule a does not exist' show a
    refused 1 'schedule a does not exist' next a
    refused 65 'at least 1s' set a t --gap 500ms
    refused 64 'at most half of the time between slots' set a t --every 1h --spread 31m
    refused 64 'at most half of the time between slots' set a t --cron '0 9,17 * * *' --spread 241m
    refused 64 'at most half of the time between slots' set a t --cron '0,50 23,0 1,2 * *' --spread 6m --zone UTC
}

@test 'list shows schedules by name and tag; the name alone lists, too' {
    for name in b.two a.one b.three; do set_ $name "t.$name" --every 1h; done
    [ "$(dq schedule list -o id)" = $'a.one\nb.three\nb.two' ]
    [ "$(dq schedule -o id)" = $'a.one\nb.three\nb.two' ]
    [ "$(dq schedule list 'b.*' -o id)" = $'b.three\nb.two' ]
    [ "$(dq schedule list --tag '*one' -o id)" = a.one ]
    [ "$(dq schedule list -n 1 --tag 't.b*' -o id)" = b.three ]
    [ "$(dq -o json schedule | jq -r '.[0] | [.name, .tag, .kind, .expression, .state, .result] | @tsv')" = \
        $'a.one\tt.a.one\tevery\t1h\twaiting\t' ]
    [ "$(dq schedule -o json list 'a*' | jq -r '.[0].name')" = a.one ]
    [ "$(dq schedule -o id -n 1)" = a.one ]
    run --separate-stderr dq schedule list nosuch
    [[ $stderr == *'there are no schedules'* || $stderr == *'no schedule matches'* ]]
}

@test 'next shows the slots that come, and both changes of the clock' {
    set_ a t --cron '30 2 * * *' --zone Europe/Berlin
    next() { TZ=UTC dq -o json schedule next a "$@" | jq -r '.[] | [.slot, .note] | @tsv'; }
    [ "$(next -n 2 --since 2026-03-28T12:00:00Z)" = \
        "2026-03-29T01:00:00.000Z"$'\t'"the clock skips its time: it runs right afterwards
2026-03-30T00:30:00.000Z"$'\t' ]
    [ "$(next -n 1 --since 2026-10-24T12:00:00Z)" = \
        "2026-10-25T00:30:00.000Z"$'\t'"the clock shows its time twice: it runs the first time" ]
    [ "$(next | wc -l)" = 10 ]
    [ "$(next -n 10000 | wc -l)" = 10000 ]
    run -64 --separate-stderr dq schedule next a -n 10001
    [ "$stderr" = 'dq: schedule next: -n: at most 10000 slots are shown; --since shows later ones' ]
    run --separate-stderr dq schedule set b t --cron '30 2 * * *' --zone Europe/Berlin --from 2037-03-28T12:00:00Z
    [[ $stderr == *'next: 2037-03-29T01:00:00.000Z (the clock skips its time: it runs right afterwards)'* ]]
    set_ a t --cron '0 9,17 * * *' --spread 240m
    set_ a t --cron '0 9 * * *' --spread 12h --zone America/New_York # which had summer time in 1970
    set_ a t --every 1h --spread 30m
    [ "$(dq -o json schedule next a | jq '[.[] | (.due[14:16] | tonumber)] | unique | length')" = 1 ]
    [ "$(dq -o json schedule next a -n 1 | jq '.[0].due >= .[0].slot')" = true ]
}

@test 'pause and resume; each schedule by itself' {
    set_ a t --every 1h
    set_ b t --every 1h
    run -1 --separate-stderr dq schedule pause a nosuch b --reason 'the shop moves'
    [[ $stderr == *'schedule nosuch does not exist'* && $stderr == *'To resume: dq schedule resume b' ]]
    [ "$(of a state) $(of b state)" = 'paused paused' ]
    [ "$(of a pause_reason)" = 'the shop moves' ]
    [ "$(of a paused_by)" != null ]
    run --separate-stderr dq schedule pause a
    [[ $stderr == 'a was paused already' ]]
    dq -q schedule resume a
    [ "$(of a state)" = waiting ]
    [ "$(dq events -o json | jq -r '.[-1] | [.event, .detail] | @tsv')" = $'schedule resume\ta' ]
    run -1 dq schedule delete b nosuch
    [ "$(dq schedule -o id)" = a ]
}

@test 'run-now runs a schedule besides its slots, backfill its past ones' {
    write_handlers <<<'handlers: {t: {run: "echo $DQ_SCHEDULE $DQ_SLOT"}}'
    set_ a t --every 1h
    next=$(of a next)
    id=$(dq -q schedule run-now a)
    [ "$(dq -o json show "$id" | jq -r '.tag')" = t ]
    run -1 --separate-stderr dq schedule run-now a
    [[ $stderr == *"its last run, task $id, is pending" ]]
    dqd --once
    [ "$(of a next) $(of a result)" = "$next done" ]
    [[ $(dq logs "$id") == 'a 2'* ]]
    run -64 --separate-stderr dq schedule backfill a
    [[ $stderr == *'Give --from'* ]]
    run -64 --separate-stderr dq schedule backfill a --from 1970-01-02
    [[ $stderr == *'more than 10000 slots'* ]]
    run -64 --separate-stderr dq schedule backfill a --from 2026-01-01 --to 2099-01-01
    [[ $stderr == *'in the future'* ]]
    dq -q schedule backfill a --from 2026-01-01T00:00:00Z --to 2026-01-01T02:00:00Z
    dqd --once
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 1 AND output LIKE "a 2026-01-01T0_:00:00Z%"')" = 3 ]
    run -1 --separate-stderr dq schedule backfill a --from 2099-01-01
    # what no dqd has decided yet is left to it
    sql 'UPDATE dq_schedule SET next_slot = "2026-01-01 01:00:00"'
    run -1 --separate-stderr dq schedule backfill a --from 2026-01-01T00:00:00Z --to 2026-01-01T02:00:00Z
    [[ $stderr == *'has not decided its last slots yet' ]]
    dq -q schedule backfill a --from 2026-01-01T00:00:00Z
    [ "$(count status=0)" = 1 ]
    run -1 dq schedule run-now nosuch
}

# Every kind of body and option.
@test 'what export prints, apply makes again' {
    set_ plain t 'a word' --cron '*/5 8-18 * * 1-5' --zone Europe/Berlin --from 2026-01-01T00:00:00Z --to 2099-01-01
    set_ lines t $'two\n'"lines, it's \"quoted\" \\ \$x" --every 90s --catch-up all --within 2d --overlap replace
    printf 'a\0\377' | set_ bytes t - --gap 5m --expires 1h --alarm-after 2h --spread 10s
    set_ at t --body-json '{"body": "@x"}' --every 1d
    set_ dash t --body-json '{"body": "-"}' --every 1d
    set_ 'ümlaut' 't.ü' '' --cron @hourly --zone UTC
    export_ >before
    [ "$(wc -l <before)" = 6 ]
    [ "$(sql 'SELECT HEX(message_body) FROM dq_schedule WHERE name = "bytes"')" = 6100FF ]
    all() { sql 'SELECT name, tag, HEX(message_body), kind, expression, zone, from_time, to_time, spread, catch_up,
        catch_up_within, overlap, expires, alarm_after FROM dq_schedule ORDER BY name'; }
    all >kept
    [ -z "$(dq -q -o tsv schedule apply before | tail -n +2)" ]
    sql 'DELETE FROM dq_schedule'
    dq -q schedule apply before >made
    [ "$(grep -c new made)" = 6 ]
    all | diff kept -
    dq -q schedule pause plain
    export_ 2>note | diff before -
    [ "$(<note)" = 'paused schedules: 1; the lines do not say so' ]
}

@test 'a time that counts from now is that of the database' {
    set_ a t --every 1h --from tomorrow --to '+9d'
    [ "$(of a from)" != null ]
    [ "$(of a to)" != null ]
}

@test 'what export and show print does not act on a terminal' {
    set_ a t $'x\e[31m\302\233y' --every 1h
    export_ >line
    refute grep -q $'\e' line
    sql 'DELETE FROM dq_schedule'
    dq -q schedule apply line >/dev/null
    [ "$(sql 'SELECT HEX(message_body) FROM dq_schedule')" = 781B5B33316DC29B79 ]
    sql "UPDATE dq_schedule SET expression = CONCAT('1', CHAR(27), '[31m')"
    dq schedule show a >shown
    refute grep -q $'\e' shown
}

@test 'apply shows the difference, deletes only what the same owner applied, and is all or nothing' {
    printf '%s\n' '# of the shop' 'a t --every 1m' '' 'b t "x y" --every 2m' >file
    set_ other t --every 1m
    dq -q -o tsv schedule apply file --owner shop --dry-run | tail -n +2 | cut -f1,2 |
        diff - <(printf 'a\tnew\nb\tnew\n')
    [ "$(stored)" = 1 ]
    dq -q schedule apply file --owner shop >/dev/null
    [ "$(of b body)" = 'x y' ]
    [ "$(of b owner)" = shop ]
    set_ b t 'x y' --every 3m
    [ "$(of b owner)" = shop ]
    printf '%s\n' 'c u --every 1m' 'b t "x y" --every 2m' >file
    dq -q -o tsv schedule apply file --owner shop --prune | tail -n +2 | diff - \
        <(printf 'c\tnew\t\nb\tchanged\texpression\na\tdeleted\t\n')
    [ "$(dq schedule -o id)" = $'b\nc\nother' ]
    run -64 dq schedule apply file --prune
    run -65 --separate-stderr dq schedule apply /dev/null --owner shop --prune
    [[ $stderr == *'would delete all of shop' ]]
    dq -q schedule apply file >/dev/null
    [ "$(of b owner)" = shop ]
    for bad in 'd t --every 0s' 'd t' 'd' 'd t --every 1m $x' 'c t --every 1m' 'd t --nosuch' \
        'd t --every 1m --new' 'd t --help'; do
        { cat file; echo "$bad"; } >worse
        sed -i 's/2m/9m/' worse
        run --separate-stderr dq schedule apply worse --owner shop
        [ "$status" -ge 64 ]
        [[ $stderr == *'worse:3: '* ]] || { echo "$stderr"; false; }
        [ "$(of b expression)" = 2m ]
    done
    dq -q schedule apply - --owner shop <file >/dev/null
    [ "$(dq events -o json | jq -r '.[-1].event')" = 'schedule apply' ]
}

@test 'of two that apply files of one owner at once, the last one decides about all' {
    for i in {1..5}; do echo "a$i t --every 1h"; done >a
    for i in {1..5}; do echo "b$i t --every 1h"; done >b
    apply() { dq -q schedule apply "$1" --owner x --prune >"$1.out"; }
    for _ in {1..8}; do
        sql 'DELETE FROM dq_schedule'
        apply a & a=$!
        apply b & b=$!
        wait "$a"
        wait "$b"
        export_ | sed 's/ --zone.*//' >both
        cmp both a || cmp both b
    done
}

@test 'check --schedules is critical for a run that failed or did not happen, and for a tag that nobody serves' {
    fake_dqd t
    set_ a t --every 1m
    dq check --schedules '*'
    sql 'UPDATE dq_schedule SET create_time = UTC_TIMESTAMP() - INTERVAL 1 HOUR, update_time = create_time'
    run -2 dq check --schedules 'a*'
    [[ $output == *'a has not succeeded since its slot of '* ]]
    dq check
    dq -q schedule pause a
    dq check --schedules '*'
    dq -q schedule resume a
    dq check --schedules '*'
    sql 'INSERT INTO dq_slot (name, slot, decision, decide_time, result, error) VALUES
        ("a", "2026-11-23 07:00:00", 0, UTC_TIMESTAMP(), 2, "exit status 3");
        UPDATE dq_schedule SET last_slot = "2026-11-23 07:00:00"'
    run -2 dq check --schedules '*'
    [[ $output == *'the last run of a failed: exit status 3'* ]]
    sql 'UPDATE dq_slot SET result = 1'
    dq check --schedules '*'
    set_ b nobody --every 1m
    run -2 dq check --schedules b
    [[ $output == *'no dqd serves nobody, the tag of schedule b'* ]]
    run -3 dq check --schedules nosuch
    [[ $output == *'no schedule matches nosuch'* ]]
}

@test 'a run that failed and is retried counts as a success once it is done' {
    write_handlers <<<'handlers: {t: {run: "test -e fine", cwd: '"$PWD"', retry: never}}'
    fake_dqd t
    set_ a t --every 1h
    sql 'UPDATE dq_schedule SET create_time = UTC_TIMESTAMP() - INTERVAL 9 HOUR, update_time = create_time,
        next_slot = UTC_TIMESTAMP() - INTERVAL 10 SECOND'
    dqd --once
    run -2 dq check --schedules a
    [[ $output == *'the last run of a failed'* ]]
    known='result IS NOT NULL AND is_open IS NULL'
    ended() { dqd --once; [ "$(sql "SELECT result FROM dq_slot WHERE $known")" = "$1" ]; }
    wait_until ended 2
    touch fine
    dq -q retry --status failed -y
    wait_until ended 1
    dq check --schedules a
}

@test 'every act on a schedule is an event, with who' {
    fake_dqd t
    sql 'DELETE FROM dq_event'
    acted() # COMMAND ARGUMENT...: the event names the login and the schedule, or the file
    {
        dq -q schedule "$@" >/dev/null
        [ "$(dq events -o json --event "schedule $1" | jq -r '.[-1] | [.who, .event, .detail] | @tsv' |
            sed 's/ -.*//')" = "$(id -un)@$(hostname)"$'\t'"schedule $1"$'\t'"$2" ] ||
            { dq events; return 1; }
    }
    acted set a t --every 1h
    acted pause a
    acted resume a
    acted run-now a
    acted backfill a --from "$(date -u -d '-3 hours' +%FT%TZ)" --to "$(date -u -d '-1 hour' +%FT%TZ)"
    echo 'b t --every 1h' >file
    acted apply file
    echo '7 7 * * * true' >tab
    acted import-crontab tab
    acted delete a
}

@test 'a name in a command that is shown is one word of the shell' {
    name='s;touch${IFS}pwned;'
    set_ "$name" t --every 1h
    remedies() { dq why "$name" | sed '1,/^what helps$/d'; }
    [ "$(remedies)" = "  dq schedule run-now '$name'" ]
    fake_dqd other
    remedies | grep -Fx "  dq schedule show '$name'"
    dq schedule pause "$name" 2>&1 | grep -F "To resume: dq schedule resume '$name'"
    [ "$(remedies)" = "  dq schedule resume '$name'" ]
}

@test 'why explains a schedule' {
    set_ a t --every 1h
    dq why a | sed -n 's/ at .*//; s/ slot is .*/ slot is/; p' >out
    printf '%s\n' 'schedule a, t, every 1h, counted from 1970-01-01T00:00:00+00:00' 'it waits because' \
        '  no dqd is alive' '  its next slot is' 'what helps' '  dq schedule run-now a' | diff - out
    fake_dqd other
    dq -q schedule pause a --reason 'too much'
    [ "$(dq why a -o json | jq -c '[.schedule, .tag, [.causes[].cause], .remedies]')" = \
        '["a","t",["paused","not_due"],["dq schedule resume a"]]' ]
    [[ $(dq why a) == *': too much'* ]]
    dq -q schedule resume a
    [[ $(dq why a) == *'no dqd serves t, the tag of schedule a'* ]]
    id=$(dq -q schedule run-now a)
    dq why a | grep -Fx "  its last run, task $id, is pending"
    dq why a | grep -Fx "  dq why $id"
    sql 'UPDATE dq_schedule SET next_slot = NULL'
    [[ $(dq why a) == *'it has no more slots'* ]]
    run -1 dq why nosuch
    [ "$output" = 'dq: why: schedule nosuch does not exist; dq schedule lists them' ]
}

@test 'metrics, doctor and top know schedules' {
    fake_dqd t
    dq stats -o prometheus | grep -Fx 'dq_schedules 0'
    for i in {100..202}; do echo "s$i t --every 1h"; done >file
    dq -q schedule apply file
    set_ zz t --every 1h
    sql 'INSERT INTO dq_slot (name, slot, decision, decide_time, start_time, result, error) VALUES
             ("zz", "2026-11-23 07:00:00", 0, UTC_TIMESTAMP(), "2026-11-23 07:00:02.500", 2, "exit status 3");
         INSERT INTO dq_slot (name, slot, slots, decision, decide_time) VALUES
             ("zz", UTC_TIMESTAMP(), 7, 3, UTC_TIMESTAMP());
         UPDATE dq_schedule SET last_slot = "2026-11-23 07:00:00", next_slot = "2099-01-01" WHERE name = "zz"'
    dq stats -o prometheus | grep sched >out
    promtool check metrics <out
    printf '%s\n' 'dq_schedules 104' 'dq_schedules_alarmed 1' 'dq_schedule_alarm{schedule="zz"} 1' \
        'dq_schedule_alarm{schedule="s101"} 0' 'dq_schedule_next_timestamp_seconds{schedule="zz"} 4070908800.000' \
        'dq_schedule_late_seconds{schedule="zz"} 2.500' 'dq_schedule_missed{schedule="zz"} 7' >want
    [ "$(grep -cFxf want out)" -eq 7 ]
    [ "$(grep -c '^dq_schedule_missed' out)" -eq 100 ]
    run -1 --separate-stderr dq doctor -o json
    jq -r '.[] | select(.check == "schedules") | .text' <<<"$output" >out
    [ "$(cat out)" = 'the last run of zz failed: exit status 3' ]
    sql 'DELETE FROM dq_slot; UPDATE dq_poller SET tzdata = "1999a"'
    run -1 --separate-stderr dq doctor -o json
    [[ $(jq -r '.[] | select(.check == "schedules") | .text' <<<"$output") == \
        'vm has the time zones of 1999a, another host those of '*': update tzdata there' ]]
    sql 'DELETE FROM dq_schedule WHERE name <> "zz";
         UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR'
    printf '%s\n' 'wait next zz in 59m' 'key q' | TERM=xterm "$DQ_TOP/test/lib/terminal" 160x24 "$DQ_BIN/dq" top >out
}

@test 'a forecast has the slots to come, but not those of pauses' {
    fake_dqd t u
    set_ a t --every 10m
    set_ b t --cron '*/2 * * * *' --zone UTC
    set_ c u --every 1h
    set_ d t --gap 1m
    set_ e t --every 1s
    set_ p t --every 1m
    dq -q schedule pause p e
    of() { dq forecast --for 10h "$@" -o json | jq -c '.[3:9] | [.[].tasks] | unique'; }
    [ "$(of)" = '[37]' ]
    [ "$(of -t t)" = '[36]' ]
    [ "$(dq forecast --for 1h -t u -o json | jq '[.[].tasks] | add')" = 1 ]
    # more slots than are looked at
    dq -q schedule resume e
    [ "$(dq forecast --for 99h -t t -o json | jq -c '[.[3,90] | .tasks, .sampled]')" = '[3636,false,3636,true]' ]
}

@test 'import-crontab makes schedules and handlers of a crontab, and reports each line' {
    cat >tab <<'END'
SHELL=/bin/bash
MAILTO=ops@example.com
A="x y"

# a comment
*/5 * * * * root cd /tmp && echo "hi $A"
@daily root logrotate /etc/logrotate.conf
RANDOM_DELAY=7
30 2 * * 1 www-data backup --all%line one%line two
@reboot root true
61 * * * * root true
END
    run -1 --separate-stderr dq schedule import-crontab tab --system
    [[ $stderr == 'tab:6: changed as echo'*$'\ntab:7: left, as its own: '*$'\ntab:9: changed as backup'* ]]
    [[ $stderr == *'tab:10: refused: cron "@reboot"'*'tab:11: refused: '*'minute 61'* ]]
    [ "$(dq schedule -o id)" = $'backup\necho' ]
    [ "$(of backup tag) $(of backup expression)" = 'cron.backup 30 2 * * 1' ]
    [ "$(of backup catch_up) $(of backup overlap)" = 'skip allow' ]
    [ "$(of backup spread)" = 420000 ]
    [ "$(of backup body)" = $'line one\nline two' ]
    grep -v '^#' <<<"$output" >"$DQ_SANDBOX/handlers.yaml"
    fragment=$output
    run dqd --list-handlers
    [ "$status" = 0 ]
    [[ $output == *cron.backup*'backup --all'* ]]
    [[ $output == *cron.echo*'cd /tmp && echo "hi $A"'* ]]
    id=$(dq -q add cron.echo)
    dqd --once
    [ "$(dq logs "$id")" = 'hi x y' ]
    grep -qx '    cwd: "/root"' <<<"$fragment"
    grep -q '"SHELL": "/bin/bash"' <<<"$fragment"
    # a job begins in HOME
    printf 'HOME=/tmp\n0 1 * * * ls\nHOME=/var/tmp\n0 2 * * * ls\n' >homes
    dq -q schedule import-crontab homes --dry-run >out
    [ "$(sed -n 's/^    cwd: //p; s/.*"HOME": "\([^"]*\)".*/\1/p' out)" = $'/tmp\n"/tmp"\n/var/tmp\n"/var/tmp"' ]
    # the same again changes nothing; what differs from a schedule is refused
    run -1 --separate-stderr dq schedule import-crontab tab --system
    [[ $stderr != *'that differs'* ]]
    sed 's/30 2/31 2/' tab >other
    run -1 --separate-stderr dq schedule import-crontab other --system
    [[ $stderr == *'other:9: refused: there is a schedule backup that differs'* ]]
    [ "$(of backup expression)" = '30 2 * * 1' ]
    dq -q schedule import-crontab tab --system --own >/dev/null || [ $? = 1 ]
    [ "$(stored)" = 3 ]
    dq -q schedule delete logrotate
    printf '@daily echo \351\n* * * * * echo cut' >odd
    run -1 --separate-stderr dq schedule import-crontab odd --dry-run
    [[ $stderr == *'odd:1: refused: it is not UTF-8'*'odd:2: because of this line, '*'ignores the whole file'* ]]
    dq -q schedule delete backup echo
    # text that YAML does not take: U+FFFE, and U+E0041, which is escaped as two surrogates
    printf '0 0 * * * echo \357\277\276\n0 1 * * * echo \363\240\201\201\n0 2 * * * date\n' >odd
    run -1 --separate-stderr dq schedule import-crontab odd --dry-run
    [[ $stderr == *'odd:1: refused: its handler:'*'odd:2: refused: its handler:'*'odd:3: taken as date'* ]]
    [ "$(grep '^  ' <<<"$output" | grep -c 'run:')" = 1 ]
    run -1 --separate-stderr dq schedule import-crontab tab --system --dry-run
    [ "$(grep -c '^# dq schedule set ' <<<"$output")" = 2 ]
    [ "$(stored)" = 0 ]
    run --separate-stderr dq schedule import-crontab tab nosuch --system
    [ "$status" -ge 64 ]
    [ "$(stored)" = 0 ]
}
