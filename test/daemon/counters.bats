#!/usr/bin/env bats
# What dqd counts by minute and tag.

load ../lib/sandbox
setup() { sandbox_clear; }

# counts TAG: started, done, failed and retried, over all minutes and dqds.
counts()
{
    sql "SELECT SUM(started), SUM(done), SUM(failed), SUM(retried) FROM dq_minute WHERE tag = '$1'" | tr '\t' ' '
}
counted() { [ "$(counts "$1")" = "$2" ]; }
has() { [ "$(sql "$1")" = "$2" ]; }

@test "a pass counts starts, ends and retries of each tag, with lateness and time taken" {
    write_handlers <<'END'
handlers:
  good: {run: 'sleep 0.2'}
  bad: {run: exit 65}
  again: {run: exit 1, retry: [0s]}
END
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time) VALUES
         ('good', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)),
         ('good', '', UTC_TIMESTAMP(3) - INTERVAL 50 SECOND, UTC_TIMESTAMP(3) - INTERVAL 200 SECOND),
         ('good', '', '2020-01-01', UTC_TIMESTAMP(3)),
         ('bad', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)), ('again', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
    dqd
    sql 'SELECT * FROM dq_minute'
    counted good '3 3 0 0'
    counted bad '1 0 1 0'
    counted again '2 0 1 1'
    [ "$(sql "SELECT SUM(late_max) BETWEEN 50000 AND 119999, SUM(run_sum) >= 600, SUM(late_2m) = 1, SUM(ended),
              MAX(run_max) >= 200, SUM(run_5ms + run_10ms + run_25ms + run_50ms + run_100ms),
              SUM(run_250ms + run_1s + run_5s + run_30s + run_2m + run_10m + run_1h)
              FROM dq_minute WHERE tag = 'good'" | tr '\t' ' ')" = '1 1 1 3 1 0 3' ]
}

@test "counts are written with the heartbeat; if that fails, they are kept and written later" {
    write_handlers <<<'handlers: {t: {run: "true"}}'
    own_ini 's/^\[dqd\]/&\nheartbeat = 100ms/'
    dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"
    dq -q add t
    wait_until counted t '1 1 0 0'
    sql 'RENAME TABLE dq_minute TO hidden'
    for i in 1 2 3; do dq -q add t; done
    wait_until grep -q 'the server refused a statement; other duties continue.*duty=minute' "$DQD_LOG"
    wait_until has 'SELECT COUNT(*) FROM dq_task WHERE status = 1' 4
    sql 'RENAME TABLE hidden TO dq_minute'
    wait_until counted t '4 4 0 0'
    dq -q add t
    wait_until counted t '5 5 0 0'
    dqd_stop
    counted t '5 5 0 0'
}

@test "what was counted since the last heartbeat is written at the end" {
    write_handlers <<<'handlers: {t: {run: "true"}}'
    own_ini 's/^\[dqd\]/&\nlease = 1d\nheartbeat = 1h/'
    dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"
    dq -q add t
    wait_until has 'SELECT COUNT(*) FROM dq_task WHERE status = 1' 1
    counted t $'NULL NULL NULL NULL'
    dqd_stop
    counted t '1 1 0 0'
}

@test "a task that a dead dqd left behind counts when it is taken back" {
    write_handlers <<<'handlers: {t: {run: "true"}}'
    sql "INSERT INTO dq_task (tag, message_body, status, attempt, max_attempts, expected_time, create_time, lease_until)
         VALUES ('t', '', 3, 1, 1, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE)"
    dqd_start --resident
    wait_until has 'SELECT status FROM dq_task' 2
    dqd_stop
    counted t '0 0 1 0'
}

@test "metrics_file has what dqd has done since its start, as promtool accepts it" {
    write_handlers <<<'handlers: {good: {run: "true"}, bad: {run: "exit 65"}}'
    own_ini "s|^\[dqd\]|&\nheartbeat = 100ms\nmetrics_file = $BATS_TEST_TMPDIR/dq.prom|"
    dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"
    for tag in good good bad; do dq -q add "$tag"; done
    written() { grep -qxF "$1" "$BATS_TEST_TMPDIR/dq.prom"; }
    wait_until written 'dq_dqd_done_total{tag="good"} 2'
    wait_until written 'dq_dqd_failed_total{tag="bad"} 1'
    written 'dq_dqd_starts_total{tag="good"} 2'
    written 'dq_dqd_late_seconds_bucket{le="+Inf"} 3'
    written 'dq_dqd_run_seconds_bucket{le="+Inf"} 3'
    written 'dq_dqd_run_seconds_count 3'
    written 'dq_dqd_slots 32'
    promtool check metrics <"$BATS_TEST_TMPDIR/dq.prom"
    sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$BATS_TEST_TMPDIR/dq.prom" >"$BATS_TEST_TMPDIR/names"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/names")" -ge 5 ]
    for name in $(cat "$BATS_TEST_TMPDIR/names"); do grep -qF "$name" "$DQ_TOP/doc/dqd.8"; done
    in_the_way() { rm -f "$BATS_TEST_TMPDIR/dq.prom" && mkdir "$BATS_TEST_TMPDIR/dq.prom"; }
    wait_until in_the_way # between the two, dqd may write the file again
    wait_until grep -q 'metrics_file cannot be written; dqd goes on without' "$DQD_LOG"
    rmdir "$BATS_TEST_TMPDIR/dq.prom"
    wait_until grep -q 'metrics_file can be written again' "$DQD_LOG"
    dqd_stop
    [ "$(find "$BATS_TEST_TMPDIR" -name 'dq.prom.*')" = '' ]
}

@test "the sample of alert rules is what promtool accepts, and names metrics that exist" {
    promtool check rules "$DQ_TOP/etc/prometheus/dq.rules.yml"
    local names
    names=$(grep -o 'dq_[a-z_]*' "$DQ_TOP/etc/prometheus/dq.rules.yml" | sed 's/_bucket$//' | sort -u)
    [ "$(wc -w <<<"$names")" -ge 5 ]
    for name in $names; do
        grep -qF "$name" "$DQ_TOP/doc/dq-stats.1" "$DQ_TOP/doc/dqd.8"
    done
}

@test "each alert of the sample rings for what it is about, and not for what looks like it" {
    promtool test rules "$DQ_TOP/test/data/alerts.yml"
    # each is played
    [ "$(grep -o 'alert: .*' "$DQ_TOP/etc/prometheus/dq.rules.yml" | sort | sed 's/alert: //')" = \
        "$(sed -n 's/.*- alertname: //p' "$DQ_TOP/test/data/alerts.yml" | sort -u)" ]
}

@test "counts are deleted after the time in [retention] counters" {
    write_handlers <<<'handlers: {}'
    own_ini 's/^\[dqd\]/[retention]\ncounters = 1h\n&/'
    sql "ALTER TABLE dq_minute $(sql "SELECT GROUP_CONCAT('ALTER ', column_name, ' SET DEFAULT 0')
             FROM information_schema.columns
             WHERE table_schema = 'dq' AND table_name = 'dq_minute' AND data_type LIKE '%int'");
         INSERT INTO dq_minute (minute, tag, poller)
         SELECT UTC_TIMESTAMP(3) - INTERVAL seq MINUTE, 't', 'x' FROM $(numbers 2000)"
    dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"
    left() { [ "$(sql 'SELECT COUNT(*) FROM dq_minute')" -le 60 ]; }
    wait_until left
    [ "$(sql 'SELECT COUNT(*) FROM dq_minute')" -ge 50 ]
}
