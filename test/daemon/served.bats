#!/usr/bin/env bats
# What dqd writes down for operators: which handlers it has (dq_handler), which tags rest (dq_rest).

load ../lib/sandbox
setup() { sandbox_clear; }
teardown()
{
    [ -z "${other_pid:-}" ] || kill "$other_pid"
    dqd_reap
}

handlers() { sql 'SELECT GROUP_CONCAT(DISTINCT pattern ORDER BY number) FROM dq_handler'; }
handlers_are() { [ "$(handlers)" = "$1" ]; }
# What the dqds in dq_poller refer to.
served_are()
{
    [ "$(sql 'SELECT GROUP_CONCAT(pattern ORDER BY number) FROM dq_handler JOIN dq_poller USING (handlers)')" = "$1" ]
}
rests_are() { [ "$(sql 'SELECT GROUP_CONCAT(tag ORDER BY tag) FROM dq_rest')" = "$1" ]; }
logged() { grep -q -- "$1" "$DQD_LOG"; }

@test 'a resident dqd writes its handlers at the start and after a reload, and deletes them at its end' {
    write_handlers <<'YAML'
defaults: {retry: [1s, 2s]}
handlers:
  b: {run: "true", max_running: 3}
  "mail.*":
    run: "true"
    batch: 50
    global_max_running: 7
    timeout: 5s
YAML
    dqd_start --resident --tag 'b' --tag 'mail*'
    wait_until handlers_are 'b,mail.*'
    [ "$(sql "SELECT pattern, is_glob, line, batch, max_running, global_max_running, max_attempts, timeout
              FROM dq_handler ORDER BY number" | tr '\t' ' ')" = $'b 0 3 1 3 0 3 60000\nmail.* 1 4 50 8 7 3 5000' ]
    [ "$(sql "SELECT handlers_file, REPLACE(tags, '\n', '|'), next_pass FROM dq_poller")" = \
        "$DQ_HANDLERS"$'\tb|mail*\tNULL' ]
    write_handlers <<<'handlers: {c: {run: "true"}}'
    kill -HUP "$DQD_PID"
    wait_until served_are c
    wait_until handlers_are c
    write_handlers <<<'handlers: {}'
    kill -HUP "$DQD_PID"
    wait_until handlers_are NULL
    write_handlers <<<'handlers: {c: {run: "true"}}'
    kill -HUP "$DQD_PID"
    wait_until served_are c
    dqd_stop
    [ "$(sql 'SELECT COUNT(*) FROM dq_handler') $(sql 'SELECT COUNT(*) FROM dq_poller')" = '0 0' ]
}

@test 'two dqds with the same file share its rows, and the last one deletes them' {
    write_handlers <<<'handlers: {a: {run: "true"}}'
    "$DQ_BIN/dqd" --resident 3>&- 2>/dev/null &
    other=$!
    dqd_start --resident --log-level debug
    wait_until eval '[ "$(sql "SELECT COUNT(*) FROM dq_poller")" = 2 ]'
    wait_until served_are a,a
    [ "$(sql 'SELECT COUNT(*) FROM dq_handler')" = 1 ]
    kill "$other"
    wait "$other"
    served_are a
    dqd_stop
    handlers_are NULL
    refute grep 'cannot delete' "$DQD_LOG"
}

@test "what waits when a HUP changes the handlers runs with the new ones, and waits for no old task" {
    cd "$BATS_TEST_TMPDIR"
    write_handlers <<END
handlers:
  t: {cwd: $PWD, max_running: 1, run: 'echo old >>began; while [ ! -e end ]; do sleep 0.05; done'}
END
    began() { [ "$(wc -l <began)" -ge "$1" ]; }
    : >began
    dq -q add t
    touch end
    DQ_DQD_POLL_INTERVAL=20m DQ_DQD_LEASE=2h dqd_start --resident # nothing but the reload tells of them
    wait_until is 'status = 1' 1 # how long a task takes is known: more are claimed than can start
    rm end
    yes '{"tag":"t"}' | head -n 3 | dq -q add --from -
    wait_until began 2
    wait_until is 'status = 3' 3
    write_handlers <<END
handlers:
  t: {cwd: $PWD, max_running: 3, run: 'echo new >>began'}
END
    kill -HUP "$DQD_PID"
    wait_until began 4
    [ "$(grep -c new began)" = 2 ]
    is 'status = 3' 1
    touch end
    wait_until is 'status = 1 AND attempt = 1' 4
    dqd_stop
}

@test 'a tag whose handler cannot be started rests, with the reason, until a reload' {
    write_handlers <<<'handlers: {a: {run: [/nonexistent/program]}, b: {run: "true"}}'
    dqd_start --resident
    dq -q add a >/dev/null
    wait_until rests_are a
    [[ $(sql 'SELECT error FROM dq_rest') == *nonexistent* ]]
    rests='SELECT MIN(rest_until) > UTC_TIMESTAMP(3), COUNT(*) FROM dq_rest JOIN dq_poller USING (token)'
    rests_still() { [ "$(sql "$rests")" = $'1\t1' ]; }
    wait_until rests_still
    write_handlers <<<'handlers: {a: {run: "true"}}'
    kill -HUP "$DQD_PID"
    wait_until rests_are NULL
    write_handlers <<<'handlers: {a: {run: [/nonexistent/program]}}'
    kill -HUP "$DQD_PID"
    reloaded_twice() { [ "$(grep -c 'handlers reloaded' "$DQD_LOG")" -eq 2 ]; }
    wait_until reloaded_twice
    dq -q add a >/dev/null
    wait_until rests_are a
    dqd_stop
    rests_are NULL
}

@test 'a pass writes its handlers once, and stays in the list until the next one' {
    write_handlers <<<'handlers: {a: {run: [/nonexistent/program]}}'
    dqd
    [ "$(sql 'SELECT mode, stale_after, next_pass > last_seen FROM dq_poller')" = $'once\t0\t1' ]
    first=$(sql 'SELECT HEX(token) FROM dq_poller')
    sql 'UPDATE dq_handler SET line = 77'
    dq -q add a >/dev/null
    dqd
    rests_are a
    [ "$(sql 'SELECT line FROM dq_handler JOIN dq_poller USING (handlers)')" = 77 ]
    [ "$(sql 'SELECT HEX(token) FROM dq_poller')" != "$first" ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_rest JOIN dq_poller USING (token)')" = 1 ]
    write_handlers <<<'handlers: {b: {run: "true"}}'
    dqd
    handlers_are b
    rests_are NULL
    [ "$(sql 'SELECT COUNT(*) FROM dq_poller')" = 1 ]
}

@test 'of the number of the handlers, one half depends on nothing but the tags that they serve' {
    served() {
        write_handlers <<<"handlers: {$1}"
        dqd
        sql 'SELECT handlers >> 32 FROM dq_poller'
    }
    first=$(served 'a: {run: "true"}, "b*": {run: "true"}')
    [ "$first" -gt 0 ]
    [ "$(served '"b*": {run: "false", max_running: 3}, a: {run: "true"}')" = "$first" ]
    [ "$(served 'a: {run: "true"}')" != "$first" ]
    [ "$(served 'a: {run: "true"}, b: {run: "true"}')" != "$first" ]
}

@test 'dqd works without the right to write down its handlers, and logs that once' {
    write_handlers <<<'handlers: {a: {run: "true"}}'
    new_account dq_worker
    sql "$(sed -n "s/'%'/'localhost'/; /GRANT.* 'dq_worker'/p" "$DQ_TOP/sql/grants.sql.example" |
        grep -v 'dq_handler\|dq_rest')"
    own_ini 's/^user *=.*/user = dq_worker/; s/^\[dqd\]/&\nheartbeat = 100ms/'
    id=$(dq -q add a)
    dqd --config "$BATS_TEST_TMPDIR/own.ini"
    [ "$(sql "SELECT status FROM dq_task WHERE id = $id")" = 1 ]
    dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"
    wait_until logged 'cannot record which handlers'
    beat() { [ "$(sql "SELECT COUNT(*) FROM dq_poller WHERE last_seen > '$now' AND mode = 'resident'")" = 1 ]; }
    for _ in 1 2 3; do
        now=$(sql 'SELECT UTC_TIMESTAMP(3)')
        wait_until beat
    done
    [ "$(grep -c 'cannot record which handlers' "$DQD_LOG")" = 1 ]
    sql 'GRANT SELECT, INSERT, DELETE ON dq.dq_handler TO dq_worker@localhost;
         GRANT SELECT, INSERT, DELETE ON dq.dq_rest TO dq_worker@localhost'
    wait_until handlers_are a
    wait_until logged 'can be recorded again'
    dqd_stop
}

@test 'a privilege on the whole database counts for a dqd that has connected before' {
    write_handlers <<<'handlers: {t: {run: "true"}}'
    new_account worker
    sql 'GRANT SELECT ON dq.* TO worker@localhost'
    dq add t
    own_ini 's/^user *=.*/user = worker/'
    dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"
    wait_until logged 'the server refused a statement; tasks stay pending'
    sql 'GRANT ALL ON dq.* TO worker@localhost'
    wait_until is 'status = 1' 1
    [ "$(grep -c 'msg="connected"' "$DQD_LOG")" = 1 ]
    dqd_stop
}

some_started() { starts=$(cat "$BATS_TEST_TMPDIR"/starts.* 2>/dev/null | wc -l) && [ "$starts" -ge 200 ]; }

@test 'tags under one full limit have their part each, though different dqds serve them' {
    write_handlers <<END
handlers: {'*': {run: 'echo >>$BATS_TEST_TMPDIR/starts.\$DQ_TAG; sleep 0.1', limit: both}}
END
    printf '[dqd]\npoll_interval = 100ms\n' >>"$DQ_CONFIG" # places are left for two of these
    dq -q limit both --running 2
    for tag in a b; do
        awk -v tag=$tag 'BEGIN { for (i = 0; i < 300; i++) print "{\"tag\":\"" tag "\"}" }' |
            dq -q add --from - >/dev/null
    done
    dqd_start --resident --tag a
    other_pid=$DQD_PID
    dqd_start --resident --tag b
    wait_until some_started
    wc -l "$BATS_TEST_TMPDIR"/starts.*
    for tag in a b; do [ "$(wc -l <"$BATS_TEST_TMPDIR/starts.$tag")" -ge $((starts / 4)) ]; done
}
