# wait_until CMD... polls until CMD succeeds. It fails when CMD is not true and a process that this shell has started in
# the background has ended: what has ended brings nothing about any more. A process that was waited for, or ended with
# TERM or KILL, does not count. Otherwise it fails after a limit that only a hang reaches, also on a slow machine.
# Sourced.
#
#   wait_limit          the limit, in seconds: 300
#   wait_pause          between two tries: 0.05

# a_job_has_ended PID...: sets ended. Bash keeps ended jobs in its table until `wait` has returned their status; of a
# crash it keeps the status alone.
a_job_has_ended()
{
    local pid status
    ended=$(LC_ALL=C jobs -l | grep -E '^\[[0-9]+\].? +[0-9]+ ' |
        grep -vE '^\S+ +[0-9]+ (Running|Stopped|Terminated|Killed)\b') && return
    for pid; do
        if ! kill -0 "$pid" 2>/dev/null; then
            status=0
            wait "$pid" 2>/dev/null || status=$?
            [[ $status == 13[2-69] ]] && ended="process $pid, by signal $((status - 128))" && return
        fi
    done
    return 1
}

wait_until()
{
    local end=$((SECONDS + ${wait_limit:-300})) ended pids
    pids="$(jobs -p) ${!-}"
    until "$@"; do
        # shellcheck disable=SC2086 # words
        if a_job_has_ended $pids; then
            if "$@"; then return; fi # it came true meanwhile
            printf 'wait_until: in the background has ended:\n%s\nand still not true is: %s\n' "$ended" "$*" >&2
            return 1
        fi
        if [ "$SECONDS" -ge "$end" ]; then
            echo "wait_until: after ${wait_limit:-300} s still not true: $*" >&2
            return 1
        fi
        sleep "${wait_pause:-0.05}"
    done
}
