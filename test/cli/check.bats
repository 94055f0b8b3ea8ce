# check: one line and an exit status for monitoring.

load ../lib/sandbox

setup()
{
    sandbox_clear
    write_handlers <<<'handlers: {known: {run: "true"}, "mail.*": {run: "true"}}'
}

# task TAG SECONDS: due that long ago, added two hours ago.
task()
{
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         VALUES ('$1', '', UTC_TIMESTAMP(3) - INTERVAL $2 SECOND, UTC_TIMESTAMP(3) - INTERVAL 2 HOUR)"
}

# A dqd that serves the handlers file and finds nothing to do: every tag with tasks is paused.
serve()
{
    dqd_start --resident "$@"
    wait_until known
}
known() { [ "$(sql 'SELECT COUNT(*) FROM dq_handler JOIN dq_poller USING (handlers)')" -gt 0 ]; }

@test 'as JSON, check has the verdict and the numbers; also what cannot be known' {
    task mail.x 600
    run dq check -o json
    [ "$status" -eq 2 ]
    [[ $output == '{"status":"CRITICAL","text":"no dqd is alive'* ]]
    [[ $output =~ \"late\":6[0-9]{5},\"failed\":0,\"expired\":0,\"pending\":1,\"dqds\":0\}$ ]]
    run dq check -o json --config /nonexistent
    [ "$status" -eq 3 ]
    [[ $output == '{"status":"UNKNOWN","text":"'*'/nonexistent'*'"}' ]]
}

# expect STATUS PATTERN ARGUMENT...
expect()
{
    run dq check "${@:3}"
    echo "$status $output"
    [ "$status" -eq "$1" ]
    [ "${#lines[@]}" -eq 1 ]
    # shellcheck disable=SC2053  # a pattern
    [[ $output == $2 ]]
}

@test 'check is critical if no dqd is alive, and fine if one is and nothing is late' {
    expect 2 'CRITICAL: no dqd is alive | late=0.000s;;;0 failed=0;;;0 pending=0;;;0 dqds=0;;;0'
    serve
    expect 0 'OK: * late at most, 0 pending, 1 dqd alive |*' --max-pending 5
    expect 0 'OK: * | late=0.000s;;60.000;0 failed=0;;10;0 pending=0;;5;0 dqds=1;;;0' \
        --max-late 1m --max-failed 10/1h --max-pending 5
    kill -9 "$DQD_PID"
    sql 'UPDATE dq_poller SET last_seen = UTC_TIMESTAMP(3) - INTERVAL (stale_after + 1) * 1000 MICROSECOND'
    expect 2 'CRITICAL: no dqd is alive (last: *, * ago)*'
}

@test 'check --min-dqds is critical if one of several dqds is dead, and names it' {
    serve
    expect 0 'OK: *' --min-dqds 1
    sql "INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after, version,
                                lease, handlers)
         VALUES (REPEAT('x', 16), 'web2', 11198, 'resident', 8, 3, UTC_TIMESTAMP(3) - INTERVAL 1 DAY,
                 UTC_TIMESTAMP(3) - INTERVAL 27 MINUTE, 15000, '0.1.0', 60000, 0)"
    expect 0 'OK: *' # the work goes on
    sql "UPDATE dq_poller SET mode = 'once', stale_after = 0, next_pass = UTC_TIMESTAMP(3) + INTERVAL 2 DAY
         WHERE host <> 'web2'" # where nobody may ever make that pass
    expect 2 'CRITICAL: web2/11198 is silent for 27m* | *dqds=1;;;0'
    sql "UPDATE dq_poller SET mode = 'resident', stale_after = 3600000, next_pass = NULL WHERE host <> 'web2'"
    expect 2 'CRITICAL: 1 of at least 2 dqds is alive; web2/11198 is silent for 27m* | *dqds=1;;2:;0' --min-dqds 2
    dq pollers | grep -qE '^web2 .* 8  +- .* no$'
    dq stats --html - | grep -qF '<p class="warn">1 dqd is silent: resident, and did not end</p>'
    dq doctor | grep -qE '^warn +dqd +dqd web2/11198 is silent for 27m[0-9s]*: it was resident and did not end'
    run dq check --min-dqds 0
    [ "$status" -eq 64 ]
}

@test 'check is critical if no dqd serves a tag with due tasks' {
    serve
    task nobody 30
    expect 2 'CRITICAL: nobody has 1 due tasks, and no dqd serves it | *'
    expect 0 'OK: *, 1 dqd alive, no task has a tag that matches known | *' --tag 'known'
    expect 0 '{"status":"OK","text":"no task has a tag that matches known",*' --tag 'known' -o json
    expect 2 'CRITICAL: *' --tag 'no*'
    dq -q pause nobody
    expect 0 'OK: *, 1 dqd alive | *' --tag 'no*'
    expect 0 'OK: *' --max-late 10s
}

@test 'a tag is late from when its task is due and its limit lets it start: check, tags and Prometheus agree' {
    serve --tag nothing # it starts nothing
    sql "UPDATE dq_poller SET tags = NULL"
    task known 4000
    # late SECONDS: by all three; - for not at all
    late()
    {
        if [ "$1" = - ]; then
            expect 0 'OK: 0s late at most*' --max-late 1m
        else
            expect 2 "CRITICAL: known is ${1}* late, more than 1m*" --max-late 1m
        fi
        [[ $(dq tags -o json) == *"\"late\":${2:-null}"* ]]
        [[ $(dq stats -o prometheus) == *"dq_late_seconds{tag=\"known\"} $3"* ]]
    }
    limit() { sql "REPLACE INTO dq_limit (name, update_time, $1) VALUES ('known', $(ago 86400), $2)"; }
    ago() { echo "UTC_TIMESTAMP(6) - INTERVAL $1 SECOND"; }

    late 1h 4 4
    # a rate that is not what it waits for; one of which starts are left, and nothing starts; a backlog that waits for
    # its turn is not late
    limit 'rate, rate_period, burst, next_at' "100, 60000, 1, $(ago 130)"
    late 1h 4 4
    limit 'rate, rate_period, burst, rate_full, next_at' "100, 60000, 1, 1, $(ago 130)"
    late 2m 1 1
    limit 'rate, rate_period, burst, rate_full, next_at' "1, 3600000, 1, 1, $(ago -1800)"
    late - '' 0.000
    # held until two minutes ago, paused until three; hours that have begun; none of them lasts
    limit 'held_until, paused_until' "$(ago 130), $(ago 190)"
    late 2m 1 1
    limit held_until "$(ago -100)"
    late - '' 0.000
    limit hours "'$(date -u -d '-2 minutes' +%H:%M)-$(date -u -d '+1 hour' +%H:%M) UTC'"
    late '[23]m' 1 1 # the window begins with a minute
    limit hours "'$(date -u -d '+1 hour' +%H:%M)-$(date -u -d '+2 hours' +%H:%M) UTC'"
    late - '' 0.000
    # hours that this host cannot read let nothing start, which nothing ends
    limit hours "'08:00-18:00 Mars/Phobos'"
    late 1h 4 4
    expect 2 '*held until it can be read: *Mars/Phobos*' --max-late 1m
    # resumed a moment ago, the tag itself or a glob
    sql 'DELETE FROM dq_limit'
    dq -q pause 'k*'
    late - '' 0.000
    dq -q resume 'k*'
    expect 0 'OK: *' --max-late 1m
    sql "UPDATE dq_limit SET update_time = $(ago 130)"
    late 2m 1 1
}

@test 'check compares lateness, failures and pending tasks with their limits' {
    serve --tag none
    sql "UPDATE dq_poller SET tags = NULL"
    dqd_stop() { kill -9 "$DQD_PID"; DQD_PID=''; }
    dqd_stop
    sql 'UPDATE dq_poller SET last_seen = UTC_TIMESTAMP(3), stale_after = 600000'
    task known 4000
    expect 0 'OK: 1h* late at most, 1 pending*' --max-late 2h --max-pending 1
    expect 2 'CRITICAL: known is 1h* late, more than 1m | late=4*.*s;;60.000;0 *' --max-late 1m
    task known 1
    expect 2 'CRITICAL: 2 tasks are pending, more than 1 |*' --max-pending 1
    sql "INSERT INTO dq_minute VALUES (DATE_FORMAT(UTC_TIMESTAMP() - INTERVAL 10 MINUTE, '%Y-%m-%d %H:%i:00'), 'known',
         REPEAT('a', 16), 9, 2, 7, 0, 0, 0, 0, 9, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
         9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)"
    expect 2 'CRITICAL: 7 tasks failed in 1h, more than 6 | * failed=7;;6;0 *' --max-failed 6
    expect 0 'OK: *' --max-failed 6/5m
    expect 0 'OK: *' --max-failed 7
    # a task that was given a time in the past is not late yet
    sql 'DELETE FROM dq_task'
    dq -q add known --at 2020-01-01
    expect 0 'OK: *' --max-late 1m
}

@test 'check warns if a tag rests because its handler cannot be started' {
    write_handlers <<<'handlers: {known: {run: [/nonexistent/program]}}'
    dq -q add known
    serve
    rests() { [ "$(sql 'SELECT COUNT(*) FROM dq_rest')" = 1 ]; }
    wait_until rests
    expect 1 'WARNING: known rests: *nonexistent* | *'
}

@test 'check says unknown if it cannot know, and its line is inert' {
    own_ini 's/^database = .*/database = absent/; s/^user = .*/user = root/'
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini expect 3 'UNKNOWN: *'
    own_ini 's|^socket = .*|socket = /nonexistent/socket|'
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini expect 3 'UNKNOWN: *'
    DQ_CONFIG=/nonexistent/dq.ini expect 3 'UNKNOWN: *'
    serve
    task "$(printf 'a|b\033[31m\n')" 30
    expect 2 'CRITICAL: a\\x7cb*has 1 due*|*'
    [[ $output != *$'\033'* ]]
    run dq check --max-failed many
    [ "$status" -eq 64 ]
    run dq check --max-failed 5/1s
    [ "$status" -eq 64 ]
}

# runs TAG SECONDS: a task that a dqd has run for that long.
runs()
{
    sql "INSERT INTO dq_task (tag, message_body, status, attempt, expected_time, execution_time, create_time,
         lease_until) VALUES ('$1', '', 3, 1, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) - INTERVAL $2 SECOND, UTC_TIMESTAMP(3),
         UTC_TIMESTAMP(3) + INTERVAL 1 HOUR)"
}

@test 'check names the tasks that have run longest, if they have run for longer than the limit' {
    serve
    runs known 7200
    for seconds in 10 400 500 600; do runs other "$seconds"; done
    expect 0 'OK: *dqds=1;;;0'
    expect 0 'OK: * dqds=1;;;0 running=720*.*s;;10800.000;0' --max-running 3h
    expect 2 'CRITICAL: task * of known has run for 2h*, more than 1h | *' --max-running 1h
    local other='task * of other has run for'
    expect 2 "CRITICAL: task * of known has run for 2h*; $other 10m*; $other 8m*; 1 more task has run for longer *" \
        --max-running 5m
    expect 0 'OK: * running=60*' --max-running 15m --tag other
}
