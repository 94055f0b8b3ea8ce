# dq why: each cause with a real dqd, in a table and in JSON.

load ../lib/sandbox

setup() { sandbox_clear; }

# causes ID|--tag TAG: the names of the causes
causes() { dq why "$@" -o json | jq -r '[.causes[].cause] | join(" ")'; }
causes_are() { [ "$(causes "${@:2}")" = "$1" ]; }
status_is() { [ "$(sql "SELECT status FROM dq_task WHERE id = $1")" = "$2" ]; }
says() { grep -qE -- "$1" "$BATS_TEST_TMPDIR/why" || { cat "$BATS_TEST_TMPDIR/why"; return 1; }; }
why() { dq why "$@" >"$BATS_TEST_TMPDIR/why"; }

serve()
{
    write_handlers
    dqd_start --resident --log-level warn
    wait_until eval '[ "$(sql "SELECT COUNT(*) FROM dq_handler")" -gt 0 ]'
}

@test 'why names full places with the line of the handler, and the tasks before it' {
    serve <<YAML
handlers:
  slow:
    run: until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.02; done
    max_running: 2
YAML
    for i in 1 2 3 4; do id=$(dq -q add slow); done
    wait_until causes_are 'max_running behind' "$id"
    why "$id"
    says "^task $id, slow, pending, .* late\$"
    says '^it waits because$'
    says '^  all 2 places of the tag on .* are taken    max_running: 2, handlers\.yaml:2$'
    says '^  1 task of its tag comes before it'
    says '^ruled out: a pause, no live dqd \(.*/[0-9]+ was seen [0-9.ms]+ ago\), no free slot \([0-9]+ are free\)$'
    says '^  max_running: 8, systemctl reload dqd$'
    refute grep cancel "$BATS_TEST_TMPDIR/why"
    causes_are 'max_running' --tag slow
    first=$(sql 'SELECT MIN(id) FROM dq_task')
    causes_are runs "$first"
    # what it says helps: first the setting
    sed -i 's/max_running: 2/max_running: 8/' "$DQ_SANDBOX/handlers.yaml"
    kill -HUP "$DQD_PID"
    wait_until causes_are runs "$id"
    touch "$BATS_TEST_TMPDIR/go"
    wait_until causes_are 'done' "$id"
    why "$id"
    refute grep -q '^what helps' "$BATS_TEST_TMPDIR/why"
}

@test 'why offers to cancel by name what runs for far longer than its tag usually does, and nothing else' {
    serve <<YAML
handlers: {slow: {run: 'until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.02; done', max_running: 1, timeout: 1h}}
YAML
    long=$(dq -q add slow) id=$(dq -q add slow)
    wait_until causes_are max_running "$id"
    for task in "$long" "$id"; do
        why "$task"
        refute grep cancel "$BATS_TEST_TMPDIR/why"
    done
    sql "UPDATE dq_task SET execution_time = execution_time - INTERVAL 25 MINUTE WHERE id = $long;
         INSERT INTO dq_task (tag, message_body, status, expected_time, create_time, execution_time, finish_time)
         VALUES ('slow', '', 1, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) - INTERVAL 2 SECOND,
                 UTC_TIMESTAMP(3))"
    why "$long"
    says '^  it runs on .*, attempt 1    it has run for 25m[0-9s]* of 1h, usually 2s$'
    says "^  dq logs -f $long\$"
    why "$id"
    says "^  dq cancel $long: task $long has run for 25m[0-9s]* of 1h, usually 2s\$"
    dq -q cancel "$long"
    wait_until causes_are runs "$id"
    touch "$BATS_TEST_TMPDIR/go"
    wait_until causes_are 'done' "$id"
}

@test 'why: a task that was given a time in the past is not late by that' {
    fake_dqd t
    id=$(dq -q add t)
    sql "UPDATE dq_task SET expected_time = '2020-01-01' WHERE id = $id"
    why "$id"
    says "^task $id, t, pending, [0-9.]*m?s late$"
}

@test 'why: not due, paused, retried, failed, cancelled' {
    serve <<'YAML'
handlers:
  t: {run: "true"}
  flaky: {run: "echo no route >&2; exit 1", retry: [1h]}
  bad: {run: "exit 65"}
YAML
    id=$(dq -q add t --in 1h)
    causes_are not_due "$id"
    dq -q pause t --reason 'provider is down'
    causes_are 'not_due paused' "$id"
    why "$id"
    says '^  paused until resumed: provider is down    by .*@[^:]*$'
    says "^  dq run-now $id\$"
    says '^  dq resume t$'
    dq -q cancel "$id"
    causes_are cancelled "$id"
    id=$(dq -q add flaky)
    wait_until causes_are retry "$id"
    why "$id"
    says '^  it is retried in .*attempt 1: exit status 1.*no route'
    id=$(dq -q add bad)
    wait_until causes_are failed "$id"
}

@test 'why: no dqd serves it, which tag was meant; no dqd is alive' {
    serve <<<'handlers: {hello: {run: "true"}}'
    id=$(dq -q add helo)
    causes_are unserved "$id"
    why "$id"
    says '^  no dqd serves it    did you mean "hello"\?$'
    dqd_stop
    causes_are no_dqd "$id"
    dq -q cancel "$id"
    run dq why --tag helo
    [ "$status" -eq 1 ]
    [[ $output == *'no task of tag "helo" is pending' ]]
}

@test 'why: a handler that cannot be started, with the reason' {
    serve <<<'handlers: {t: {run: [/nonexistent/program]}}'
    id=$(dq -q add t)
    wait_until causes_are rests "$id"
    why "$id"
    says 'rests for .* exec /nonexistent/program: No such file'
    says 'correct handlers.yaml:1 or the program, systemctl reload dqd'
}

@test 'why: no slot, the limit over all hosts' {
    write_handlers <<YAML
handlers:
  a: {run: "until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.02; done", global_max_running: 1}
  b: {run: "true"}
YAML
    own_ini 's/^\[dqd\]/&\nheartbeat = 100ms/'
    dqd_start --resident --slots 2 --config "$BATS_TEST_TMPDIR/own.ini"
    one=$(dq -q add a) two=$(dq -q add a)
    wait_until status_is "$one" 3
    wait_until eval '[[ $(causes '"$two"') == *global_max_running* ]]'
    sql 'UPDATE dq_task SET status = 4 WHERE id = '"$two"
    dqd_stop 2>/dev/null & # it waits for the handler
    touch "$BATS_TEST_TMPDIR/go"
    wait
    DQD_PID=''
    rm "$BATS_TEST_TMPDIR/go"
    dqd_start --resident --slots 1 --config "$BATS_TEST_TMPDIR/own.ini"
    one=$(dq -q add a)
    wait_until status_is "$one" 3
    two=$(dq -q add b)
    wait_until causes_are slots "$two"
    touch "$BATS_TEST_TMPDIR/go"
    wait_until causes_are 'done' "$two"
}

@test 'why: another session has locked its row; the dqd of a running task is gone' {
    id=$(dq -q add t --at 2020-01-01T00:00:00Z)
    lock_task "$id"
    serve <<<'handlers: {t: {run: "true"}}'
    wait_until causes_are locked "$id" # a claim has its chance first
    echo 'ROLLBACK;' >&9
    wait_until causes_are 'done' "$id"
    dqd_stop
    lock_release
    sql "UPDATE dq_task SET status = 3, claim_token = REPEAT('x', 16), lease_until = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR
         WHERE id = $id"
    causes_are lease "$id"
    fake_dqd # another one, whose lease is shorter
    causes_are lease "$id"
    why "$id"
    says '  its lease ends in [0-9]'
    sql "UPDATE dq_task SET claim_token = REPEAT('f', 16) WHERE id = $id"
    causes_are runs "$id"
}

@test 'why: a task whose handler has ended does not run, if a lock keeps its result from being recorded' {
    own_ini 's/^\[dqd\]/&\nlease = 3s\nheartbeat = 500ms/'
    write_handlers <<<"handlers: {t: {run: 'until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.02; done'}}"
    dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini"
    id=$(dq -q add t)
    wait_until causes_are runs "$id"
    lock_task "$id"
    touch "$BATS_TEST_TMPDIR/go"
    # it has run for far longer than usual
    sql "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time, execution_time, finish_time)
         VALUES ('t', '', 1, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
    wait_until causes_are 'unrecorded locked' "$id"
    why "$id"
    says '^  its handler must have ended, but its result is not recorded +attempt 1 on .*/[0-9]+: its lease has ended$'
    says '^  another session has locked its row'
    says 'end that transaction'
    refute grep -E 'cancel|logs -f' "$BATS_TEST_TMPDIR/why"
    echo 'ROLLBACK;' >&9
    wait_until causes_are 'done' "$id"
    dqd_stop
    lock_release
}

@test 'the host of a quiet dqd in a command that is shown is one word of the shell' {
    fake_dqd t
    sql "UPDATE dq_poller SET host = 'v m;x', last_seen = '2020-01-01'" # not alive, so it is not waited for
    id=$(dq -q add t)
    dq quiet 'v m;x' 2>&1 | grep -F "To end it: dq unquiet 'v m;x'"
    sql 'UPDATE dq_poller SET last_seen = UTC_TIMESTAMP(3)'
    why "$id"
    says "^  dq unquiet 'v m;x'\$"
}

@test 'why: a row that claims lock for a moment, now and then, is not locked by another session' {
    fake_dqd t
    id=$(dq -q add t --at 2020-01-01T00:00:00Z)
    for ((i = 0; i < 3000; i++)); do
        echo "START TRANSACTION; SELECT id FROM dq_task WHERE id = $id FOR UPDATE; DO SLEEP(0.01); ROLLBACK;
              DO SLEEP(0.02);"
    done | timeout 60 mariadb --no-defaults --socket="$(readlink -f "$DQ_SANDBOX/server")/mysql.sock" --user=root \
        --database=dq >"$BATS_TEST_TMPDIR/locks" 3>&- &
    wait_until test -s "$BATS_TEST_TMPDIR/locks"
    for ((i = 0; i < 15; i++)); do
        dq why "$id" -o ndjson >"$BATS_TEST_TMPDIR/why"
        refute grep locked "$BATS_TEST_TMPDIR/why"
    done
    kill $!
}

@test 'why: another session has locked the row of its tag, which guards a limit over all hosts' {
    serve <<<'handlers: {t: {run: "true", global_max_running: 2}, u: {run: "true", limit: prov}}'
    dq -q limit prov --rate 100/s
    id=$(dq -q add t)
    wait_until causes_are 'done' "$id"
    lock_task "$id"
    echo 'UPDATE dq_limit SET update_time = UTC_TIMESTAMP(3); SELECT "both";' >&9
    wait_until grep -q both "$BATS_TEST_TMPDIR/locked"
    id=$(dq -q add t)
    rated=$(dq -q add u)
    wait_until causes_are locked "$id" # a claim has its chance first
    why "$id"
    says "^  another session has locked its tag's row of dq_limit, which guards its limit"
    wait_until causes_are locked "$rated"
    echo 'ROLLBACK;' >&9
    wait_until causes_are 'done' "$id"
    wait_until causes_are 'done' "$rated"
    dqd_stop
    lock_release
}

@test 'why, tags, check and doctor name what the server refuses: a row, or whole claims' {
    serve <<<'handlers: {t: {run: "true"}, u: {run: "true", global_max_running: 2}}'
    sql "CREATE TRIGGER limit_refused BEFORE INSERT ON dq_limit FOR EACH ROW SET NEW.name = (SELECT 1 UNION SELECT 2);
         CREATE TRIGGER refuses BEFORE UPDATE ON dq_task FOR EACH ROW SET NEW.host =
         IF(OLD.tag = 't', (SELECT 1 UNION SELECT 2), NEW.host)"
    id=$(dq -q add t)
    wait_until causes_are refused "$id"
    why "$id"
    says "^  the server refuses to find or change tasks of its tag +task $id: .*error 1242"
    says '^  correct what the error names$'
    [[ $(dq tags 2>&1) == *"t is refused: task $id: "*'error 1242'* ]]
    run dq check
    [ "$status" -eq 1 ]
    [[ $output == "WARNING: t is refused: task $id: "*'error 1242'* ]]
    dq doctor >"$BATS_TEST_TMPDIR/why" || true
    says "^BAD +starts +t is refused: task $id: .*error 1242"
    refute grep -q rests <(dq pollers -v)
    other=$(dq -q add u)
    wait_until causes_are refused "$other"
    why "$other"
    says '^  the server refuses to find or change tasks of its tag +[^ ]*: unexpected error 1242'
    sql 'DROP TRIGGER refuses; DROP TRIGGER limit_refused'
    dq run-now "$id" || wait_until causes_are 'done' "$id" # it may have been tried again at that moment
    wait_until causes_are 'done' "$id"
    wait_until causes_are 'done' "$other"
    nothing_is_recorded() { [ "$(sql 'SELECT COUNT(*) FROM dq_rest')" = 0 ]; }
    wait_until nothing_is_recorded
    dqd_stop
}

@test 'why, tags, check and doctor name what the server refuses for all tags, known or new: to find or claim tasks' {
    new_account worker
    sql "$(sql "SELECT CONCAT('GRANT SELECT, INSERT, UPDATE, DELETE ON ', table_name, ' TO worker@localhost;')
                FROM information_schema.tables WHERE table_schema = DATABASE()")
         REVOKE SELECT ON dq_task FROM worker@localhost"
    own_ini 's/^user = .*/user = worker/'
    write_handlers <<<'handlers: {t: {run: "true"}, u: {run: "true"}, "mail.*": {run: "true"}}'
    dqd_start --resident --log-level warn --config "$BATS_TEST_TMPDIR/own.ini"
    nothing_is_recorded() { [ "$(sql 'SELECT COUNT(*) FROM dq_rest')" = 0 ]; }
    for looks in '' '(id, status, tag, expected_time)'; do
        # with these columns it may look for tasks, but not see what a refused claim has done
        [ -z "$looks" ] || sql "GRANT SELECT $looks ON dq_task TO worker@localhost"
        for tag in t u mail.new; do
            echo "$tag $looks"
            id=$(dq -q add "$tag")
            wait_until causes_are refused "$id"
            why "$id"
            says '^  the server refuses to find or change tasks of its tag +.*SELECT.*denied'
            [[ $(dq tags 2>&1) == *"$tag is refused: "*denied* ]]
            run dq check --tag "$tag"
            [ "$status" -eq 1 ]
            [[ $output == "WARNING: $tag is refused: "*denied* ]]
        done
        dq doctor >"$BATS_TEST_TMPDIR/why" || true
        says '^BAD +starts +mail\.\* is refused: .*denied'
        sql 'GRANT SELECT ON dq_task TO worker@localhost'
        wait_until causes_are 'done' "$id"
        wait_until nothing_is_recorded
        [[ $(dq check) == OK* ]]
        sql 'REVOKE SELECT ON dq_task FROM worker@localhost'
    done
    sql 'GRANT SELECT ON dq_task TO worker@localhost'
    dqd_stop
}

@test 'one of three dqds that has seen a refusal is enough for tags and check; doctor says what all have seen once' {
    fake_dqd t
    for token in a b; do
        sql "INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after,
                 lease, version, handlers, handlers_file)
             SELECT REPEAT('$token', 16), 'vm$token', pid, mode, slots, running, start_time, last_seen, stale_after,
                 lease, version, handlers, handlers_file FROM dq_poller WHERE host = 'vm'"
    done
    dq -q add t
    records() # records REASON CONDITION
    {
        sql "DELETE FROM dq_rest;
             INSERT INTO dq_rest SELECT token, 't', UTC_TIMESTAMP(3) + INTERVAL 1 HOUR, $1, 'error 1644'
             FROM dq_poller WHERE $2"
    }
    records 1 "host = 'vma'"
    [[ $(dq tags 2>&1) == *'t is refused: error 1644'* ]]
    [[ $(dq check || true) == 'WARNING: t is refused: error 1644'* ]]
    records 1 1
    dq doctor -o json >"$BATS_TEST_TMPDIR/why" || true
    [ "$(grep -o 't is refused' "$BATS_TEST_TMPDIR/why" | wc -l)" -eq 1 ]
    records 2 1
    dq doctor >"$BATS_TEST_TMPDIR/why" || true
    says '^warn +starts +t is slow: error 1644$'
    records 0 "host = 'vma'"
    [[ $(dq tags 2>&1) != *'rests'* ]]
}

@test 'why -o json has causes, ruled_out and remedies; everything is inert in a terminal' {
    id=$(dq -q add t --in 1h)
    sql "UPDATE dq_task SET attempt = 1, error_stack = CONCAT('a', CHAR(27), '[2J') WHERE id = $id"
    why "$id"
    says 'attempt 1: a\\x1B\[2J'
    dq why "$id" -o json | python3 -c 'import json, sys
w = json.load(sys.stdin)
assert list(w) == ["id", "tag", "status", "causes", "ruled_out", "remedies"], w
assert w["tag"] == "t" and w["status"] == "pending", w
assert [c["cause"] for c in w["causes"]] == ["retry", "no_dqd"], w
assert all(list(c) == ["cause", "text", "detail"] for c in w["causes"]), w
assert w["causes"][0]["detail"] == "attempt 1: a\x1b[2J", w
assert w["ruled_out"] == ["a pause"] and len(w["remedies"]) == 2, w'
    run dq why
    [ "$status" -eq 64 ]
    run dq why 999999
    [ "$status" -eq 1 ]
    run dq why "$id" --tag t
    [ "$status" -eq 64 ]
    run dq why "$id" -o tsv
    [ "$status" -eq 64 ]
}

# helps ID CAUSE: the first thing that dq why names as a help is done as it is printed, and the cause is gone.
helps()
{
    local line
    [[ " $(causes "$1") " == *" $2 "* ]]
    line=$(dq why "$1" | sed -n '/^what helps$/,$s/^  //p' | grep -m 1 -E "${3:-.}")
    echo "$2: $line"
    case $line in
    'dq '*) eval "${line%%[:,]*}" ;;
    UPDATE*) sql "$line" ;;
    *KILL*) sql "${line##*: }" ;;
    esac
    [[ " $(causes "$1") " != *" $2 "* ]]
}
status_of() { sql "SELECT status FROM dq_task WHERE id = $1"; }

@test 'what why recommends helps: each command and statement, as it is printed' {
    fake_dqd image.resize
    id=$(dq -q add image.resize)
    for state in 2:failed 4:cancelled; do
        sql "UPDATE dq_task SET status = ${state%:*}, finish_time = UTC_TIMESTAMP(3) WHERE id = $id"
        helps "$id" "${state#*:}"
        [ "$(status_of "$id")" -eq 0 ]
    done
    dq -q reschedule "$id" --in 1h
    helps "$id" not_due
    dq -q pause image.resize
    helps "$id" paused
    for column in 'version = 18446744073709551615' 'attempt = 4294967295'; do
        sql "UPDATE dq_task SET $column WHERE id = $id"
        helps "$id" refused
    done
    sql "UPDATE dq_task SET status = 9 WHERE id = $id"
    helps "$id" unknown
    [ "$(status_of "$id")" -eq 0 ]
    # one that runs for far longer than usual
    sql "UPDATE dq_handler SET timeout = 7200000;
         INSERT INTO dq_task (tag, message_body, status, expected_time, create_time, execution_time, finish_time)
         SELECT 'image.resize', '', 1, t, t, t, t + INTERVAL 1 SECOND
         FROM (SELECT UTC_TIMESTAMP(3) - INTERVAL 1 DAY t) x;
         UPDATE dq_task SET status = 3, execution_time = UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, attempt = 1, host = 'vm',
         pid = 1, claim_token = REPEAT('f', 16), lease_until = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR WHERE id = $id"
    helps "$id" runs 'dq cancel'
    [ "$(status_of "$id")" -eq 4 ]
    # a misspelt tag
    id=$(dq -q add image.resze)
    helps "$id" unserved 'and add it as image.resize$'
    [ "$(status_of "$id")" -eq 4 ]
    [ "$(causes "$(dq -q add image.resize)")" = none ]
    # a lock
    id=$(dq -q add image.resize --at 2020-01-01T00:00:00Z)
    sql "UPDATE dq_task SET create_time = expected_time, update_time = expected_time WHERE id = $id"
    new_account dq_doctor
    sql 'GRANT ALL ON dq.* TO dq_doctor@localhost; GRANT PROCESS ON *.* TO dq_doctor@localhost'
    own_ini 's/^user = .*/user = dq_doctor/'
    lock_task "$id"
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini
    named() { dq why "$id" | grep -q KILL; }
    wait_until named
    helps "$id" locked
    lock_release
}

# In place of the service of systemd.
systemctl()
{
    case $1 in
    start) dqd_start --resident --config "$BATS_TEST_TMPDIR/own.ini" ;;
    reload) kill -HUP "$DQD_PID" ;;
    restart) dqd_stop || true; systemctl start ;;
    esac
}

runs() { [ "$(status_of "$1")" -eq 3 ]; }

# helped ID HELP FILE SED: why has that line; FILE is edited as it says, systemctl called, and the task runs.
helped()
{
    recommends() { why "$1" && grep -qxF -- "  $2" "$BATS_TEST_TMPDIR/why"; }
    wait_until recommends "$1" "$2"
    sed -i "$4" "$3"
    case $2 in
    'dq '*) $2 ;;
    *) [[ $2 =~ systemctl\ ([a-z]+)\ dqd ]] && systemctl "${BASH_REMATCH[1]}" ;;
    esac
    wait_until runs "$1"
}

@test 'what why recommends for limits, slots, handlers and a dqd that is gone helps' {
    # the last slot is kept for a tag of which nothing runs
    own_ini 's/^\[dqd\]/&\nheartbeat = 100ms\nslots = 5\ndrain_timeout = 0s/'
    write_handlers <<YAML
handlers:
  t: {run: exec sleep 1000, max_running: 1}
  g: {run: exec sleep 1000, global_max_running: 1}
  bad: {run: [/no/sleep, 1000]}
YAML
    helped "$(dq -q add t)" 'systemctl start dqd;  why it ended: journalctl -u dqd' "$DQ_HANDLERS" ''
    helped "$(dq -q add t)" 'max_running: 4, systemctl reload dqd' "$DQ_HANDLERS" '/ t:/s/1}/4}/'
    id=$(dq -q add g)
    wait_until runs "$id"
    helped "$(dq -q add g)" 'dq limit g --running 2' "$DQ_HANDLERS" ''
    id=$(dq -q add t)
    helped "$id" 'slots in dq.ini, systemctl restart dqd' "$BATS_TEST_TMPDIR/own.ini" 's/^slots = 5/slots = 40/'
    helped "$(dq -q add bad)" 'correct handlers.yaml:4 or the program, systemctl reload dqd' "$DQ_HANDLERS" \
        's|/no/sleep|/bin/sleep|'
    helped "$(dq -q add other)" 'a handler for it in handlers.yaml, systemctl reload dqd' "$DQ_HANDLERS" \
        '$a\  other: {run: exec sleep 1000}'
}

@test 'what runs of another tag under the same limit is why a task waits, wherever that is said' {
    under='{run: exec sleep 1000, limit: prov, global_max_running: 1}' # until dq limit sets it
    write_handlers <<<"handlers: {g: $under, h: $under}"
    dqd_start --resident
    id=$(dq -q add g)
    wait_until runs "$id"
    for n in 1 2; do
        id=$(dq -q add h)
        full="limit prov: global_max_running $n is full"
        says() { why "$id" && grep -q "^  $full  *$n tasks* under this limit" "$BATS_TEST_TMPDIR/why"; }
        wait_until says
        grep -qxF "  dq limit prov --running $((2 * n))" "$BATS_TEST_TMPDIR/why"
        dq tags 2>&1 | grep -qxF "h waits: $full"
        dq list --waiting | grep -q "$full\$"
        dq -q limit prov --running $((2 * n))
        wait_until runs "$id"
    done
}
