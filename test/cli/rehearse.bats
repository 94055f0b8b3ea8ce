# dq rehearse: a handler in this terminal, as dqd would run it.

load ../lib/sandbox

setup() { sandbox_clear; }

# rehearses STATUS TEXT ARG...: the exit status, and a part of what is said on standard error
rehearses()
{
    local rc=0
    dq rehearse "${@:3}" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    echo "exit $rc: $(cat "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err")"
    [ "$rc" -eq "$1" ]
    grep -qF -- "$2" "$BATS_TEST_TMPDIR/err"
}

all_rows() { sql 'SELECT * FROM dq_task; SELECT * FROM dq_attempt; SELECT * FROM dq_event'; }

@test 'the handler has the environment, directory, limits and input that dqd gives it' {
    write_handlers <<'END'
handlers:
  t:
    run: |
      env | grep -v ^DQ_TOKEN= | sort
      pwd; umask; ulimit -n; nice; id; ps -o tty= -p $$
      readlink /proc/self/fd/0 | cut -c 1-10
      cat
    cwd: /usr
    umask: 027
    nice: 3
    env: {SHOP: main}
END
    id=$(printf 'a\0b\n' | dq -q add t - --key k)
    rehearses 0 'dqd would record: done' "$id"
    [ "$(sql 'SELECT status, version, attempt FROM dq_task')" = $'0\t0\t0' ]
    dqd
    dq logs "$id" >"$BATS_TEST_TMPDIR/real"
    diff -a "$BATS_TEST_TMPDIR/real" "$BATS_TEST_TMPDIR/out"
    grep -qax "DQ_ID=$id" "$BATS_TEST_TMPDIR/real"
    grep -qax 'DQ_KEY=k' "$BATS_TEST_TMPDIR/real"
    grep -qax "DQ_RUN_ID=$id" "$BATS_TEST_TMPDIR/real"
    grep -qax '/usr' "$BATS_TEST_TMPDIR/real"
    dq rehearse "$id" 2>/dev/null | grep -qax "DQ_RUN_ID=$id-1" # it is done: as after dq retry
}

@test 'the end of the handler is judged as dqd would judge it, and changes no row' {
    write_handlers <<'END'
defaults: {retry: [5s, 30s]}
handlers:
  again: {run: "echo no luck >&2; exit 75"}
  never: {run: "exit 65"}
  once: {run: "exit 1", retry: []}
  killed: {run: "kill -9 $$"}
  slow: {run: "sleep 60", timeout: 100ms}
  patient: {run: "sleep 0.3", timeout: 100ms}
  absent: {run: [/nonexistent/program]}
END
    declare -A id
    for tag in again never once killed slow patient absent; do id[$tag]=$(dq -q add "$tag" --in 1h); done
    all_rows >"$BATS_TEST_TMPDIR/before"
    rehearses 75 'dqd would retry in 5s (attempt 2 of 3): exit status 75: no luck' "${id[again]}"
    rehearses 65 'dqd would record: failed permanently: exit status 65' "${id[never]}"
    rehearses 1 'dqd would record: failed, in the last of 1 attempts: exit status 1' "${id[once]}"
    rehearses 137 'attempt 2 of 3): signal 9' "${id[killed]}"
    rehearses 143 'timed out after 100ms' "${id[slow]}"
    rehearses 143 'timed out after 200ms' "${id[slow]}" --timeout 200ms
    rehearses 0 'done' "${id[patient]}" --timeout 0
    rehearses 126 'cannot be started: exec /nonexistent/program: No such file' "${id[absent]}"
    all_rows | diff "$BATS_TEST_TMPDIR/before" -
    sql "UPDATE dq_task SET attempt = 2"
    rehearses 75 'dqd would record: failed, in the last of 3 attempts' "${id[again]}"
    sql "UPDATE dq_task SET status = 2"
    rehearses 75 'attempt 2 of 3' "${id[again]}"
    rehearses 1 'does not exist' 999999
}

@test 'a tag and a body are rehearsed without a task, and without a database' {
    write_handlers <<'END'
handlers: {"t.*": {run: "echo $DQ_TAG $DQ_KEY $DQ_ATTEMPT $DQ_MAX_ATTEMPTS; cat"}}
END
    own_ini 's/^socket = .*/socket = \/nonexistent/'
    export DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini
    rehearses 0 done --tag t.x hello --key k
    [ "$(cat "$BATS_TEST_TMPDIR/out")" = $'t.x k 1 10\nhello' ]
    echo world | rehearses 0 done --tag t.x -
    [ "$(tail -n 1 "$BATS_TEST_TMPDIR/out")" = world ]
    rehearses 1 'has no handler for the tag other' --tag other
    rehearses 64 'give the id of a task, or --tag'
    rehearses 64 '--key requires --tag' 1 --key k
    echo body >"$BATS_TEST_TMPDIR/body"
    rehearses 64 'standard input has data, and no BODY is given' --tag e <"$BATS_TEST_TMPDIR/body"
    rehearses 69 '/nonexistent' 1
}

@test 'a batch handler gets one line, and its verdict counts' {
    write_handlers <<'END'
handlers:
  b: {batch: 10, run: "read -r line; echo \"$line\" >&2; echo '{\"id\":ID,\"result\":\"VERDICT\",\"error\":\"busy\"}'"}
END
    id=$(dq -q add b body)
    for case in 'done 0 done' 'retry 75 dqd would retry in 5s (attempt 2 of 10): busy' 'fail 1 permanently: busy'; do
        read -r verdict status text <<<"$case"
        sed "s/ID/$id/; s/VERDICT/$verdict/" -i.old "$DQ_HANDLERS"
        rehearses "$status" "$text" "$id"
        grep -q "^{\"id\":$id,\"tag\":\"b\",.*\"body\":\"body\"}\$" "$BATS_TEST_TMPDIR/out"
        mv "$DQ_HANDLERS.old" "$DQ_HANDLERS"
    done
    sed 's/ID/0/; s/VERDICT/retry/' -i "$DQ_HANDLERS"
    rehearses 75 'dqd would retry in 5s (attempt 2 of 10): busy' --tag b body
    grep -q '^{"id":0,"tag":"b",.*"body":"body"}$' "$BATS_TEST_TMPDIR/out"
}

@test 'long output comes whole, and on a terminal it is inert' {
    write_handlers <<'END'
handlers:
  long: {run: "seq 1 1000000; seq 1 3 >&2"}
  lines: {run: "cat >/dev/null; seq 1 1000000 >&2", batch: 10}
  colour: {run: "printf '\\033[31mred\\n'"}
END
    for tag in long lines; do
        dq rehearse --tag "$tag" >"$BATS_TEST_TMPDIR/out"
        { seq 1 1000000; [ "$tag" = lines ] || seq 1 3; } | cmp - "$BATS_TEST_TMPDIR/out"
    done
    "$DQ_TOP/test/lib/terminal" 80 "$DQ_BIN/dq" -q rehearse --tag colour </dev/null >"$BATS_TEST_TMPDIR/seen"
    [ "$(tr -d '\r' <"$BATS_TEST_TMPDIR/seen")" = '\x1B[31mred' ]
}

@test 'a handler that waits for a reader is timed out and stopped nevertheless' {
    write_handlers <<END
handlers:
  timeout: {run: "echo \$\$ >$BATS_TEST_TMPDIR/pid; exec yes", timeout: 500ms}
  interrupt: {run: "echo \$\$ >$BATS_TEST_TMPDIR/pid; exec yes", timeout: 10m}
END
    mkfifo "$BATS_TEST_TMPDIR/pipe"
    has_ended() { ! kill -0 "$(cat "$BATS_TEST_TMPDIR/pid")" 2>/dev/null; }
    is_full() { python3 -c 'import select, sys; sys.exit(bool(select.select([], [9], [], 0)[1]))'; }
    for case in 'timeout 143' 'interrupt 130'; do
        read -r tag status <<<"$case"
        fresh "$BATS_TEST_TMPDIR/pid"
        exec 9<>"$BATS_TEST_TMPDIR/pipe"
        "$DQ_BIN/dq" rehearse --tag "$tag" >"$BATS_TEST_TMPDIR/pipe" 2>"$BATS_TEST_TMPDIR/err" 3>&- 9>&- &
        pid=$!
        wait_until is_full
        [ "$tag" = timeout ] || kill -INT "$pid"
        wait_until has_ended
        kill -0 "$pid"
        exec 8<"$BATS_TEST_TMPDIR/pipe" 9>&-
        cat <&8 >"$BATS_TEST_TMPDIR/out"
        exec 8<&-
        rc=0
        wait "$pid" || rc=$?
        cat "$BATS_TEST_TMPDIR/err"
        [ "$rc" -eq "$status" ]
        [ "$(sort -u "$BATS_TEST_TMPDIR/out")" = y ]
    done
}

@test 'an interrupt stops the handler' {
    write_handlers <<END
handlers: {t: {run: "trap 'echo stopped; exit 0' TERM; echo begun; while :; do sleep 0.05; done"}}
END
    "$DQ_BIN/dq" rehearse --tag t >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    pid=$!
    wait_until grep -qx begun "$BATS_TEST_TMPDIR/out"
    kill -INT "$pid"
    rc=0
    wait "$pid" || rc=$?
    [ "$rc" -eq 130 ]
    cat "$BATS_TEST_TMPDIR/out"
    grep -qx stopped "$BATS_TEST_TMPDIR/out"
    grep -qx 'interrupted; nothing was changed' "$BATS_TEST_TMPDIR/err"
}

@test 'a handler of another account needs root: nothing is run without it' {
    dir=$(mktemp -d)
    chmod 755 "$dir"
    account=root
    as=()
    [ "$(id -u)" -ne 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    echo "handlers: {t: {run: 'touch $dir/ran', user: $account}}" >"$dir/handlers.yaml"
    printf '[mysql]\nsocket = /nonexistent\n[dqd]\nhandlers = %s/handlers.yaml\n' "$dir" >"$dir/dq.ini"
    chmod 644 "$dir"/*
    cp "$DQ_BIN/dq" "$dir/dq"
    rc=0
    "${as[@]}" "$dir/dq" --config "$dir/dq.ini" rehearse --tag t >"$BATS_TEST_TMPDIR/out" 2>&1 || rc=$?
    cat "$BATS_TEST_TMPDIR/out"
    [ "$rc" -eq 77 ]
    grep -q 'runs as root, and only root can become another account; nothing was run' "$BATS_TEST_TMPDIR/out"
    [ ! -e "$dir/ran" ]
    rm -r "$dir"
}
