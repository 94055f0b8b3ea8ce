# What every verb knows of the dqds on all hosts: whether one is alive, and which tags they serve.

load ../lib/sandbox

setup() { sandbox_clear; }

# said ARG...: the notes of a command; its rows go elsewhere. -v is for dq add, which else says them to people only.
said() { dq -v "$@" 2>&1 >"$BATS_TEST_TMPDIR/rows"; }

dead_dqd() # dead_dqd SECONDS: a dqd that was seen last so long ago
{
    fake_dqd "${@:2}"
    sql "UPDATE dq_poller SET stale_after = 1000, last_seen = UTC_TIMESTAMP(3) - INTERVAL $1 SECOND"
}

@test 'list, tags, stats, show, add and wait report that no dqd is alive, and which one was seen last' {
    id=$(dq -q add t)
    [ "$(said list)" = 'no dqd is alive' ]
    dead_dqd 40
    for verb in list tags stats "show $id" "wait $id --timeout 100ms" 'add t'; do
        echo "$verb: $(said $verb)"
        said $verb | grep -qxE 'no dqd is alive \(last: vm, ([45][0-9]s|[0-9]+m.*) ago\)'
        [[ $(dq -q $verb 2>&1) != *'is alive'* ]]
    done
    [[ $(said list -o json) == 'no dqd is alive (last: vm, '* ]]
    refute grep -q 'no dqd' "$BATS_TEST_TMPDIR/rows"
    sandbox_clear
    fake_dqd t
    for verb in list tags stats "add t"; do [[ $(said $verb) != *'no dqd'* ]]; done
}

# A resident dqd deletes its row at its end, and a pass leaves one.
@test 'the last dqd is the one that ended last, or was seen last' {
    write_handlers <<<'handlers: {hello: {run: "true"}}'
    id=$(dq -q add hello --in 1h)
    dead_dqd 400
    sql "UPDATE dq_poller SET host = 'web1'"
    last()
    {
        [[ $(said list) =~ ^'no dqd is alive (last: '([^,]*)', '[0-9.a-z]+' ago)'$ && ${BASH_REMATCH[1]} == "$1" ]]
    }
    last web1
    dqd_start --resident
    started() { [ "$(sql "SELECT COUNT(*) FROM dq_event WHERE verb = 'dqd-start'")" -eq 1 ]; }
    wait_until started
    dqd_stop
    last "$(hostname)"
    [[ $(dq check) == "CRITICAL: no dqd is alive (last: $(hostname), "* ]]
    [[ $(dq why "$id") == *"last: $(hostname), "* ]]
    sql "UPDATE dq_poller SET last_seen = UTC_TIMESTAMP(3), stale_after = 0, host = 'web2'"
    wait_until last web2
}

@test 'a table is printed before the note' {
    dq -q add t
    for verb in list tags stats; do
        dq "$verb" >"$BATS_TEST_TMPDIR/both" 2>&1
        [ "$(tail -n 1 "$BATS_TEST_TMPDIR/both")" = 'no dqd is alive' ]
    done
}

@test 'a dqd that a timer starts counts as alive between its passes, also after the first one' {
    write_handlers <<<'handlers: {hello: {run: "true"}}'
    dq -q add hello --in 1h
    dqd --for 50ms
    [[ $(dq check) == 'OK: '*', 1 dqd alive, 1 between passes | '* ]]
    [ "$(sql 'SELECT COUNT(*) FROM dq_event')" -eq 0 ]
    sql 'UPDATE dq_poller SET next_pass = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND'
    [[ $(said list) == 'no dqd is alive (last: '*' ago)' ]]
    [[ $(dq pollers -o ndjson) == *'"running":null,'*'"alive":false,'* ]]
    dqd
    [ "$(said list)" = '' ]
    [[ $(dq pollers) == *' between passes' ]]
    [[ $(dq check) == 'OK: '*', 1 dqd alive, 1 between passes | '* ]]
    id=$(dq -q add hello)
    dq why "$id" >"$BATS_TEST_TMPDIR/why"
    grep -qE '^  it waits for the next pass: the last one ended [0-9m]+s ago    on .*, expected within [0-9m]+s?$' \
        "$BATS_TEST_TMPDIR/why"
    refute grep -q 'live dqd\|nothing holds it back' "$BATS_TEST_TMPDIR/why"
    [[ $(said add helo) == *$'\nno dqd serves tag "helo"; did you mean "hello"?' ]]
    sql 'UPDATE dq_poller SET next_pass = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND'
    [[ $(said list) == 'no dqd is alive (last: '*' ago)' ]]
    [[ $(dq pollers) != *' between passes' ]]
}

@test 'add, pause and wait name the tag that was meant' {
    fake_dqd hello 'payment.*' 'x?z' 'b*'
    [[ $(said add helo) == *$'\nno dqd serves tag "helo"; did you mean "hello"?' ]]
    [[ $(said add paymet.card) == *$'\nno dqd serves tag "paymet.card"; did you mean "payment.card"?' ]]
    [[ $(said add xb1) == *$'\nno dqd serves tag "xb1"; did you mean "b1"?' ]]
    [[ $(said add entirely.else) == *$'\nno dqd serves tag "entirely.else"' ]]
    for tag in hello payment.card payment. xyz; do [[ $(said add "$tag") != *serves* ]]; done
    for tag in payment xyyz x_ 'pay|ment.'; do [[ $(said add "$tag") == *"no dqd serves tag \"$tag\""* ]]; done
    [[ $(said pause paymet.x) == *$'\nno dqd serves tag "paymet.x"; did you mean "payment.x"?' ]]
    [[ $(said pause hello) != *serves* ]]
    dq -q add payment.card >/dev/null
    [[ $(said pause payment.cadr) == *$'\nno task has the tag "payment.cadr": did you mean "payment.card"?' ]]
    dq -q add payment.cars >/dev/null
    [[ $(said pause payment.card) != *'did you mean'* ]]
    id=$(dq -q add helo)
    [[ $(said wait "$id" --timeout 50ms) == 'no dqd serves tag "helo"; did you mean "hello"?'* ]]
    [ "$(dq -q add helo 2>&1)" = $((id + 1)) ]
    [[ $(dq add helo 2>&1) != *serves* ]]
    "$DQ_TOP/test/lib/terminal" 80 "$DQ_BIN/dq" add helo </dev/null |
        grep -q 'no dqd serves tag "helo"; did you mean "hello"?'
}

@test 'no verb says that a tag is not served while a dqd does not say what it serves' {
    fake_dqd
    [[ $(said add t) != *serves* ]]
    fake_dqd() { :; }
    sql "UPDATE dq_poller SET handlers = 5" # it has just been started: its handlers are not there yet
    [[ $(said add t) != *serves* ]]
    sql "UPDATE dq_poller SET handlers = 0"
    [[ $(said add t) == *'no dqd serves tag "t"' ]]
}

@test 'dqd --tag serves only the tags that it selects' {
    fake_dqd a.x b.x
    sql "UPDATE dq_poller SET tags = 'a.*\nc'"
    id=$(dq -q add b.x)
    [[ $(dq show "$id" 2>&1) == *'no dqd serves its tag'* ]]
    id=$(dq -q add a.x)
    [[ $(dq show "$id" 2>&1) != *'no dqd serves'* ]]
    [[ $(said pause b.x) == *'no dqd serves tag "b.x"'* ]]
}

@test 'wait reports that the last dqd has died, and that one is alive again' {
    fake_dqd t
    id=$(dq -q add t)
    dq wait "$id" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    pid=$!
    sql 'UPDATE dq_poller SET stale_after = 0'
    wait_until grep -q '^no dqd is alive (last: vm, ' "$BATS_TEST_TMPDIR/err"
    sql 'UPDATE dq_poller SET last_seen = UTC_TIMESTAMP(3), stale_after = 3600000'
    wait_until grep -qx 'a dqd is alive again' "$BATS_TEST_TMPDIR/err"
    sql "UPDATE dq_task SET status = 1, finish_time = UTC_TIMESTAMP(3) WHERE id = $id"
    wait "$pid"
    [ "$(grep -c alive "$BATS_TEST_TMPDIR/err")" -eq 2 ]
}

@test 'an account that may not read the tables of dqds adds and lists without notes' {
    new_account poor
    sql 'GRANT SELECT, INSERT ON dq.dq_task TO poor@localhost; GRANT SELECT ON dq.dq_meta TO poor@localhost'
    own_ini 's/^user = .*/user = poor/'
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini run dq -v add t
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output != *dqd* ]]
    DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini run dq list
    [ "$status" -eq 0 ]
    [[ $output != *dqd* ]]
}

@test 'pollers -v lists each handler of each live dqd, and what rests' {
    write_handlers <<'YAML'
handlers:
  b: {run: [/nonexistent/program], global_max_running: 3}
  "mail.*": {run: "true", batch: 50, timeout: 5s}
YAML
    dqd_start --resident --tag b --tag 'mail*'
    dq -q add b >/dev/null
    wait_until eval '[[ $(dq pollers -v -o tsv) == *$'"'\tb\t'"'*/handlers.yaml* ]]'
    wait_until eval '[[ $(dq pollers -v -o json) == *"\"resting\":\"b\""* ]]'
    dq pollers -v -o tsv >"$BATS_TEST_TMPDIR/out"
    cat "$BATS_TEST_TMPDIR/out"
    grep -qF $'\tb\t8\t3\t1\t10\t60000\tb\t2\t'"$DQ_HANDLERS"$'\tb\\nmail*\t' "$BATS_TEST_TMPDIR/out"
    grep -qE $'\tmail\\.\\*\t8\t\t50\t10\t5000\t\t3\t' "$BATS_TEST_TMPDIR/out"
    [[ $(dq pollers -v | sed -n 1p) == HOST*'PID'*'HANDLER'*'RESTING  KEPT  LINE' ]]
    dqd_stop
    [ "$(dq pollers -v -o json)" = '[]' ]
}

# A dqd on web2 has the handlers of that on vm, but without global_max_running.
unlimited_dqd()
{
    sql "INSERT INTO dq_handler
         SELECT 2, pattern, is_glob, number, line, digest, batch, max_running, 0, limit_name, max_attempts,
                timeout, retry
         FROM dq_handler;
         INSERT INTO dq_poller
         SELECT REPEAT('e', 16), 'web2', pid, mode, slots, running, start_time, last_seen, stale_after, lease,
                version, knows, 2, handlers_file, tags, next_pass, tzdata, clock_ahead FROM dq_poller"
}

# limits_are N M: global_max_running on vm and on web2. What doctor and tags say of it is in checked and noted.
limits_are()
{
    sql "UPDATE dq_handler SET global_max_running = IF(handlers = 1, $1, $2)"
    checked=$(dq doctor -o tsv | grep -P '\ttags\t' || true)
    noted=$(said tags)
    echo "$checked" "$noted"
}

@test 'tags and doctor name dqds whose handlers files disagree about limits' {
    fake_dqd t
    unlimited_dqd
    dq -q add t
    limits_are 2 2
    [[ $checked == ok* ]]
    [[ $noted != *global* ]]
    limits_are 2 0
    says='global_max_running of t differs: 2 on vm, 0 on web2'
    [[ $checked == warn*"$says; give it one value in all handlers files" ]]
    [ "$noted" = "$says" ]
    limits_are 3 2
    [[ $noted == *'differs: 3 on vm, 2 on web2' ]]
    sql "UPDATE dq_handler SET limit_name = 'stripe' WHERE handlers <> 1"
    limits_are 3 2
    [[ $noted == 'limit of t differs: own on vm, stripe on web2' ]]
    [[ $checked == warn*'limit of t differs: own on vm, stripe on web2; give it one value in all handlers files' ]]
    # vm has tags under that limit, but does not know t: it would not count its tasks
    sql "UPDATE dq_handler SET limit_name = 'stripe', pattern = IF(handlers = 1, 'other', pattern)"
    limits_are 2 2
    [[ $noted == 'limit of t differs: stripe on web2, no handler on vm' ]]
}

@test 'why, tags and check give one reason for a late tag at its limit; a dqd without the limit starts its tasks' {
    fake_dqd t
    sql 'UPDATE dq_handler SET global_max_running = 2'
    for _ in 1 2; do dq -q add t; done
    sql "UPDATE dq_task SET status = 3, version = 1, claim_token = REPEAT('f', 16), host = 'vm', pid = 1,
         execution_time = UTC_TIMESTAMP(3), lease_until = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR"
    id=$(dq -q add t)
    sql "UPDATE dq_task SET expected_time = UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, create_time = expected_time,
         update_time = expected_time WHERE id = $id"
    reason='global_max_running 2 is full'
    [[ $(dq why "$id") == *"$reason    2 tasks under this limit run on all hosts"* ]]
    [ "$(said tags)" = "t waits: $reason" ]
    rc=0
    dq check --max-late 1m >"$BATS_TEST_TMPDIR/check" || rc=$?
    [ "$rc" -eq 2 ]
    grep -qE "t is 1h[0-9a-z]* late, more than 1m: $reason" "$BATS_TEST_TMPDIR/check"
    unlimited_dqd
    [[ $(dq why "$id") != *"$reason"* ]]
}

@test 'a tag that rests for a reason that nobody has recorded is named, too' {
    fake_dqd t
    id=$(dq -q add t)
    sql 'INSERT INTO dq_rest SELECT token, "t", UTC_TIMESTAMP(3) + INTERVAL 1 HOUR, 0, NULL FROM dq_poller'
    [ "$(said tags)" = 't rests: not known why' ]
    [[ $(dq doctor) == *'t cannot be started on vm: not known why;'* ]]
    [[ $(dq why "$id") == *'not known why'* ]]
}

@test 'doctor names the processes that a dqd keeps with its host, until what it has said of them is over' {
    fake_dqd t old
    sql "INSERT INTO dq_rest
         SELECT token, 't', UTC_TIMESTAMP(3) + INTERVAL 1 HOUR, 3, '1 busy, 0 idle' FROM dq_poller;
         INSERT INTO dq_rest
         SELECT token, 'old', UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, 3, '2 busy, 0 idle' FROM dq_poller"
    said=$(dq doctor || true)
    [[ $said == *'processes that t keeps on vm: 1 busy, 0 idle'* ]]
    [[ $said != *'2 busy'* ]]
}
