# rows.bash - rows B1 to B6, B8: one round each. README says what they mean.

b1()
{
    local n=$((10000 / scale)) two four from
    if ! comparing; then
        two=$("$tool/starts" "$n" 2 :)
        four=$("$tool/starts" "$n" 4 :)
        record B1 limit 'posix_spawn of sh -c :' "$(printf '%s\n' "$two" "$four" | sort -n | tail -n 1)"
    fi
    handlers '  bench: {run: ":"}'
    empty
    due "$n"
    record B1 dq 'dqd --once' "$(once "$n")"
    if ! comparing; then
        two=$("$tool/starts" "$n" 2 /bin/true)
        four=$("$tool/starts" "$n" 4 /bin/true)
        record B1-program limit 'posix_spawn of /bin/true' "$(printf '%s\n' "$two" "$four" | sort -n | tail -n 1)"
    fi
    handlers '  bench: {run: /bin/true}' ''
    empty
    due "$n"
    record B1-program dq 'dqd --once' "$(once "$n")"
    comparing && return
    from=$(wall_us)
    seq "$n" | xargs -P2 -n1 sh -c :
    record B1 peer 'xargs -P2' "$(rate "$n" "$from")"
    start_beanstalkd "${beanstalkd_durable[@]}"
    "$tool/beanstalk" put "$n" 12345678901234567890 >/dev/null
    record B1 peer 'beanstalkd durable, 4 C workers' "$("$tool/beanstalk" work "$n" 4 :)"
    stop_peer
    start_beanstalkd
    "$tool/beanstalk" put "$n" 12345678901234567890 >/dev/null
    record B1 peer 'beanstalkd without its log, 4 C workers' "$("$tool/beanstalk" work "$n" 4 :)"
    stop_peer
    start_redis
    "$tool/redis" put "$n" 12345678901234567890 >/dev/null
    record B1 peer 'Redis list durable, 4 C workers' "$("$tool/redis" work "$n" 4 :)"
    stop_peer
    "$tool/naive" init
    repeat "$((n / 4))" "$(wall_us)" | "$tool/naive" fill >/dev/null
    record B1 naive 'one row at a time' "$("$tool/naive" drain "$((n / 4))" :)"
}

b2()
{
    local n=$((100000 / scale))
    if ! comparing; then
        empty
        "$tool/raw" insert "$n" 1000 20 >/dev/null
        record B2 limit 'claim and finish, 500 a statement' "$("$tool/raw" settle "$n" 500)"
    fi
    handlers "  bench: {run: $tool/answer, batch: 500}"
    empty
    due "$n"
    record B2 dq 'dqd --once, batch: 500' "$(once "$n")"
    comparing && return
    empty
    "$tool/raw" insert "$n" 1000 20 >/dev/null
    record B2 limit 'claim and finish, 4,000 a statement' "$("$tool/raw" settle "$n" 4000)"
    start_beanstalkd "${beanstalkd_durable[@]}"
    "$tool/beanstalk" put "$((n / 4))" 12345678901234567890 >/dev/null
    record B2 peer 'beanstalkd durable, 4 connections' "$("$tool/beanstalk" work "$((n / 4))" 4)"
    stop_peer
    start_redis
    "$tool/redis" put "$((n / 4))" 12345678901234567890 >/dev/null
    record B2 peer 'Redis list durable, 4 connections' "$("$tool/redis" work "$((n / 4))" 4)"
    stop_peer
    "$tool/naive" init
    repeat "$((n / 25))" "$(wall_us)" | "$tool/naive" fill >/dev/null
    record B2 naive 'one row at a time' "$("$tool/naive" drain "$((n / 25))")"
}

b3()
{
    local n=$((100000 / scale)) body from
    body=$(printf '%0100d' 7)
    [ -e "$work/bulk.$n" ] || repeat "$n" "{\"tag\":\"bench\",\"body\":\"$body\"}" >"$work/bulk.$n"
    if ! comparing; then
        empty
        record B3 limit 'multi-row INSERT of 1,000' "$("$tool/raw" insert "$n" 1000 100)"
    fi
    empty
    from=$(wall_us)
    "$bin/dq" add --from "$work/bulk.$n" >/dev/null 2>&1
    record B3 dq 'dq add --from, NDJSON' "$(rate "$n" "$from")"
    [ "$(count 'status = 0')" = "$n" ]
    comparing && return
    start_beanstalkd "${beanstalkd_durable[@]}"
    record B3 peer 'beanstalkd durable, pipelined' "$("$tool/beanstalk" put "$n" "$body")"
    stop_peer
    start_redis
    record B3 peer 'Redis list durable, pipelined' "$("$tool/redis" put "$n" "$body")"
    stop_peer
    "$tool/naive" init
    record B3 naive 'one row a statement' "$(repeat "$((n / 20))" "$(wall_us)" | "$tool/naive" fill)"
}

# each ROW KIND WHO COUNT COMMAND...: milliseconds a call, from a shell loop.
each()
{
    local row=$1 kind=$2 who=$3 n=$4 from i
    shift 4
    from=$(wall_us)
    for ((i = 0; i < n; i++)); do "$@" >/dev/null 2>&1; done
    record "$row" "$kind" "$who" \
        "$(awk -v n="$n" -v from="$from" -v to="$(wall_us)" 'BEGIN { printf "%.3f", (to - from) / 1000 / n }')"
}

b4()
{
    local n=$((200 / scale)) queue=k job
    if ! comparing; then
        "$tool/naive" init
        each B4 naive 'connect, insert, exit' "$n" "$tool/naive" add 12345678901234567890
    fi
    empty
    each B4 dq 'dq add' "$n" "$bin/dq" add bench 12345678901234567890
    [ "$(count 'status = 0')" = "$n" ]
    comparing && return
    build_static
    each B4-static naive 'connect, insert, exit' "$n" "$tool/naive" add 12345678901234567890
    each B4-static dq 'dq add' "$n" "$static/bin/dq" add bench 12345678901234567890
    export TS_SOCKET=$work/tsp.sock
    tsp true >/dev/null
    each B4 peer 'tsp (task-spooler, in memory)' "$n" tsp true
    tsp -K
    each B4 peer 'at' "$n" at -q "$queue" -f /dev/null now + 3 years
    for job in $(atq -q "$queue" | cut -f 1); do atrm "$job"; done
}

b5()
{
    local n=$((2000 / scale)) span=$((20000 / scale))
    handlers "  bench: {run: $tool/stamp $stamps}"
    empty
    dq_lateness B5 'dqd --resident' "$n" "$span"
    comparing && return
    start_beanstalkd
    "$tool/beanstalk" work "$n" 4 "$tool/stamp $stamps" >/dev/null &
    plan "$n" "$span" 1500
    "$tool/beanstalk" later <"$work/plan"
    lateness B5 peer 'beanstalkd without its log, 4 C workers' "$n"
    wait $!
    stop_peer
    "$tool/naive" init
    plan "$n" "$span" 3000
    "$tool/naive" fill <"$work/plan" >/dev/null
    "$tool/naive" poll 10 "$n" "$tool/stamp $stamps" >/dev/null
    lateness "$row" naive 'one row at a time, every 10 ms' "$n"
}

b6()
{
    local n=$((2000 / scale))
    if ! comparing; then
        "$tool/starts" -b "$n" 4 "$tool/stamp $stamps" >/dev/null
        lateness B6 limit 'bare starts of the same handler' "$n"
    fi
    handlers "  bench: {run: $tool/stamp $stamps}"
    empty
    dq_lateness B6 'dqd --resident' "$n" 0
    comparing && return
    start_beanstalkd
    "$tool/beanstalk" work "$n" 4 "$tool/stamp $stamps" >/dev/null &
    plan "$n" 0 2500
    "$tool/beanstalk" later 2000 <"$work/plan"
    lateness B6 peer 'beanstalkd without its log, 4 C workers' "$n"
    wait $!
    stop_peer
    "$tool/naive" init
    plan "$n" 0 3000
    "$tool/naive" fill <"$work/plan" >/dev/null
    "$tool/naive" poll 10 "$n" "$tool/stamp $stamps" >/dev/null
    lateness B6 naive 'one row at a time, every 10 ms' "$n"
}

# idle KIND WHO SECONDS PID...: processor and statements of these and the server while nothing is due.
idle()
{
    local kind=$1 who=$2 seconds=$3 cpu statements from
    shift 3
    statements=$(status Questions)
    cpu=$(cpu_us "$server_pid" "$@")
    from=$(wall_us)
    sleep "$seconds"
    cpu=$(($(cpu_us "$server_pid" "$@") - cpu))
    record B8-cpu "$kind" "$who" \
        "$(awk -v c="$cpu" -v from="$from" -v to="$(wall_us)" 'BEGIN { printf "%.4f", 100 * c / (to - from) }')"
    statements=$(($(status Questions) - statements - 1))
    record B8-statements "$kind" "$who" "$(rate "$statements" "$from")"
}

# adds ROW WHO COUNT CONFIG LEAST MORE: single adds that are due at once, by that configuration, at odd
# moments: after LEAST to LEAST + MORE milliseconds.
adds()
{
    local i
    for ((i = 0; i < $3; i++)); do
        "$bin/dq" add --config "$4" bench 0 >/dev/null 2>&1
        sleep "$(printf '0.%03d' $((RANDOM % $6 + $5)))"
    done
    lateness "$1" dq "$2" "$3"
}

# quiet_adds COUNT CONFIG: the same, each after a time without any in which the looks have become rare.
quiet_adds()
{
    local i statements from
    for ((i = 0; i < $1; i++)); do
        sleep 8 # an eighth of it is the longest poll_interval
        statements=$(status Questions)
        from=$(wall_us)
        sleep "$((RANDOM % 2 + 2)).$((RANDOM % 900 + 100))"
        record B8-quiet-statements dq 'dqd --resident, before each dq add' \
            "$(rate "$(($(status Questions) - statements - 1))" "$from")"
        "$bin/dq" add --config "$2" bench 0 >/dev/null 2>&1
    done
    lateness B8-quiet dq 'dqd --resident, dq add from elsewhere after a quiet time' "$1"
}

# idle_with KIND WHO SECONDS COMMAND...: the same with this command beside the server.
idle_with()
{
    local kind=$1 who=$2 seconds=$3 pid
    shift 3
    "$@" >/dev/null &
    pid=$!
    idle "$kind" "$who" "$seconds" "$pid"
    kill "$pid"
    wait "$pid" || true
}

b8()
{
    local seconds=$((20 / scale)) n=$((200 / scale))
    handlers "  bench: {run: $tool/stamp $stamps}"
    empty
    comparing || idle limit 'the server alone' "$seconds"
    start_dqd
    # shellcheck disable=SC2046  # words
    idle dq 'dqd --resident' "$seconds" $(dqd_pids)
    adds B8-add 'dqd --resident, dq add' "$n" "$DQ_CONFIG" 100 890
    if ! comparing; then
        "$tool/starts" -r "$n" "$tool/stamp $stamps"
        lateness B8-add limit 'a bare start of the same handler, after as long a rest' "$n"
    fi
    sed '/^wake_dir/d; s/^\[dqd\]/&\nwake_dir =/' "$DQ_CONFIG" >"$sandbox/unwoken.ini"
    adds B8-poll 'dqd --resident, ten dq add a second from elsewhere' "$n" "$sandbox/unwoken.ini" 40 110
    comparing || quiet_adds 5 "$sandbox/unwoken.ini"
    stop_dqd
    comparing && return
    "$tool/naive" init
    idle_with limit 'SELECT 1 every 200 ms' "$seconds" "$tool/raw" ask 200
    idle_with naive 'one row at a time, every 200 ms' "$seconds" "$tool/naive" poll 200 1 :
    idle_with naive 'one row at a time, every 10 ms' "$seconds" "$tool/naive" poll 10 1 :
}
