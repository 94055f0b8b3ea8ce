#!/usr/bin/env bats
# One pass of dqd, as a timer runs it.

load ../lib/sandbox
setup() { sandbox_clear; }

status_of() { sql "SELECT status FROM dq_task WHERE id = $1"; }

@test "a pass runs tasks until none is due, and none before its time" {
    write_handlers <<'END'
handlers:
  t:
    run: cat
END
    a=$(dq add t one) b=$(dq add t two --in 1h) c=$(dq add t three)
    dqd
    [ "$(status_of "$a") $(status_of "$b") $(status_of "$c")" = '1 0 1' ]
    [ "$(sql "SELECT attempt, execution_time FROM dq_task WHERE id = $b")" = $'0\tNULL' ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_attempt')" = 0 ]
    [ "$(sql "SELECT output, exit_code, host IS NOT NULL FROM dq_task WHERE id = $a")" = $'one\t0\t1' ]
}

@test "a task added by a handler runs in the same pass" {
    write_handlers <<END
handlers:
  parent:
    run: DQ_CONFIG=$DQ_CONFIG $DQ_BIN/dq add child
  child:
    run: 'true'
END
    dq add parent
    dqd
    [ "$(sql 'SELECT GROUP_CONCAT(tag, status ORDER BY id) FROM dq_task')" = parent1,child1 ]
}

@test "a pass runs 2,000 tasks once each" {
    write_handlers <<END
handlers:
  t:
    run: echo \$DQ_ID >>$BATS_TEST_TMPDIR/ran
END
    for i in $(seq 2000); do echo '{"tag":"t"}'; done | dq add --from -
    dqd
    [ "$(wc -l <"$BATS_TEST_TMPDIR/ran")" = 2000 ]
    [ "$(sort "$BATS_TEST_TMPDIR/ran" | uniq -d | wc -l)" = 0 ]
    [ "$(sql 'SELECT status, COUNT(*) FROM dq_task GROUP BY status')" = $'1\t2000' ]
}

@test "a handler gets its environment and the body on stdin" {
    write_handlers <<END
handlers:
  t:
    run: env >$BATS_TEST_TMPDIR/env; cat >$BATS_TEST_TMPDIR/body
    env: {SHOP: main}
END
    head -c 300000 /dev/urandom >"$BATS_TEST_TMPDIR/in"
    id=$(SECRET=hidden dq add t --key 'k 1' @"$BATS_TEST_TMPDIR/in")
    SECRET=hidden dqd
    cmp "$BATS_TEST_TMPDIR/in" "$BATS_TEST_TMPDIR/body"
    grep -qx "DQ_ID=$id" "$BATS_TEST_TMPDIR/env"
    grep -qx DQ_TAG=t "$BATS_TEST_TMPDIR/env"
    grep -qx 'DQ_KEY=k 1' "$BATS_TEST_TMPDIR/env"
    grep -qx DQ_ATTEMPT=1 "$BATS_TEST_TMPDIR/env"
    grep -qx DQ_MAX_ATTEMPTS=10 "$BATS_TEST_TMPDIR/env"
    grep -qx DQ_TOKEN=1 "$BATS_TEST_TMPDIR/env"
    grep -qx SHOP=main "$BATS_TEST_TMPDIR/env"
    grep -qx 'DQ_EXPECTED_TIME=20[0-9T:.-]*Z' "$BATS_TEST_TMPDIR/env"
    refute grep SECRET "$BATS_TEST_TMPDIR/env"
    grep -qx "DQ_CONFIG=$DQ_CONFIG" "$BATS_TEST_TMPDIR/env"
}

@test "tasks of a tag without a handler stay pending, are reported, and delay no other tag" {
    write_handlers <<'END'
handlers:
  known:
    run: 'true'
END
    dq add nobody
    dq add known
    run dqd
    [ "$status" = 0 ]
    [[ $output == *'no handler here'*tag=nobody* ]]
    [ "$(sql 'SELECT GROUP_CONCAT(tag, status, attempt ORDER BY id) FROM dq_task')" = nobody00,known11 ]
    dqd # two passes are those of a timer, which will come again
    dq tags
    dq tags | grep -q 'nobody.*none'
}

# bats test_tags=bare
@test "a task whose handler cannot be started is given back without using up an attempt" {
    write_handlers <<'END'
handlers:
  missing:
    run: [/nonexistent/program]
  notfound:
    run: no-such-command-anywhere
  nodir:
    run: 'true'
    cwd: /nonexistent
  fine:
    run: 'true'
END
    for t in missing notfound nodir fine; do dq add $t; done
    run dqd
    [ "$status" = 0 ]
    [ "$(sql 'SELECT GROUP_CONCAT(tag, status, attempt ORDER BY id) FROM dq_task')" = \
        missing00,notfound00,nodir00,fine11 ]
    [ "$(grep -c 'cannot be started' <<<"$output")" = 3 ]
    [[ $output == *tag=missing*/nonexistent/program* ]]
    [ "$(sql "SELECT COUNT(*) FROM dq_attempt WHERE outcome = 'released'")" = 3 ]
}

@test "--tag leaves tasks of other tags alone" {
    write_handlers <<'END'
handlers:
  "*":
    run: 'true'
END
    dq add mail.a; dq add mail.b; dq add order
    dqd --tag 'mail.*'
    [ "$(sql 'SELECT GROUP_CONCAT(tag, status ORDER BY id) FROM dq_task')" = mail.a1,mail.b1,order0 ]
}

@test "two runs on one host do not overlap, except with --allow-overlap" {
    mkfifo "$BATS_TEST_TMPDIR/go"
    write_handlers <<END
handlers:
  slow:
    run: read x <$BATS_TEST_TMPDIR/go
  quick:
    run: 'true'
END
    dq add slow
    dqd_start --tag slow
    wait_until eval '[ "$(sql "SELECT status FROM dq_task")" = 3 ]'
    dq add quick
    run dqd
    [ "$status" = 0 ]
    [[ $output == *"another dqd with pid $DQD_PID is already running"* ]]
    [ "$(sql "SELECT status FROM dq_task WHERE tag = 'quick'")" = 0 ]
    dqd --allow-overlap
    [ "$(sql "SELECT status FROM dq_task WHERE tag = 'quick'")" = 1 ]
    echo >"$BATS_TEST_TMPDIR/go"
    wait "$DQD_PID"
    DQD_PID=''
}

@test "a pass that was asked to stop does not keep the next one waiting for its last handlers" {
    mkfifo "$BATS_TEST_TMPDIR/go"
    write_handlers <<END
handlers:
  slow:
    run: echo >$BATS_TEST_TMPDIR/begun; read x <$BATS_TEST_TMPDIR/go
  quick:
    run: 'true'
END
    dq add slow
    dqd_start
    wait_until test -e "$BATS_TEST_TMPDIR/begun"
    kill "$DQD_PID"
    wait_until grep -q 'asked to stop' "$DQD_LOG"
    dq add quick
    wait_until eval "dqd; is 'tag = \"quick\" AND status = 1' 1" # not before it has said that it is ending
    [ "$(sql "SELECT GROUP_CONCAT(tag, status ORDER BY id) FROM dq_task")" = slow3,quick1 ]
    echo >"$BATS_TEST_TMPDIR/go"
    wait "$DQD_PID"
    DQD_PID=''
}

# write_counted LIMIT: handlers that write down their begin and their end, and wait for the file go in between.
write_counted()
{
    write_handlers <<END
handlers:
  "t*":
    run: |
      flock $BATS_TEST_TMPDIR/count sh -c 'echo +\$DQ_TAG >>$BATS_TEST_TMPDIR/log'
      until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.02; done
      flock $BATS_TEST_TMPDIR/count sh -c 'echo -\$DQ_TAG >>$BATS_TEST_TMPDIR/log'
    $1
END
}

# begun N: that many handlers have written that they began.
begun() { [ "$(grep -c '^+' "$BATS_TEST_TMPDIR/log")" -ge "$1" ]; }

@test "max_running and slots limit the running handlers" {
    write_counted 'max_running: 3'
    for i in $(seq 12); do dq add t1; done
    for tag in t2 t3 t4; do for i in $(seq 3); do dq add "$tag"; done; done
    dqd_start --slots 10
    wait_until begun 8 # the last quarter is kept for tags that run nothing
    touch "$BATS_TEST_TMPDIR/go"
    wait "$DQD_PID"
    DQD_PID=''
    [ "$(sql 'SELECT status, COUNT(*) FROM dq_task GROUP BY status')" = $'1\t21' ]
    awk '/^\+/ { n++; c[substr($0, 2)]++ } /^-/ { n--; c[substr($0, 2)]-- }
         n > 10 || c[substr($0, 2)] > 3 { bad = 1 } END { exit bad }' "$BATS_TEST_TMPDIR/log"
}

@test "global_max_running limits several pollers together" {
    write_counted 'global_max_running: 2'
    for i in $(seq 12); do dq add t; done
    for i in 1 2 3; do "$DQ_BIN/dqd" --resident 3>&- & pids[$i]=$!; done
    wait_until eval '[ "$(sql "SELECT COUNT(*) FROM dq_poller")" = 3 ]'
    wait_until begun 2
    touch "$BATS_TEST_TMPDIR/go"
    wait_until eval '[ "$(sql "SELECT COUNT(*) FROM dq_task WHERE status = 1")" = 12 ]'
    kill "${pids[@]}"
    wait "${pids[@]}"
    awk '/[+]/ { n++ } /-/ { n-- } n > 2 { bad = 1 } END { exit bad }' "$BATS_TEST_TMPDIR/log"
}

@test "a pass does not end early at global_max_running, even if the limit is locked for a moment" {
    write_handlers <<'END'
handlers:
  t:
    run: 'true'
    global_max_running: 2
END
    for i in $(seq 50); do echo '{"tag":"t"}'; done >"$BATS_TEST_TMPDIR/tasks"
    dq -q add --from - <"$BATS_TEST_TMPDIR/tasks"
    dqd
    [ "$(sql 'SELECT status, COUNT(*) FROM dq_task GROUP BY status')" = $'1\t50' ]
    dq -q add --from - <"$BATS_TEST_TMPDIR/tasks"
    dqd --allow-overlap 3>&- &
    dqd --allow-overlap
    wait
    [ "$(sql 'SELECT status, COUNT(*) FROM dq_task GROUP BY status')" = $'1\t100' ]
    dq add t; dq add t
    mkfifo "$BATS_TEST_TMPDIR/lock"
    mariadb --no-defaults --unbuffered --user=root --database=dq \
        --socket="$(readlink -f "$DQ_SANDBOX/server")/mysql.sock" \
        <"$BATS_TEST_TMPDIR/lock" >"$BATS_TEST_TMPDIR/locked" 3>&- &
    exec 9>"$BATS_TEST_TMPDIR/lock"
    echo 'START TRANSACTION; SELECT "locked" FROM dq_limit FOR UPDATE;' >&9
    wait_until grep -q locked "$BATS_TEST_TMPDIR/locked"
    dqd_start 9>&-
    wait_until grep -q connected "$DQD_LOG"
    echo 'DO SLEEP(1);' >&9
    exec 9>&-
    wait
    DQD_PID=''
    [ "$(sql 'SELECT status, COUNT(*) FROM dq_task GROUP BY status')" = $'1\t102' ]
}

@test "tasks of a paused tag wait" {
    write_handlers <<'END'
handlers:
  "*":
    run: 'true'
END
    dq add a; dq add b
    dq pause a --reason 'shop closed'
    dqd
    [ "$(sql 'SELECT GROUP_CONCAT(tag, status ORDER BY id) FROM dq_task')" = a0,b1 ]
    dq resume a
    dqd
    [ "$(sql 'SELECT GROUP_CONCAT(tag, status ORDER BY id) FROM dq_task')" = a1,b1 ]
    dq pause --all
    dq add c
    dqd
    [ "$(dq list -c tag,status --no-header -s live | tr -s ' ')" = 'c pending' ]
    dq resume --all
    dqd
    [ "$(sql 'SELECT GROUP_CONCAT(tag, status ORDER BY id) FROM dq_task')" = a1,b1,c1 ]
}

@test "exit status, signal and timeout of an attempt are recorded with the end of its output" {
    write_handlers <<'END'
handlers:
  exits:
    run: echo out; echo err >&2; exit 3
  dies:
    run: kill -SEGV $$
  hangs:
    run: echo before; sleep 1000
    timeout: 2s
  stubborn:
    run: trap '' TERM; echo deaf; while :; do sleep 0.1; done
    timeout: 2s
    kill_grace: 100ms
  wordy:
    run: head -c 1000000 /dev/zero | tr '\0' x; echo end; exit 1
    output_limit: 1k
END
    for t in exits dies hangs stubborn wordy; do dq add $t; done
    dqd
    [ "$(sql "SELECT exit_code, error_stack, output FROM dq_task WHERE tag = 'exits'")" = \
        $'3\texit status 3: err\tout\\nerr\\n' ]
    [ "$(sql "SELECT \`signal\`, exit_code FROM dq_task WHERE tag = 'dies'")" = $'11\tNULL' ]
    [ "$(sql "SELECT outcome FROM dq_attempt a JOIN dq_task t ON t.id = a.task_id WHERE tag = 'hangs'")" = timeout ]
    [[ "$(sql "SELECT error_stack FROM dq_task WHERE tag = 'hangs'")" == 'timed out after 2s (TERM): before' ]]
    [ "$(sql "SELECT \`signal\`, output FROM dq_task WHERE tag = 'stubborn'")" = $'9\tdeaf\\n' ]
    [ "$(sql "SELECT LENGTH(output) <= 1024, RIGHT(output, 4) FROM dq_task WHERE tag = 'wordy'")" = $'1\tend\\n' ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 0 AND attempt = 1')" = 5 ]
}

@test "a process started as dq-handlers(5) says outlives its handler, however late its session begins" {
    local form
    mkdir "$BATS_TEST_TMPDIR/bin"
    # Between its fork and setsid(2) it sleeps for so long that the handler would have ended.
    cat >"$BATS_TEST_TMPDIR/bin/setsid" <<END
#!/bin/sh
[ "\$1" = -f ] && shift
(sleep 0.5; exec $(command -v setsid) "\$@") &
END
    printf '#!/bin/sh\nuntil test -e %s/ended; do sleep 0.05; done\necho outlived >%s/later\n' \
        "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/bin/later"
    chmod +x "$BATS_TEST_TMPDIR"/bin/*
    form=$(grep 'setsid -f sh' "$DQ_TOP/doc/dq-handlers.5")
    write_handlers <<END
handlers:
  t:
    env: {PATH: '$BATS_TEST_TMPDIR/bin:$PATH'}
    run: |
    $form
END
    dq add t
    dqd
    [ "$(sql 'SELECT status FROM dq_task')" = 1 ]
    : >"$BATS_TEST_TMPDIR/ended"
    wait_until grep -q outlived "$BATS_TEST_TMPDIR/later"
}

@test "retention deletes old finished tasks and their attempts" {
    write_handlers <<'END'
handlers: {}
END
    sql "INSERT INTO dq_task (tag, message_body, status, expected_time, finish_time, create_time)
         SELECT 't', '', s.status, d.ago, d.ago, d.ago FROM (SELECT 1 status UNION SELECT 2 UNION SELECT 4) s,
         (SELECT UTC_TIMESTAMP(3) - INTERVAL ELT(seq, 6, 8, 31) DAY ago FROM $(numbers 3)) d;
         INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome)
         SELECT id, 1, 1, finish_time, 'exit' FROM dq_task"
    dqd
    [ "$(sql 'SELECT status, COUNT(*) FROM dq_task GROUP BY status')" = $'1\t1\n2\t2\n4\t1' ]
    [ "$(sql 'SELECT COUNT(*) FROM dq_attempt')" = 4 ]
}

@test "a resident dqd deletes what is left over at once, and what comes later in an interval" {
    write_handlers <<'END'
handlers: {}
END
    local old="INSERT INTO dq_task (tag, message_body, body_size, status, expected_time, finish_time, create_time)
        SELECT 't', 'x', %s, 1, d.ago, d.ago, d.ago
        FROM (SELECT UTC_TIMESTAMP(3) - INTERVAL 31 DAY ago) d, $(numbers 20)"
    # shellcheck disable=SC2059
    sql "$(printf "$old" 9000000)" # a statement deletes few of these
    own_ini 's/^\[dqd\]/&\nheartbeat = 200ms/; $a [retention]\ninterval = 1h'
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini dqd_start --resident
    wait_until is TRUE 0
    # shellcheck disable=SC2059
    sql "$(printf "$old" 1)"
    for _ in 1 2 3 4 5 6 7 8; do # longer than the pause between two steps
        seen=$(sql 'SELECT last_seen FROM dq_poller')
        wait_until eval '[ "$(sql "SELECT last_seen FROM dq_poller")" != "$seen" ]'
    done
    is TRUE 20
    [ "$(sql "SELECT HEX(token) REGEXP '^0{4}|0{8}' FROM dq_poller")" -eq 0 ]
    dqd_stop
}

@test "history = all also keeps successful attempts" {
    write_handlers <<'END'
handlers:
  t:
    run: echo fine
END
    own_ini 's/^\[dqd\]/&\nhistory = all/'
    dq add t
    dqd --config "$BATS_TEST_TMPDIR/own.ini"
    [ "$(sql 'SELECT outcome, attempt, exit_code, output FROM dq_attempt')" = $'done\t1\t0\tfine\\n' ]
}

@test "a batch handler decides by verdicts, and by its exit status about the other tasks" {
    write_handlers <<END
handlers:
  b:
    run: |
      tee $BATS_TEST_TMPDIR/lines.\$\$ | while read -r line; do
        id=\$(printf %s "\$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        case \$line in
        *'"body":"good"'*) echo "{\"id\":\$id,\"result\":\"done\"}" ;;
        *'"body":"later"'*) echo "{\"id\":\$id,\"result\":\"retry\",\"after\":\"10m\",\"error\":\"not yet\"}" ;;
        *'"body":"bad"'*) echo "{\"id\":\$id,\"result\":\"fail\",\"error\":\"never\"}" ;;
        esac
      done
      exit 5
    batch: 50
END
    for body in good later bad silent; do dq add b $body; done
    dqd
    [ "$(cat "$BATS_TEST_TMPDIR"/lines.* | wc -l)" = 4 ]
    [ "$(ls "$BATS_TEST_TMPDIR"/lines.* | wc -l)" = 1 ]
    [ "$(sql 'SELECT GROUP_CONCAT(message_body, status ORDER BY id) FROM dq_task')" = good1,later0,bad2,silent0 ]
    [ "$(sql "SELECT error_stack, TIMESTAMPDIFF(SECOND, update_time, expected_time)
              FROM dq_task WHERE message_body = 'later'")" = $'asked to wait 10m: not yet\t600' ]
    [ "$(sql "SELECT exit_code FROM dq_task WHERE message_body = 'silent'")" = 5 ]
}

@test "an invalid verdict fails its task, whatever the exit status of the batch" {
    write_handlers <<'END'
handlers:
  b:
    run: |
      while read -r line; do
          id=${line#*'"id":'} id=${id%%,*}
          case $line in
          *good*) echo "{\"id\":$id,\"result\":\"done\"}" ;;
          *latin*) printf '{"id":%s,"result":"fail","error":"caf\351"}\n' "$id" ;;
          esac
      done
    batch: 50
    retry: []
END
    dq add b good
    latin=$(dq add b latin)
    dq add b silent
    dqd
    [ "$(sql 'SELECT GROUP_CONCAT(status ORDER BY id) FROM dq_task')" = 1,2,1 ]
    [[ $(sql "SELECT error_stack FROM dq_task WHERE id = $latin") == \
        'unreadable answer ('*'): {"id":'*'"error":"caf'* ]]
}

@test "bodies that only together exceed a hard file size limit run apart" {
    write_handlers <<'END'
handlers:
  t:
    run: cat >/dev/null
    batch: 4
    retry: [0s, 0s]
END
    head -c 60000 /dev/zero | tr '\0' x >"$BATS_TEST_TMPDIR/body"
    for i in 1 2 3 4; do dq -q add t @"$BATS_TEST_TMPDIR/body"; done
    (ulimit -f 160 && dqd)
    [ "$(sql 'SELECT status, COUNT(*), MAX(attempt) FROM dq_task GROUP BY status')" = $'1\t4\t2' ]
}

@test "a soft file size limit is inherited but does not affect bodies; a hard one fails only bodies above it" {
    write_handlers <<'END'
handlers:
  t:
    run: wc -c; ulimit -f
    shell: /bin/bash
    retry: []
END
    local long short
    head -c 1000000 /dev/zero >"$BATS_TEST_TMPDIR/long"
    long=$(dq add t @"$BATS_TEST_TMPDIR/long")
    (ulimit -S -f 100 && dqd)
    [ "$(sql "SELECT status, output FROM dq_task WHERE id = $long")" = $'1\t1000000\\n100\\n' ]
    long=$(dq add t @"$BATS_TEST_TMPDIR/long") short=$(dq add t x)
    (ulimit -f 100 && dqd)
    [ "$(sql "SELECT status FROM dq_task WHERE id = $short")" = 1 ]
    long=$(sql "SELECT status, error_stack FROM dq_task WHERE id = $long")
    [[ $long == $'2\ta body of 1000000 bytes is longer than dqd may write'* ]]
}

@test 'a task that another dqd is claiming for more than a second is logged as such, and is no warning' {
    write_handlers <<'END'
handlers:
  t: {run: ':'}
END
    id=$(dq -q add t)
    lock_task "$id"
    echo "UPDATE dq_task SET status = 3, host = 'web2', pid = 77 WHERE id = $id; SELECT 'claimed';" >&9
    wait_until grep -qx claimed "$BATS_TEST_TMPDIR/locked"
    dqd_start --resident 9>&-
    wait_until grep -q 'another dqd is claiming some due tasks" tag=t tasks=1 '"id=$id dqd=web2/77" "$DQD_LOG"
    refute grep 'cannot be claimed' "$DQD_LOG"
    exec 9>&-
}

@test 'a pass leaves a task that another session has locked, and reports it' {
    write_handlers <<'END'
handlers:
  t: {run: ':'}
END
    for i in 1 2 3; do dq -q add t body; done
    id=$(sql 'SELECT MIN(id) + 1 FROM dq_task')
    lock_task "$id"
    dqd --once 2>"$BATS_TEST_TMPDIR/log"
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 1')" = 2 ]
    grep "due tasks cannot be claimed.* tag=t tasks=1 id=$id " "$BATS_TEST_TMPDIR/log"
    lock_release
    dqd --once
    [ "$(sql 'SELECT COUNT(*) FROM dq_task WHERE status = 1')" = 3 ]
}
