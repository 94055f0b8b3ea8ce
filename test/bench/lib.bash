# lib.bash - what the rows of the benchmark share: servers, contenders that more than one row knows, the table.

say() { printf 'bench: %s\n' "$*" >&2; }

# Whether two builds of dq are compared: then the rows leave out everybody else.
comparing() { [ "$against" ]; }

# record ROW KIND WHO VALUE: one measurement. KIND: limit, naive, peer, dq.
record()
{
    if ! comparing; then
        printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$results"
    elif [ "$2" = dq ]; then
        printf '%s\t%s\t%s\t%s\n' "$1" "$side" "$bin" "$4" >>"$results"
    fi
}

sql()
{
    mariadb --no-defaults --socket="$BENCH_SOCKET" --user=dq --batch --skip-column-names "${database:-dq}" \
        --execute="$1"
}
wall_us() { local t=$EPOCHREALTIME; echo "${t/[.,]/}"; }

# rate COUNT FROM_US: a second, until now.
rate() { awk -v n="$1" -v from="$2" -v to="$(wall_us)" 'BEGIN { printf "%.1f\n", n * 1e6 / (to - from) }'; }

repeat() { awk -v n="$1" -v line="$2" 'BEGIN { while (n-- > 0) print line }'; }

# ---- servers

start_database()
{
    local options='--innodb-buffer-pool-size=4G --innodb-log-file-size=1G --innodb-flush-log-at-trx-commit=1'
    DQ_BIN=$bin "$top/bin/dq-sandbox" start --options "$options" "$sandbox" >&2
    BENCH_SOCKET=$(sed -n 's/^socket = //p' "$sandbox/dq.ini")
    export BENCH_SOCKET DQ_CONFIG=$sandbox/dq.ini
    server_pid=$(cat "$sandbox/server/pid")
}

# start_beanstalkd [OPTION...]: at $BENCH_BEANSTALK, empty.
start_beanstalkd()
{
    export BENCH_BEANSTALK=$work/beanstalk.sock
    rm -rf "$work/beanstalk" "$BENCH_BEANSTALK"
    mkdir "$work/beanstalk"
    beanstalkd -l "unix:$BENCH_BEANSTALK" "$@" 2>>"$work/peers.log" &
    peer_pid=$!
    wait_pause=0.01 wait_until test -S "$BENCH_BEANSTALK"
}
beanstalkd_durable=(-b "$work/beanstalk" -f 0)

# start_redis: durable, at $BENCH_REDIS, empty.
start_redis()
{
    export BENCH_REDIS=$work/redis.sock
    rm -rf "$work/redis" "$BENCH_REDIS"
    mkdir "$work/redis"
    redis-server --port 0 --unixsocket "$BENCH_REDIS" --dir "$work/redis" --save '' --appendonly yes \
        --appendfsync always --daemonize no >/dev/null &
    peer_pid=$!
    wait_pause=0.01 wait_until test -S "$BENCH_REDIS"
}

stop_peer()
{
    [ -z "${peer_pid:-}" ] || { kill "$peer_pid"; wait "$peer_pid" || true; }
    peer_pid=''
}

stop_all()
{
    stop_peer
    stop_dqd
    "$top/bin/dq-sandbox" stop "$sandbox" >&2 || true
}

# ---- dq

# handlers TEXT: the handlers file.
# With a shell for each start, which the others take, too; [DEFAULTS]: instead.
handlers() { printf 'defaults: {%s}\nhandlers:\n%s\n' "${2-shell: /bin/sh}" "$1" >"$sandbox/handlers.yaml"; }
# settings LINE...: more lines in dq.ini, section [dqd], until the next call.
settings()
{
    [ -e "$sandbox/dq.ini.plain" ] || cp "$sandbox/dq.ini" "$sandbox/dq.ini.plain"
    { cat "$sandbox/dq.ini.plain"; printf '%s\n' "$@"; } >"$sandbox/dq.ini"
}

empty()
{
    sql 'SET FOREIGN_KEY_CHECKS=0; TRUNCATE dq_task; TRUNCATE dq_attempt; DELETE FROM dq_limit; DELETE FROM dq_poller'
}
# due COUNT [TAG]: tasks that are due, with a body of 20 bytes.
due()
{
    sql "INSERT INTO dq_task (tag, message_body, body_size, expected_time, create_time)
         SELECT '${2:-bench}', LPAD(seq, 20, '0'), 20, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM seq_1_to_$1"
}
count() { sql "SELECT COUNT(*) FROM dq_task WHERE $1"; }

# once COUNT: dqd runs what is due, all of it; prints tasks a second.
once()
{
    local from
    from=$(wall_us)
    "$bin/dqd" --log-level warn
    rate "$1" "$from"
    [ "$(count "status = 1 AND tag = 'bench'")" -ge "$1" ] || { say "dqd left tasks behind"; exit 1; }
}

has_started()
{
    kill -0 "$dqd_pid" || { tail -n 3 "$work/dqd.log" >&2; exit 1; }
    [ "$(sql "SELECT COUNT(*) FROM dq_poller WHERE pid = $dqd_pid")" = 1 ]
}

start_dqd()
{
    "$bin/dqd" --resident --log-level warn "$@" 2>>"$work/dqd.log" &
    dqd_pid=$!
    wait_until has_started
}

stop_dqd()
{
    [ -z "${dqd_pid:-}" ] || { kill "$dqd_pid" && wait "$dqd_pid" || true; }
    dqd_pid=''
}

# plan COUNT SPAN_MS AHEAD_MS: planned instants, the first AHEAD_MS from now, in $work/plan.
plan()
{
    "$tool/schedule" "$1" "$2" "$(($(wall_us) + $3 * 1000))" >"$work/plan"
}
# plan_dq: the plan as dq's tasks.
plan_dq()
{
    awk '{
        printf "{\"tag\":\"bench\",\"body\":\"%s\",\"at\":\"@%s.%s\"}\n", $1, substr($1, 1, 10), substr($1, 11, 3)
    }' \
        "$work/plan" >"$work/plan.ndjson"
    "$bin/dq" add --from "$work/plan.ndjson" >/dev/null 2>&1
}

stamps=$work/stamps
stamped() { [ -e "$stamps" ] && [ "$(stat -c %s "$stamps")" -ge "$(($1 * 16))" ]; }
# lateness ROW KIND WHO COUNT: waits for so many stamps and records p50, p99 and the last start.
lateness()
{
    local n p50 p99 most last
    wait_until stamped "$4" || { say "$3: only $(($(stat -c %s "$stamps") / 16)) of $4 started"; return 1; }
    read -r n p50 p99 most last < <("$tool/late" "$stamps")
    say "  $3: $n started, p50 $p50 p99 $p99 max $most last $last ms"
    record "$1-p50" "$2" "$3" "$p50"
    record "$1-p99" "$2" "$3" "$p99"
    record "$1-last" "$2" "$3" "$last"
    rm -f "$stamps"
}

# dq_lateness ROW WHO COUNT SPAN_MS: planned starts of tag bench through a resident dqd, and its statements per task.
dq_lateness()
{
    local statements
    start_dqd
    plan "$3" "$4" 1500
    plan_dq
    statements=$(status Questions)
    lateness "$1" dq "$2" "$3"
    stop_dqd
    statements=$(($(status Questions) - statements - 1))
    record "$1-statements" dq "$2" "$(awk -v s="$statements" -v n="$3" 'BEGIN { printf "%.2f", s / n }')"
}

# cpu_us PID...: processor time used so far, all threads.
cpu_us()
{
    local pid
    for pid; do cat /proc/"$pid"/task/*/schedstat; done | awk '{ ns += $1 } END { printf "%d\n", ns / 1000 }'
}
dqd_pids() { echo "$dqd_pid"; pgrep -P "$dqd_pid"; }
# status NAME: a counter of the server.
status() { sql "SHOW GLOBAL STATUS LIKE '$1'" | cut -f 2; }

# ---- the table

print_machine()
{
    printf '\n%s, %s cores, %s; %s; %s\n' "$(. /etc/os-release; echo "$PRETTY_NAME")" "$(nproc)" "$(uname -r)" \
        "$(sql 'SELECT VERSION()')" "$("$bin/dq" version | awk '{ print $1, $2; exit }')"
    printf 'medians of %s rounds, load at the end %s\n\n' "$rounds" "$(cut -d' ' -f1-3 /proc/loadavg)"
}

# Targets by row: what dq's median is compared with, the factor, and whether more is better.
print_table()
{
    print_machine
    awk -F '\t' -v before="$against" -f "$here/median.awk" -f "$here/table.awk" "$here/targets.tbl" "$results"
}
