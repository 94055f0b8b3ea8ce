#!/usr/bin/env bats
# Tasks that expire: those that have not started by then are cancelled, counted, and never started.

load ../lib/sandbox
setup() { sandbox_clear; }

late() # TAG SECONDS EXPIRES: a task that was due so many seconds ago and expired so many seconds after that
{
    sql "INSERT INTO dq_task (tag, message_body, create_time, expected_time, expires_time)
         SELECT '$1', '', n - INTERVAL $2 SECOND, n - INTERVAL $2 SECOND, n - INTERVAL $2 SECOND + INTERVAL $3 SECOND
         FROM (SELECT UTC_TIMESTAMP(3) AS n) t"
}
states() { sql "SELECT GROUP_CONCAT(status ORDER BY id) FROM dq_task WHERE ${1:-1}"; }
EXPIRY='TIMESTAMPDIFF(MICROSECOND, expected_time, expires_time)'

@test 'a claim cancels expired tasks, frees their keys, starts the others, and counts them' {
    write_handlers <<'END'
handlers:
  '*':
    run: 'true'
END
    for i in 1 2 3; do late a 60 10; late a 60 3600; done
    sql "UPDATE dq_task SET task_key = 'k', live = 1 WHERE id = (SELECT * FROM (SELECT MIN(id) FROM dq_task) x)"
    dqd
    [ "$(states)" = 4,1,4,1,4,1 ]
    [ "$(sql 'SELECT COUNT(*), SUM(attempt), SUM(live IS NULL), SUM(version), SUM(finish_time IS NULL),
                     SUM(claim_token IS NULL) FROM dq_task WHERE status = 4')" = $'3\t0\t3\t3\t0\t3' ]
    local error
    error=$(dq list -s cancelled -n 1 -o tsv -c error | tail -1)
    [[ $error =~ ^expired:\ due\ ....-..-..T..:..:..\....Z,\ not\ started\ by\ ....-..-..T..:..:..\....Z$ ]]
    [ "$(sql 'SELECT COUNT(*) FROM dq_attempt')" = 0 ]
    [ "$(sql 'SELECT SUM(expired), SUM(done), SUM(failed) FROM dq_minute')" = $'3\t3\t0' ]
    [ "$(dq stats -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["expired"])')" = 3 ]
    dq stats -o prometheus | grep -q '^dq_period_expired{tag="a"} 3$'
    [[ $(dq events -o json --event expired) == *'"event":"expired"'*'"count":3'* ]]
    [[ $(dq events "$(sql 'SELECT MIN(id) FROM dq_task')") == *'expired '*'due '* ]]
    dq stats --html - | tr -d '\n' >"$BATS_TEST_TMPDIR/page"
    grep -q '<li><span>expired</span><b class="bad">3</b></li>' "$BATS_TEST_TMPDIR/page"
    grep -q '<th scope="row">a.*<small class="bad">3 expired</small></th>' "$BATS_TEST_TMPDIR/page"
    run dq check --max-expired 2/1h --min-dqds 1
    [ "$status" -eq 2 ]
    [[ $output == *'3 tasks expired in 1h, more than 2'*' expired=3;;2;0'* ]]
    run dq check --max-expired 3
    [[ $output != *'tasks expired'* ]]
    run dq why "$(sql 'SELECT MIN(id) FROM dq_task')"
    [[ $output == *'it has expired '*'expired: due '* ]]
    dq -q add a --key k
}

@test 'very many expired tasks do not keep the one behind them from its start' {
    write_handlers <<'END'
handlers:
  '*':
    run: 'true'
    max_running: 1
END
    sql "INSERT INTO dq_task (tag, message_body, create_time, expected_time, expires_time)
         SELECT 'a', '', n - INTERVAL 1 HOUR, n - INTERVAL 1 HOUR, n - INTERVAL 1 MINUTE
         FROM $(numbers 3000), (SELECT UTC_TIMESTAMP(3) AS n) t"
    dq -q add a
    dqd
    is 'status = 4' 3000
    is 'status = 1' 1
    [ "$(sql 'SELECT SUM(expired) FROM dq_minute')" = 3000 ]
}

@test 'a task whose start a rate has reserved for after its expiry is cancelled' {
    write_handlers <<'END'
handlers:
  '*':
    run: 'true'
END
    dq limit a --rate 1/2s
    sql "INSERT INTO dq_task (tag, message_body, create_time, expected_time, expires_time)
         SELECT 'a', '', n, n + INTERVAL late SECOND, n + INTERVAL expires SECOND
         FROM (SELECT UTC_TIMESTAMP(3) AS n) t,
              (SELECT -2 AS late, NULL AS expires UNION SELECT -1, 1 UNION SELECT 0, NULL) rows_"
    dqd
    [ "$(sql 'SELECT status, attempt FROM dq_task ORDER BY expected_time')" = $'1\t1\n4\t0\n1\t1' ]
    [ "$(sql 'SELECT SUM(started), SUM(expired) FROM dq_minute')" = $'2\t1' ]
}

@test 'expired tasks of paused tags are cancelled, too, and, 5 minutes later, those of tags that nobody serves' {
    write_handlers <<'END'
handlers:
  mine:
    run: 'true'
    expires: 1m
  other:
    run: 'true'
END
    late mine 60 10
    late nobody 600 10
    late nobody 600 3600
    late nobody 60 10 # dqds that serve it go first: they know its on_failed
    sql "INSERT INTO dq_task (tag, message_body, create_time, expected_time)
         SELECT 'mine', '', n - INTERVAL 1 HOUR, n - INTERVAL 1 HOUR FROM (SELECT UTC_TIMESTAMP(3) AS n) t"
    dq -q pause mine
    own_ini '$a [retention]\ninterval = 100ms'
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini dqd_start --resident
    wait_until is 'status = 4' 3
    dqd_stop
    [ "$(states "tag = 'nobody'")" = 4,0,0 ]
}

@test "a handler's default counts from the due time and is written at the first claim; a late retry is not planned" {
    write_handlers <<'END'
defaults:
  retry: [1h]
handlers:
  short:
    run: 'echo no luck >&2; exit 1'
    expires: 10m
  long:
    run: exit 1
    expires: 2h
  lone:
    run: exit 1
END
    dq -q add long
    dq -q add short
    dq -q add lone --expires 70m
    dqd
    [ "$(sql "SELECT status, $EXPIRY FROM dq_task WHERE tag = 'short'")" = $'2\t600000000' ]
    [ "$(sql "SELECT error_stack FROM dq_task WHERE tag = 'short'")" = \
        'exit status 1: no luck; no further attempt before it expires' ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_attempt')" = 3 ]
    [ "$(sql "SELECT status, TIMESTAMPDIFF(SECOND, create_time, expires_time) FROM dq_task WHERE tag = 'long'")" = \
        $'0\t7200' ]
    is "status = 0 AND tag = 'lone'" 1
    sql "INSERT INTO dq_task (tag, message_body, create_time, expected_time)
         SELECT 'short', '', n, n - INTERVAL 1 DAY FROM (SELECT UTC_TIMESTAMP(3) AS n) t" # not dead at birth
    dqd
    is "status = 2 AND tag = 'short'" 2
}

@test 'reschedule moves the time along; run-now and retry do away with it; replace sets it anew' {
    dq -q add t --in 1h --expires 10m --key k
    expiry() { sql "SELECT $EXPIRY FROM dq_task"; }
    [ "$(expiry)" = 600000000 ]
    [[ $(dq reschedule -t t --in 5h 2>&1) == *'1 of them expire: that time moves along'* ]]
    [ "$(expiry)" = 600000000 ]
    is 'expires_time > UTC_TIMESTAMP(3) + INTERVAL 5 HOUR' 1
    for i in 1 2 3; do dq -q reschedule -t t --at 2001-01-01T00:00:00Z; done
    is 'expires_time BETWEEN UTC_TIMESTAMP(3) + INTERVAL 9 MINUTE AND UTC_TIMESTAMP(3) + INTERVAL 10 MINUTE' 1
    dq -q add t --in 1h --expires 20m --key k --key-conflict replace
    [ "$(expiry)" = 1200000000 ]
    [[ $(dq why -t t) == *'expiry (in 1h'* ]]
    dq export >"$BATS_TEST_TMPDIR/x"
    dq -q delete -t t -s pending -y || dq -q cancel -t t
    sandbox_clear
    dq -q import "$BATS_TEST_TMPDIR/x"
    [ "$(expiry)" = 1200000000 ]
    [[ $(dq run-now -t t 2>&1) == *'1 of them would expire: they do not any more'* ]]
    [ "$(expiry)" = NULL ]
    dq -q cancel -t t
    sql "UPDATE dq_task SET expires_time = '2001-01-01'"
    dq -q retry -t t -s cancelled
    [ "$(expiry)" = NULL ]
}

@test 'a task that is added again while it runs expires as the last call says' {
    id=$(dq -q add t --key k --expires 1m)
    sql "UPDATE dq_task SET status = 3, version = 1, lease_until = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR"
    dq -q add t two --key k --key-conflict again --in 1h --expires 10m
    is 'TIMESTAMPDIFF(MICROSECOND, again_time, expires_time) BETWEEN 599000000 AND 601000000' 1
    dq -q add t three --key k --key-conflict again
    is 'expires_time IS NULL AND again_time IS NOT NULL' 1
}

@test 'a task that is moved into the past, or added again, does not expire by what it was before' {
    write_handlers <<'END'
handlers:
  '*':
    run: 'true'
    expires: 10m
END
    local past=(--at 2001-01-01T00:00:00Z) key
    for key in replace again reschedule retry given-back procedure run-now untouched; do
        dq -q add t --key $key
    done
    dq -q cancel -t t --key retry
    dq -q add t --key explicit --expires 10m
    sql "UPDATE dq_task SET create_time = create_time - INTERVAL 1 HOUR, expected_time = create_time,
             update_time = create_time + INTERVAL 1 SECOND, expires_time = expires_time - INTERVAL 1 HOUR,
             claim_token = IF(task_key = 'given-back', REPEAT('x', 16), NULL),
             host = IF(task_key = 'given-back', 'h', NULL)"
    dq -q reschedule -t t --key given-back "${past[@]}"
    for key in replace given-back; do dq -q add t --key $key --key-conflict replace "${past[@]}"; done
    dq -q add t --key again --key-conflict again
    dq -q reschedule -t t --key reschedule "${past[@]}"
    dq -q reschedule -t t --key explicit "${past[@]}"
    dq -q run-now -t t --key run-now
    dq -q retry -t t -s cancelled --key retry "${past[@]}"
    sql "CALL dq_add_options('t', 'procedure', '',
                             JSON_OBJECT('utc', '2001-01-01 00:00:00', 'key_conflict', 'replace'), @id)"
    [ "$(sql "SELECT GROUP_CONCAT(task_key) FROM dq_task WHERE run > 0")" = given-back ] # it has another body
    dqd
    [ "$(sql "SELECT GROUP_CONCAT(task_key ORDER BY id) FROM dq_task WHERE status <> 1")" = untouched ]
    is 'status = 4' 1
}

@test "a task that is added again runs again, however much longer than its handler's expires it has run" {
    write_handlers <<'END'
handlers:
  '*':
    run: 'echo >>RUNS; until [ -e GO ]; do sleep 0.02; done'
    expires: 10m
END
    sed -i "s|RUNS|$BATS_TEST_TMPDIR/runs|; s|GO|$BATS_TEST_TMPDIR/go|" "$DQ_HANDLERS"
    dq -q add t --key k
    dqd_start --resident
    wait_until is 'status = 3' 1
    dq -q add t --key k --key-conflict again
    sql 'UPDATE dq_task SET create_time = create_time - INTERVAL 1 HOUR, expected_time = create_time,
             again_time = again_time - INTERVAL 1 HOUR'
    touch "$BATS_TEST_TMPDIR/go"
    wait_until is 'status IN (1, 4)' 1
    dqd_stop
    is 'status = 1' 1
    [ "$(wc -l <"$BATS_TEST_TMPDIR/runs")" -eq 2 ]
}

@test 'a task expires after it is due, which may be in the past, or is refused' {
    dq -q add t --at 2001-01-01T00:00:00Z --expires 10m
    is 'expires_time > UTC_TIMESTAMP(3) + INTERVAL 9 MINUTE' 1
    dq -q add t --in 1h --expires-at 2031-01-02T03:04:05Z
    is "expires_time = '2031-01-02 03:04:05'" 1
    refused() { run dq add "${@:3}"; echo "$output"; [ "$status" -eq "$1" ]; [[ $output == *"$2" ]]; }
    refused 65 'it would expire before it is due' t --at 2031-01-02T03:04:05Z --expires-at 2031-01-02T03:04:05Z
    refused 65 'it would expire before it is due' t --expires-at 2001-01-01T00:00:00Z
    refused 64 'must be longer than 0, such as 10m' t --expires 0s
    refused 64 '--expires and --expires-at cannot be combined' t --expires 1h --expires-at tomorrow
    is 1 2
    sandbox_clear
    printf '%s\n' '{"tag":"a","expires":"10m"}' '{"tag":"b","in":"1h","expires_at":"2031-01-02T03:04:05Z"}' |
        dq -q add --from -
    [ "$(sql "SELECT tag, $EXPIRY = 600000000, expires_time = '2031-01-02 03:04:05' FROM dq_task ORDER BY id" |
         tr '\t\n' ' ,')" = 'a 1 0,b 0 1,' ]
    dq list -o ndjson >"$BATS_TEST_TMPDIR/x"
    sandbox_clear
    dq -q add --from "$BATS_TEST_TMPDIR/x" # as list prints it
    is "expires_time = '2031-01-02 03:04:05'" 1
    is 'expires_time IS NOT NULL' 2
    run dq add --from - <<<'{"tag":"a","at":"2031-01-01T00:00:00Z","expires_at":"2030-01-01T00:00:00Z"}'
    [ "$status" -eq 65 ]
    [[ $output == *':1: it would expire before it is due; nothing was added' ]]
    run dq add --from - <<<'{"tag":"a","expires":"0s"}'
    [ "$status" -eq 65 ]
}

@test 'a fleet that claims at the instant of expiry starts a task or cancels it, never both' {
    write_handlers <<'END'
handlers:
  '*':
    run: 'echo "$DQ_ID" >>"$JOURNAL"'
    env: {JOURNAL: JOURNAL_FILE}
    max_running: 8
END
    sed -i "s|JOURNAL_FILE|$BATS_TEST_TMPDIR/journal|" "$DQ_HANDLERS"
    : >"$BATS_TEST_TMPDIR/journal"
    # claims come 5 ms before they are due; these expire from 6 ms before that time to 1 ms after it
    sql "INSERT INTO dq_task (tag, message_body, create_time, expected_time, expires_time)
         SELECT 'a', '', n, n + INTERVAL 2000000 + seq * 5000 MICROSECOND,
                n + INTERVAL 2000000 + seq * 5000 + seq % 8 * 1000 - 6000 MICROSECOND
         FROM $(numbers 400), (SELECT UTC_TIMESTAMP(3) AS n) t"
    local pids=()
    for i in 1 2 3; do "$DQ_BIN/dqd" --for 10s --allow-overlap 3>&- & pids+=($!); done
    wait_until is 'status IN (0, 3)' 0
    kill "${pids[@]}"
    wait "${pids[@]}" || true
    sort -n "$BATS_TEST_TMPDIR/journal" >"$BATS_TEST_TMPDIR/started"
    sql 'SELECT id FROM dq_task WHERE status = 1 ORDER BY id' | diff - "$BATS_TEST_TMPDIR/started"
    [ "$(sql 'SELECT SUM(expired) + SUM(done) FROM dq_minute')" = 400 ]
    [ "$(count 'status = 4')" -gt 0 ]
}
