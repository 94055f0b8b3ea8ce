# wait_until CMD... polls until CMD succeeds. It fails when CMD is not true and a process that this shell has started in
# the background has ended: what has ended brings nothing about any more. A process that was waited for, or ended with
# TERM or KILL, does not count. Otherwise it fails after a limit that only a hang reaches, also on a slow machine.
# Sourced.
#
#   wait_limit          the limit, in seconds: 300
#   wait_pause          between two tries: 0.05

# sort_processes PID...: sets living and gone.
sort_processes()
{
    local pid
    living='' gone=''
    for pid; do
        if kill -0 "$pid" 2>/dev/null; then living+=" $pid"; else gone+=" $pid"; fi
    done
}

# a_process_has_ended PID...: whether one of these counts; sets ended. Their status is asked for only now, as `wait`
# returns it once.
a_process_has_ended()
{
    local pid status
    for pid; do
        status=0
        wait "$pid" 2>/dev/null || status=$?
        # 127: it was waited for
        [[ $status == @(127|137|143) ]] || { ended="process $pid, with status $status"; return; }
    done
    return 1
}

wait_until()
{
    local end=$((SECONDS + ${wait_limit:-300})) pids living gone ended
    pids="$(jobs -p) ${!-}"
    until "$@"; do
        # shellcheck disable=SC2086 # words
        sort_processes $pids
        pids=$living
        if [ "$gone" ]; then
            if "$@"; then return; fi # it came true meanwhile
            # shellcheck disable=SC2086
            if a_process_has_ended $gone; then
                printf 'wait_until: in the background has ended: %s\nand still not true is: %s\n' "$ended" "$*" >&2
                return 1
            fi
        fi
        if [ "$SECONDS" -ge "$end" ]; then
            echo "wait_until: after ${wait_limit:-300} s still not true: $*" >&2
            return 1
        fi
        sleep "${wait_pause:-0.05}"
    done
}
