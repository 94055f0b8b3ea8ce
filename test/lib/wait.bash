# wait_until CMD... polls until CMD succeeds. It fails when CMD is not true and a process that this shell has started in
# the background has ended: what has ended brings nothing about any more. A process that was waited for, or ended with
# TERM or KILL, does not count. Otherwise it fails after a limit that only a hang reaches, also on a slow machine.
# Sourced.
#
#   wait_limit          the limit, in seconds: 300
#   wait_pause          between two tries: 0.05, later 0.2: a try takes a hundredth of a second of a processor

# bats notes a trace of the stack before each command, for the report of a failure. That takes as long as starting a
# program. When a command fails, bash knows the line, too.
if declare -F bats_setup_tracing bats_debug_trap bats_error_trap >/dev/null; then
    eval "traced_$(declare -f bats_setup_tracing)"
    returns() { return "$1"; }
    bats_setup_tracing()
    {
        traced_bats_setup_tracing
        trap - DEBUG
        BATS_DEBUG_LAST_STACK_TRACE=() BATS_DEBUG_LASTLAST_STACK_TRACE=() # of exit, there is none
        trap 'failed=$?; bats_debug_trap "$BASH_SOURCE"; BATS_DEBUG_LAST_STACK_TRACE_IS_VALID=1
            returns "$failed" || bats_error_trap' ERR
    }
fi

# The jobs in bash's table are those that were not waited for.
job_ids() { LC_ALL=C jobs -l | sed -nE 's/^\[[0-9]+\].? +([0-9]+) .*/\1/p'; }

# crashed_last PID...: the last job has crashed. It is not in the table, PID..., any more, but bash knows its status.
crashed_last()
{
    local status=0
    [[ ${!-} && " $* " != *" $! "* ]] && ! kill -0 "$!" 2>/dev/null || return
    wait "$!" 2>/dev/null || status=$?
    [[ $status == 13[2-69] ]]
}

# still_run PID...: sets living to those that do. Fails when another one has ended; sets ended.
still_run()
{
    local pid status
    living=''
    for pid; do
        if kill -0 "$pid" 2>/dev/null; then
            living+=" $pid"
            continue
        fi
        status=0
        wait "$pid" 2>/dev/null || status=$?
        [[ $status == @(137|143) ]] || { ended="process $pid, with status $status"; return 1; }
    done
}

wait_until()
{
    local end=$((SECONDS + ${wait_limit:-300})) pids living ended tries=0 pause
    pids=$(job_ids)
    # shellcheck disable=SC2086 # words
    if crashed_last $pids; then pids+=" $!"; fi
    until "$@"; do
        # shellcheck disable=SC2086
        if ! still_run $pids; then
            if "$@"; then return; fi # it came true meanwhile
            printf 'wait_until: in the background has ended: %s\nand still not true is: %s\n' "$ended" "$*" >&2
            return 1
        fi
        pids=$living
        if [ "$SECONDS" -ge "$end" ]; then
            echo "wait_until: after ${wait_limit:-300} s still not true: $*" >&2
            return 1
        fi
        case $((tries += 1)) in
        ?) pause=0.1 ;;
        [12]?) pause=0.2 ;;
        *) pause=0.4 ;;
        esac
        sleep "${wait_pause:-$pause}"
    done
}
