# kept.bash - row B13: handlers that stay, beside a process for each task of the same program.

# kept ROW KIND WHO COUNT HANDLER: a drain.
kept()
{
    handlers "  bench: {$5}" ''
    empty
    due "$4"
    record "$1" "$2" "$3" "$(once "$4")"
}

# idle_memory: of eight, in MB, once dqd has said that none is busy.
idle_memory()
{
    "$bin/dq" pollers -v -o json | sed -n 's/.*"kept":"0 busy, 8 idle, \([0-9]*\) MB.*/\1/p' | grep .
}

b13()
{
    local n=$((100000 / scale)) php=/usr/bin/php python=/usr/bin/python3
    kept B13-c dq 'keep: 2' "$n" "run: $tool/kept, keep: 2, recycle: {tasks: 1000000}"
    comparing && return
    empty
    "$tool/raw" insert "$n" 1000 20 >/dev/null
    record B13-c limit 'claim and finish, 500 a statement' "$("$tool/raw" settle "$n" 500)"
    kept B13-c naive 'a process each' "$((n / 20))" "run: /bin/true"
    kept B13-python naive 'a process each' "$((n / 250))" "run: [$python, $here/kept.py]"
    kept B13-python dq 'keep: 2' "$n" "run: [$python, $here/kept.py, stay], keep: 2"
    kept B13-php naive 'a process each' "$((n / 500))" "run: [$php, $here/kept.php]"
    kept B13-php dq 'keep: 2' "$((n / 20))" "run: [$php, $here/kept.php, stay], keep: 2"
    plan "$((n / 50))" "$((n / 5))" 1500
    "$tool/kept" -s "$stamps" <"$work/plan"
    lateness B13 limit 'a bare sleep' "$((n / 50))"
    handlers "  bench: {run: $tool/kept $stamps, keep: 2}" ''
    empty
    dq_lateness B13 'dqd --resident' "$((n / 50))" "$((n / 5))"
    handlers "  bench: {run: [$php, $here/kept.php, stay], keep: 8}" ''
    empty
    start_dqd
    due 2000
    wait_until idle_memory >/dev/null
    record B13-idle dq 'dq pollers -v' "$(idle_memory)"
    record B13-idle limit 'one PHP, eight times' "$(pgrep -f "$here/kept.php" | head -n 1 | xargs ps -o rss= -p |
        awk '{ print $1 * 8 / 1024 }')"
    stop_dqd
    flat B13-flat "run: $tool/kept, keep: 2" 1000000
}
