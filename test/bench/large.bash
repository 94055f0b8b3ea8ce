# large.bash - rows B7, B9 to B12: many rows, many dqd. One round each. README says what they mean.

finished=3000000 future=1000000 failed=1000000 day=86400

# in_large COMMAND...: the same with the schema that holds millions of other rows.
in_large() { database=dq_large DQ_CONFIG=$sandbox/large.ini "$@"; }

fill_large()
{
    [ ! -e "$work/large.filled" ] || [ ! -e "$sandbox/large.ini" ] || return 0
    say "filling a schema with $((finished / scale)) finished and $((future / scale)) future rows"
    rm -f "$sandbox/large.ini"
    (umask 077; sed 's/^database = dq$/database = dq_large/' "$sandbox/dq.ini" >"$sandbox/large.ini"
        printf '[retention]\ndone = never\n' >>"$sandbox/large.ini")
    sql 'DROP DATABASE IF EXISTS dq_large; CREATE DATABASE dq_large'
    in_large "$bin/dq" init >/dev/null
    in_large sql "INSERT INTO dq_task (tag, message_body, body_size, status, version, attempt, max_attempts,
                expected_time, execution_time, finish_time, create_time, update_time, exit_code, host, pid)
            SELECT IF(seq % 50, CONCAT('tag', seq % 50), 'bench'), REPEAT('x', 100), 100, 1, 2, 1, 10,
                t, t, t, t, t, 0, 'here', 1
            FROM (SELECT seq, UTC_TIMESTAMP(3) - INTERVAL ($((50 * day)) - seq) SECOND AS t
                FROM seq_1_to_$((finished / scale))) AS s;
        INSERT INTO dq_task (tag, message_body, body_size, expected_time, create_time)
            SELECT IF(seq % 50, CONCAT('tag', seq % 50), 'bench'), REPEAT('x', 100), 100,
                UTC_TIMESTAMP(3) + INTERVAL 1 DAY + INTERVAL seq SECOND, UTC_TIMESTAMP(3) - INTERVAL 12 DAY
            FROM seq_1_to_$((future / scale));
        ANALYZE TABLE dq_task" >/dev/null
    in_large "$bin/dq" add tag7 --key order-17 --in 1d >/dev/null
    touch "$work/large.filled"
}

# No deleted rows are left that the server has yet to purge.
is_purged()
{
    [ "$(mariadb --no-defaults --socket="$BENCH_SOCKET" --user=root --execute='SHOW ENGINE INNODB STATUS\G' |
        awk '/^History list length/ { print $4 }')" -lt 1000 ]
}

# old_snapshot open|close: a session that sees the table as it is now.
old_snapshot()
{
    if [ "$1" = open ]; then
        coproc SNAPSHOT {
            exec mariadb --no-defaults --socket="$BENCH_SOCKET" --user=dq --unbuffered --skip-column-names dq_large
        }
        {
            echo 'SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT;'
            echo 'SELECT 1 FROM dq_task LIMIT 1;'
        } >&"${SNAPSHOT[1]}"
        read -r _ <&"${SNAPSHOT[0]}"
    else
        kill "$SNAPSHOT_PID"
        wait "$SNAPSHOT_PID" || true
    fi
}

b7_both() # TABLE: "small table" or "large table"
{
    local n=$((10000 / scale)) many=$((100000 / scale)) kind=limit
    [ "$1" = 'small table' ] || kind=dq
    handlers '  bench: {run: ":"}'
    due "$n"
    record B7-B1 $kind "$1" "$(once "$n")"
    handlers "  bench: {run: $tool/answer, batch: 500}"
    due "$many"
    record B7-B2 $kind "$1" "$(once "$many")"
    [ "$1" = 'large table' ] || record B7-old $kind "$1" "$(tail -n 1 "$results" | cut -f 4)"
    handlers "  bench: {run: $tool/stamp $stamps}"
    dq_lateness B7 "$1" $((2000 / scale)) $((20000 / scale))
    sed -n 's/^B7-p99\t[a-z]*\tsmall table\t/B7-oldp99\tlimit\tsmall table\t/p' "$results" | tail -n 1 >"$work/copied"
    [ "$1" = 'large table' ] || cat "$work/copied" >>"$results"
}

b7()
{
    local million=$((1000000 / scale))
    fill_large
    empty
    b7_both 'small table'
    wait_until is_purged
    in_large b7_both 'large table'
    old_snapshot open
    handlers "  bench: {run: $tool/answer, batch: 500}"
    in_large due "$million"
    record B7-old dq 'large table' "$(in_large once "$million")"
    handlers "  bench: {run: $tool/stamp $stamps}"
    in_large dq_lateness B7-old 'large table' $((2000 / scale)) $((20000 / scale))
    sed -n 's/^B7-old-p99\t/B7-oldp99\t/p' "$results" | tail -n 1 >"$work/copied"
    cat "$work/copied" >>"$results"
    old_snapshot close
    wait_until is_purged
}

is_done() { [ -z "$(sql 'SELECT 1 FROM dq_task WHERE status IN (0, 3) LIMIT 1')" ]; }
wait_until_done() { wait_pause=0.05 wait_until is_done; }

# know_each_other COUNT: so many dqd have sent a heartbeat since the last of them came.
know_each_other()
{
    [ "$(sql 'SELECT COUNT(*) FROM dq_poller
        WHERE last_seen > (SELECT MAX(start_time) FROM dq_poller) + INTERVAL 1 SECOND')" = "$1" ]
}

b9()
{
    local n=$((400000 / scale)) k i from rate base=0 pids most=0 lost
    local who=('' 'one dqd' 'two dqd' '' 'four dqd' '' '' '' 'eight dqd')
    handlers "  bench: {run: $tool/answer, batch: 500}"
    for k in 1 2 4 8; do
        empty
        pids=()
        for ((i = 0; i < k; i++)); do
            "$bin/dqd" --resident --log-level debug 2>"$work/dqd.$i.log" &
            pids+=($!)
        done
        wait_until know_each_other "$k"
        due "$n"
        from=$(wall_us)
        wait_until_done
        rate=$(rate "$n" "$from")
        kill "${pids[@]}"
        wait "${pids[@]}" || true
        lost=$(cat "$work"/dqd.*.log | sed -n 's/.*claimed.* tasks=\([0-9]*\) lost=\([0-9]*\).*/\1 \2/p' |
            awk '{ won += $1; lost += $2 } END { printf "%.2f", won + lost ? 100 * lost / (won + lost) : 0 }')
        rm -f "$work"/dqd.*.log
        say "  ${who[k]}: $rate tasks/s, $lost % lost"
        if [ "$k" = 1 ]; then
            base=$rate
        else
            record "B9-$k" limit 'one dqd' "$base"
            record "B9-$k" dq "${who[k]}" "$rate"
        fi
        most=$(printf '%s\n' "$most" "$lost" | sort -n | tail -n 1)
    done
    record B9-lost dq 'two to eight dqd' "$most"
}

# memory FIELD: of dqd's processes, in MB.
memory()
{
    local pid
    for pid in $(dqd_pids | head -n 2); do cat "/proc/$pid/status"; done |
        awk -v f="$1:" '$1 == f { kb += $2 } END { print kb / 1024 }'
}

all_run() { [ "$(pgrep -c -f '^sleep 1000$')" -ge 64 ]; }
has_taken_signal() { grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/$dqd_pid/status"; }

# flat ROW HANDLER COUNT: how much the peak of memory grows from a drain of 100,000 tasks to one of so many.
flat()
{
    local first
    handlers "  bench: {$2}"
    empty
    start_dqd
    due $((100000 / scale))
    wait_until_done
    first=$(memory VmHWM)
    due $(($3 / scale))
    wait_until_done
    record "$1" dq 'dqd --resident' "$(awk -v a="$first" -v b="$(memory VmHWM)" 'BEGIN { printf "%.2f", b - a }')"
    stop_dqd
}

b10()
{
    local n=$((1000000 / scale))
    handlers '  bench: {run: [sleep, "1000"], max_running: 64}'
    empty
    due "$n"
    start_dqd --slots 90
    wait_until all_run
    record B10-rss dq 'dqd --resident --slots 90' "$(memory VmRSS)"
    kill "$dqd_pid"
    wait_until has_taken_signal
    stop_dqd # the second signal kills its handlers
    flat B10-flat "run: $tool/answer, batch: 500" 400000
}

b11()
{
    local n=$((1000 / scale)) span=$((10000 / scale)) row alone million=$((1000000 / scale))
    handlers "  bench: {run: $tool/stamp $stamps}"
    empty
    dq_lateness B11 alone "$n" "$span"
    alone=$(awk -F '\t' '$1 == "B11-p99" { v = $4 } END { print v }' "$results")
    due "$million" dead
    for row in orphan paused limit; do
        case $row in
        orphan) handlers "  bench: {run: $tool/stamp $stamps}" ;;
        paused)
            handlers "  bench: {run: $tool/stamp $stamps}"$'\n''  dead: {run: ":"}'
            "$bin/dq" pause dead >/dev/null 2>&1
            ;;
        limit)
            "$bin/dq" resume dead >/dev/null 2>&1
            handlers "  bench: {run: $tool/stamp $stamps}
  dead: {run: [sleep, '1000'], timeout: 1h, max_running: 1}"
            ;;
        esac
        dq_lateness B11 "$row" "$n" "$span"
        record "B11-$row" limit alone "$alone"
        record "B11-$row" dq 'dqd --resident' "$(awk -F '\t' '$1 == "B11-p99" { v = $4 } END { print v }' "$results")"
    done
}

# Failed tasks, one a second until now, with their attempts, beside what fill_large stores.
fill_failed()
{
    [ -z "$(in_large sql 'SELECT 1 FROM dq_task WHERE status = 2 LIMIT 1')" ] || return 0
    say "adding $((failed / scale)) failed rows"
    in_large sql "INSERT INTO dq_task (tag, message_body, body_size, status, version, attempt, max_attempts,
                expected_time, execution_time, finish_time, create_time, update_time, exit_code, host, pid,
                error_stack)
            SELECT CONCAT('tag', seq % 49 + 1), REPEAT('x', 100), 100, 2, 2, 1, 1, t, t, t, t, t, 1,
                CONCAT('web', seq % 10), 1,
                CONCAT('exit status 1: order ', seq, ' refused by gateway ', seq % 40)
            FROM (SELECT seq, UTC_TIMESTAMP(3) - INTERVAL $((failed / scale)) - seq SECOND AS t
                FROM seq_1_to_$((failed / scale))) AS s;
        INSERT INTO dq_attempt (task_id, version, attempt, host, pid, start_time, finish_time, outcome, exit_code,
                error_stack)
            SELECT id, 2, 1, host, 1, execution_time, finish_time, 'exit', 1, error_stack
            FROM dq_task WHERE status = 2;
        ANALYZE TABLE dq_task, dq_attempt" >/dev/null
}

# What an operator asks, from doc/operating: a command a line, about a tag and a task of this table.
questions()
{
    local id
    id=$(in_large sql 'SELECT MAX(id) FROM dq_task WHERE status = 2')
    sed -n 's/^        \(dq .*\)/\1/p' "$top/doc/operating" |
        sed "s/ ID$/ $id/; s/slow.export\|pay.charge\|newsletter/tag7/"
}

# ask COMMAND: its answer matters to nobody; check says with its status that tags are not served.
ask() { PATH=$bin:$PATH in_large bash -c "$1" >/dev/null 2>&1 || true; }

# ask_for_ever QUESTIONS: one after the other, 0.2 s apart.
ask_for_ever()
{
    local question
    while :; do
        while read -r question; do
            ask "$question"
            sleep 0.2
        done <<<"$1"
    done
}

# burn_for_ever FILE: does nothing but keep a processor busy, as long and as often as the questions take, whose times in
# ms the file has.
burn_for_ever()
{
    local ms
    while :; do
        while read -r ms; do
            timeout "$(awk -v ms="$ms" 'BEGIN { print ms / 1000 }')" yes >/dev/null || true
            sleep 0.2
        done <"$1"
    done
}

# lateness_of WORD: that of B12 which was recorded last.
lateness_of() { awk -F '\t' -v row="B12-$1" '$1 == row { v = $4 } END { print v }' "$results"; }

# kind_of QUESTION: its row; some count tasks.
kind_of()
{
    case $1 in
    'dq tags' | 'dq stats'* | 'dq errors'* | 'dq forecast'* | 'dq check'*) echo B12-count ;;
    *) echo B12-ask ;;
    esac
}

b12()
{
    local n=$((2000 / scale)) span=$((20000 / scale)) all question i from beside took
    fill_large
    fill_failed
    handlers "  bench: {run: $tool/stamp $stamps}"
    all=$(questions)
    : >"$work/asked"
    while read -r question; do
        for i in 0 1 2 3 4 5; do
            from=$(wall_us)
            ask "$question"
            [ "$i" = 0 ] || echo "$(($(wall_us) - from))"
        done | sort -n | awk 'NR == 3 { printf "%.1f\n", $1 / 1000 }' >"$work/took"
        took=$(cat "$work/took")
        record "$(kind_of "$question")" dq "$question" "$took"
        echo "$took" >>"$work/asked"
    done <<<"$all"
    in_large dq_lateness B12 alone "$n" "$span"
    record B12-late limit alone "$(lateness_of p50)"
    burn_for_ever "$work/asked" &
    beside=$!
    in_large dq_lateness B12 'beside a busy processor' "$n" "$span"
    stop_beside "$beside"
    record B12-tail limit 'beside a busy processor' "$(lateness_of p99)"
    ask_for_ever "$all" &
    beside=$!
    in_large dq_lateness B12 'beside operators' "$n" "$span"
    stop_beside "$beside"
    record B12-late dq 'beside the questions' "$(lateness_of p50)"
    record B12-tail dq 'beside the questions' "$(lateness_of p99)"
}

stop_beside()
{
    kill "$1"
    wait "$1" 2>/dev/null || true
}
