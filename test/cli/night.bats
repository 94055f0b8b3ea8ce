# What an operator does at 3 a.m., by dq(1) and doc/operating alone: the recipes of TROUBLESHOOTING and the questions,
# on a sandbox in which much is wrong (test/lib/night). A test runs the lines as they are printed there.

load ../lib/sandbox

setup_file()
{
    sandbox_start
    "$DQ_TOP/test/lib/night" start >"$BATS_FILE_TMPDIR/shell"
    eval "$(cat "$BATS_FILE_TMPDIR/shell")"
    mkdir "$BATS_FILE_TMPDIR/bin"
    ln -s "$DQ_BIN/dq" "$BATS_FILE_TMPDIR/bin/dq"
    wait_until is_broken
}

teardown_file()
{
    "$DQ_TOP/test/lib/night" stop
    sandbox_destroy
}

setup()
{
    out=$BATS_TEST_TMPDIR/out
    web1=$(cat "$DQ_SANDBOX/night/web1.host") web2=$(cat "$DQ_SANDBOX/night/web2.host")
}

# Both dqds have said what they serve, what can run does, and the rest waits.
is_broken()
{
    [ "$(sql 'SELECT (SELECT COUNT(*) FROM dq_poller JOIN dq_handler USING (handlers)) = 9,
        (SELECT COUNT(*) FROM dq_rest), (SELECT COUNT(*) FROM dq_task WHERE status = 3),
        (SELECT SUM(running) FROM dq_poller)')" = $'1\t1\t3\t3' ]
}

# Without its bold headings.
manual() { mandoc -T ascii "$DQ_TOP/doc/dq.1" | sed 's/.\x08//g'; }
recipes()
{
    manual | sed -n '/^TROUBLESHOOTING/,/^SEE ALSO/s/^ *\$ //p'
    sed -n 's/^        \(dq .*\)/\1/p' "$DQ_TOP/doc/operating"
}
in_manual()
{
    echo "$1" >>"$BATS_FILE_TMPDIR/used"
    recipes | grep -qxF -- "$1" || { echo "neither in dq(1) nor in doc/operating: $1"; return 1; }
}

# recipe LINE [ID]: is in the manual; runs it, for this task. What it prints is in $out.
recipe()
{
    local rc=0
    in_manual "$1" || return
    PATH=$BATS_FILE_TMPDIR/bin:$PATH bash -o pipefail -c "${1/%ID/${2:-ID}}" </dev/null >"$out" 2>&1 3>&- || rc=$?
    cat "$out"
    return "$rc"
}
# column NAME: of the table in $out, sorted; no column before it has blanks.
column()
{
    awk -v name="$1" 'NR == 1 { for (i = 1; $i != name; i++); next } { print $i }' "$out" | sort
}
# same NAME SQL: the column has what the statement returns.
same() { diff <(column "$1") <(sql "$2" | sort); }

# at_terminal COLUMNS LINE <SCRIPT
at_terminal()
{
    in_manual "$2" || return
    PATH=$BATS_FILE_TMPDIR/bin:$PATH "$DQ_TOP/test/lib/terminal" "$1" bash -c "$2" >"$out"
}

says() { grep -qE -- "$1" "$out"; }
rests()
{
    dq why --tag missing.prog >"$out"
    says "cannot be started on $web1: rests for .* exec /opt/reports/bin/render: No such file or directory\$"
}

@test 'the questions of doc/operating about tasks: the answers are those of the table' {
    # a task whose handler cannot be started is claimed for a moment, whenever the rest of its tag ends
    running() { recipe 'dq list --status running --columns id,tag,host,started,took'; }
    wait_until eval "running && same ID 'SELECT id FROM dq_task WHERE status = 3' &&
        same HOST 'SELECT host FROM dq_task WHERE status = 3'"
    recipe 'dq list --status pending --due-before now --limit 1 --columns id,tag,late'
    same ID 'SELECT id FROM dq_task WHERE status = 0 ORDER BY expected_time, id LIMIT 1'
    waiting() { recipe 'dq list --waiting'; }
    wait_until eval "waiting && says ' missing.prog ' &&
        same ID 'SELECT id FROM dq_task WHERE status = 0 AND expected_time <= UTC_TIMESTAMP(3)'"
    says ' missing.prog .* rests: .*/opt/reports/bin/render'
    says ' invoice.sent .* no dqd serves it$'
    failed='SELECT id FROM dq_task WHERE status = 2 AND finish_time > UTC_TIMESTAMP(3) - INTERVAL 2 HOUR'
    recipe 'dq list --status failed --finished-since 2h'
    same ID "$failed"
    recipe 'dq list --status failed --finished-since 2h --host web1'
    same ID "$failed AND host = 'web1'"
    recipe "dq list --status failed --finished-since 2h --error '*is closed*'"
    same ID "$failed AND error_stack LIKE '%is closed%'"
    [ "$(wc -l <"$out")" -gt 1 ]
    recipe 'dq list --since 10m'
    same ID 'SELECT id FROM dq_task WHERE create_time > UTC_TIMESTAMP(3) - INTERVAL 10 MINUTE'
    run recipe 'dq check --max-running 10m'
    echo "$output"
    [[ $output == CRITICAL:* && $output != *'has run for'* ]]
    run dq check --max-running 1ms # the same question, when the answer is yes
    [[ $output == *"task $(sql 'SELECT MIN(id) FROM dq_task WHERE status = 3') "*'has run for'* ]]
}

@test 'the questions of doc/operating about one task' {
    id=$(sql "SELECT MIN(id) FROM dq_task WHERE tag = 'slow.export' AND status = 0")
    recipe 'dq why ID' "$id"
    says "^  all 2 places of the tag on $web1 are taken"
    recipe 'dq show ID' "$id"
    says '^tag +slow.export$'
    says "^expected +$(date -d "$(sql "SELECT expected_time FROM dq_task WHERE id = $id")Z" '+%F %T')"
    recipe 'dq events ID' "$id"
    says "^$(date -d "$(sql "SELECT create_time FROM dq_task WHERE id = $id")Z" '+%F %T') +- +added +slow.export "
    id=$(dq -q add newsletter --key order-17 --in 2h)
    recipe 'dq show --tag newsletter --key order-17'
    says "^id +$id\$"
    id=$(sql "SELECT id FROM dq_task WHERE tag = 'import.catalog'")
    has_written() { recipe 'dq logs ID' "$id" && says ' of 5,000 products$'; }
    wait_until has_written
}

@test 'the questions of doc/operating about the whole' {
    run recipe 'dq doctor'
    echo "$output"
    [[ $output == *'BAD  tags '*': invoice.sent;'* ]]
    recipe 'dq pollers'
    same PID 'SELECT pid FROM dq_poller'
    recipe 'dq pollers -v'
    same HANDLER "SELECT pattern FROM dq_poller JOIN dq_handler USING (handlers)"
    says ' missing.prog +[0-9]+ .* missing.prog '
    recipe 'dq events --acts --since midnight'
    says "^[0-9: -]+  $(id -un)@$(hostname) +pause +report.daily .*the warehouse is down"
    refute says ' (failed|started|dqd-start) '
    recipe 'dq stats'
    [ "$(awk '$1 == "pay.charge" { print $5; exit }' "$out")" = \
        "$(sql "SELECT COUNT(*) FROM dq_task WHERE tag = 'pay.charge' AND status = 2")" ]
}

@test 'why the tasks of a tag do not run' {
    run recipe 'dq check'
    echo "$output"
    [ "$status" -eq 2 ]
    [[ $output == 'CRITICAL: invoice.sent has 25 due tasks, and no dqd serves it; missing.prog rests: '* ]]
    recipe 'dq tags'
    says '^invoice.sent +25 .* none '
    says '^report.daily .* resumed .* the warehouse is down$'
    recipe 'dq why --tag slow.export'
    says "^  all 2 places of the tag on $web1 are taken +max_running: 2, web1.yaml:7\$"
    says '^  max_running: 8, systemctl reload dqd$'
    wait_until rests # but for the moments in which it is tried
    dq why --tag invoice.sent | tee "$out"
    says '^  no dqd serves it +did you mean "invoice.send"\?$'
    dq why --tag report.daily | tee "$out"
    says '^  paused until resumed: the warehouse is down +by [^ ]+$'
    says '^  dq resume report.daily$'
}

@test 'which error fails most, since when, and how the failures of yesterday are retried over ten minutes' {
    recipe 'dq errors'
    [[ $(sed -n 2p "$out") =~ ^pay.charge\ +'exit status 65: account * is closed'\ +305\ +305\ +0\  ]]
    recipe 'dq errors --since 30d --tag pay.charge'
    first=$(date -d "$(sql 'SELECT MIN(finish_time) FROM dq_attempt')Z" '+%m-%d %H:%M')
    says "^pay.charge +exit status 65: account \* is closed +345 +345 +0 +$first "
    recipe 'dq errors --since yesterday --until today'
    says '^pay.charge +exit status 65: account \* is closed +300 +300 '
    retry=$(grep 'dq retry .* 65' "$out")
    # it prints what the manual has, but for --over
    in_manual "${retry#  } --over 10m"
    retry="dq retry --tag pay.charge --error 'exit status 65: account * is closed'"
    at_terminal 120 "$retry --finished-since yesterday --finished-before today --over 10m" <<'END'
wait retry 300 tasks (pay.charge) on localhost/dq? [y/N]
type y
wait 300 tasks retried
wait spread evenly over 10m
END
    # one every two seconds
    [ "$(sql "SELECT COUNT(DISTINCT expected_time), TIMESTAMPDIFF(SECOND, MIN(expected_time), MAX(expected_time))
        FROM dq_task WHERE tag = 'pay.charge' AND status <> 2")" = $'300\t598' ]
    [ "$(sql "SELECT COUNT(*) FROM dq_task WHERE tag = 'pay.charge' AND status = 2")" -eq 165 ]
    recipe 'dq forecast --for 15m --tag pay.charge'
    [ "$(grep -cE ' 30 +█+ ' "$out")" -ge 7 ]
}

@test 'what a wrong script has added is cancelled, and dq events says who did it' {
    recipe 'dq cancel --since 10m --dry-run'
    says '^promo.mail +400$'
    at_terminal 80 'dq cancel --since 10m --tag promo.mail' <<'END'
wait cancel 400 tasks (promo.mail) on localhost/dq? [y/N]
type y
wait 400 tasks cancelled
END
    [ "$(sql "SELECT status, COUNT(*) FROM dq_task WHERE tag = 'promo.mail' GROUP BY status")" = $'0\t50\n4\t400' ]
    recipe 'dq events --since 10m'
    says "^[0-9: -]+  $(id -un)@$(hostname) +cancel +promo.mail +400 +- +--tag promo.mail --since 10m\$"
    recipe 'dq list --tag promo.mail --status cancelled'
    [ "$(wc -l <"$out")" -eq 401 ]
}

@test 'a running import is followed from another host, to its end' {
    recipe "dq list --tag 'import.*' --status running --columns id,tag,host,started"
    says "^ *[0-9]+  import.catalog  $web2  "
    line="dq logs -f \"\$(dq list -o id --tag 'import.*' --status running --limit 1)\""
    in_manual "$line"
    PATH=$BATS_FILE_TMPDIR/bin:$PATH bash -c "$line" >"$out" 2>&1 3>&- &
    follower=$!
    wait_until says ' of 5,000 products$'
    lines=$(wc -l <"$out")
    grows() { [ "$(wc -l <"$out")" -gt "$((lines + 3))" ]; }
    wait_until grows
    touch "$DQ_SANDBOX/night/import.end"
    wait "$follower"
    tail -n 3 "$out"
    says '^imported$'
    tail -n 1 "$out" | grep -q 'done'
}

@test 'the load of the next hour' {
    recipe 'dq forecast --for 1h'
    says '^due now '
    says ' 12 '
    says ' 512 +█+ +500 +[0-9: -]+  newsletter$'
    [ "$(wc -l <"$out")" -eq 63 ]
}

@test 'the alarm is silent while all is well, and fires when the last dqd has missed three heartbeats' {
    alarm=$(manual | sed -n 's/^ *\* \* \* \* \* dq line=/line=/p')
    echo "$alarm"
    [ -n "$alarm" ]
    alarm() { PATH=$BATS_FILE_TMPDIR/bin:$PATH sh -c "$alarm" >"$out" 2>&1; }
    alarm
    says '^CRITICAL: '
    # what dq why and dq check have said
    dq -q cancel -y --tag 'invoice.sent'
    dq -q cancel -y --tag 'slow.export'
    dq -q cancel -y --tag 'missing.prog'
    is_silent() { alarm; [ ! -s "$out" ]; }
    wait_until is_silent
    kill -9 "$(cat "$DQ_SANDBOX/night/web2.pid")" "$(cat "$DQ_SANDBOX/night/web1.pid")"
    # milliseconds since the last heartbeat of any dqd
    silence() { sql 'SELECT MIN(TIMESTAMPDIFF(MICROSECOND, last_seen, UTC_TIMESTAMP(3))) DIV 1000 FROM dq_poller'; }
    fires() { says "^CRITICAL: no dqd is alive \(last: ($web1|$web2), "; }
    until fires; do
        silent=$(silence)
        alarm
        fires || [ "$silent" -lt 9000 ]
    done
    cat "$out"
}

@test 'every recipe of dq(1) and every question of doc/operating was run by the tests before' {
    diff <(recipes | sort -u) <(sort -u "$BATS_FILE_TMPDIR/used")
}
