# dq bench: it says what it promises to say, and leaves nothing behind, however it ends.

load ../lib/sandbox

setup()
{
    sandbox_clear
    BENCH_PID=''
    export TMPDIR=$BATS_TEST_TMPDIR/tmp
    mkdir -p "$TMPDIR"
    dq add precious 'of somebody' --in 1d
    databases=$(databases)
    rows=$(rows)
}

teardown() { [ -z "$BENCH_PID" ] || kill -KILL "$BENCH_PID" 2>/dev/null || true; }

databases() { sql 'SHOW DATABASES'; }
rows() { sql 'CHECKSUM TABLE dq_task, dq_attempt, dq_limit, dq_poller, dq_meta'; }

# Nothing of a dq bench is there any more, and what was there before is as it was.
untouched() { [ "$(databases)" = "$databases" ] && [ "$(rows)" = "$rows" ] && [ -z "$(ls -A "$TMPDIR")" ]; }

scratch() { sql "SHOW DATABASES LIKE 'dq\\_bench\\_%'"; }
has_scratch() { [ -n "$(scratch)" ]; }
has_poller() { [ "$(sql "SELECT COUNT(*) FROM $(scratch).dq_poller" 2>/dev/null || echo 0)" -gt 0 ]; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }

# In the background; $BENCH_PID. What it says is in $BATS_TEST_TMPDIR/err.
bench_start()
{
    fresh "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err"
    "$DQ_BIN/dq" bench "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    BENCH_PID=$!
    wait_until has_scratch
}

bench_wait()
{
    local pid=$BENCH_PID rc=0
    BENCH_PID=''
    wait "$pid" || rc=$?
    cat "$BATS_TEST_TMPDIR/err"
    return "$rc"
}

# An account without rights but those given; $DQ_CONFIG names it from then on.
as_account()
{
    new_account benchmark S3cret-of-bench
    echo 'S3cret-of-bench' >"$BATS_TEST_TMPDIR/password"
    chmod 600 "$BATS_TEST_TMPDIR/password"
    own_ini "s|^user *=.*|user = benchmark|; s|^\[mysql\]|&\npassword_file = $BATS_TEST_TMPDIR/password|"
    export DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini
}

@test 'bench prints every measure, capacity and bottleneck, and its json is valid' {
    dq bench --for 2s -o json >"$BATS_TEST_TMPDIR/out"
    python3 - "$BATS_TEST_TMPDIR/out" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))
got = {kind: [r for r in rows if r["kind"] == kind] for kind in ("measure", "capacity", "bottleneck")}
names = {kind: " ".join(r["name"] for r in got[kind]) for kind in got}
assert names["measure"] == ("round-trip commit connect add-command add add-bulk peek claim settle"
    " spawn spawn-parallel run run-batch lateness"), rows
assert names["capacity"] == "process process-1s batch server add add-command hosts", rows
assert names["bottleneck"] == "process process-1s batch server add add-command lateness hosts", rows
for r in got["measure"] + got["capacity"]:
    assert r["value"] > 0 or r["name"] == "lateness" and r["value"] >= 0, r
    assert r["unit"] and r["about"], r
    assert r["unit"] != "ms" or r["p99"] >= r["value"], r
rates = {r["name"]: r["value"] for r in got["measure"]}
assert rates["add"] < 20 * 1000 / rates["round-trip"], rates  # each add takes one at least; the rest is noise
for r in got["bottleneck"]:
    assert r["setting"] and r["now"] and r["about"], r
END
    untouched
}

@test 'an interrupted bench drops its database and stops its dqd' {
    bench_start --for 1m
    kill -INT "$BENCH_PID"
    rc=0; bench_wait || rc=$?
    [ "$rc" -eq 75 ]
    grep -q '^dq: bench: interrupted$' "$BATS_TEST_TMPDIR/err"
    [ ! -s "$BATS_TEST_TMPDIR/out" ]
    untouched
    bench_start --for 10s
    wait_until has_poller
    dqd_pid=$(sql "SELECT MAX(pid) FROM $(scratch).dq_poller")
    kill -TERM "$BENCH_PID"
    rc=0; bench_wait || rc=$?
    [ "$rc" -eq 75 ]
    [ "$dqd_pid" = NULL ] || is_gone "$dqd_pid"
    untouched
}

@test 'a bench under nohup outlives its terminal; tsv has one line per row' {
    trap '' HUP
    bench_start --for 2s -o tsv
    trap - HUP
    kill -HUP "$BENCH_PID"
    bench_wait
    [ "$(awk -F '\t' 'NF == 8' "$BATS_TEST_TMPDIR/out" | wc -l)" -eq 30 ]
    untouched
}

@test 'a bench that fails midway drops its database' {
    connection() { sql "SELECT id FROM information_schema.processlist WHERE db = '$(scratch)' ORDER BY id LIMIT 1"; }
    killed() { sql "KILL $(connection)"; } # a node of Galera refuses it during a CREATE TABLE
    for ((rc = 0; rc == 0; )); do # a later part of it would connect again
        bench_start --for 2s
        wait_until killed
        bench_wait || rc=$?
    done
    cat "$BATS_TEST_TMPDIR/err"
    [ "$rc" -eq 69 ]
    [ "$(grep -c '^dq: ' "$BATS_TEST_TMPDIR/err")" -eq 1 ]
    untouched
}

@test 'an account without the privilege to create databases gets a GRANT statement that works; the table has words' {
    as_account
    rc=0; dq bench --for 2s >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    cat "$BATS_TEST_TMPDIR/err"
    [ "$rc" -eq 77 ]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/err")" -eq 1 ]
    untouched
    sql "$(grep -o 'GRANT [^;]*' "$BATS_TEST_TMPDIR/err")"
    bench_start --for 2s
    [ "$(grep -rc 'S3cret' "$TMPDIR" | grep -cv ':0$')" -eq 0 ]
    bench_wait
    grep -q -E '^measured on (MariaDB|MySQL) .* and this host$' "$BATS_TEST_TMPDIR/out"
    grep -q '^estimated capacity$' "$BATS_TEST_TMPDIR/out"
    grep -q '^bottlenecks$' "$BATS_TEST_TMPDIR/out"
    grep -qE '^process +[0-9.,]+.* tasks/day' "$BATS_TEST_TMPDIR/out"
    grep -qE '^hosts +max_connections +[0-9]+, [0-9]+ in use' "$BATS_TEST_TMPDIR/out"
    grep -q '^lateness' "$BATS_TEST_TMPDIR/out"
    untouched
}

@test 'bench uses an existing database only if it is empty; ndjson has one line per row' {
    rc=0; dq bench --for 2s --database dq 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    [ "$rc" -eq 1 ]
    grep -q '^dq: bench: --database dq: it is not empty: it has a table dq_' "$BATS_TEST_TMPDIR/err"
    refute grep DROP "$BATS_TEST_TMPDIR/err"
    untouched
    sql 'CREATE DATABASE spare; GRANT ALL ON spare.* TO dq@localhost'
    databases=$(databases)
    [ "$(dq bench --for 2s --database spare -o ndjson | grep -c '^{"kind":.*}$')" -eq 29 ]
    [ -z "$(sql 'SHOW TABLES FROM spare')" ]
    untouched
    as_account
    sql 'GRANT CREATE, ALTER, INDEX, SELECT, INSERT, UPDATE, DELETE ON spare.* TO benchmark@localhost'
    rc=0; dq bench --for 2s --database spare 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    [ "$rc" -eq 77 ]
    grep -qi 'drop command denied' "$BATS_TEST_TMPDIR/err"
    [ -z "$(sql 'SHOW TABLES FROM spare')" ]
    sql 'DROP DATABASE spare'
}

@test 'bench says what to do about a missing database, or one with tables of a killed bench' {
    sql 'CREATE DATABASE spare; GRANT ALL ON spare.* TO dq@localhost'
    databases=$(databases)
    "$DQ_BIN/dq" bench --for 1m --database spare >/dev/null 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    BENCH_PID=$!
    is_measuring() { grep -q '^measuring' "$BATS_TEST_TMPDIR/err"; }
    wait_until is_measuring
    kill -KILL "$BENCH_PID"
    bench_wait || true
    is_released() { rc=0; dq bench --for 2s --database spare 2>"$BATS_TEST_TMPDIR/err" || rc=$?; [ "$rc" -eq 1 ]; }
    wait_until is_released
    cat "$BATS_TEST_TMPDIR/err"
    sql "USE spare; $(grep -o 'DROP TABLE .*' "$BATS_TEST_TMPDIR/err")"
    [ -z "$(sql 'SHOW TABLES FROM spare')" ]
    sql 'CREATE TABLE spare.mine (a int); CREATE TABLE spare.dq_mine (a int)'
    rc=0; dq bench --for 2s --database spare 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    [ "$rc" -eq 1 ]
    refute grep DROP "$BATS_TEST_TMPDIR/err"
    sql 'DROP DATABASE spare'
    rc=0; dq bench --for 2s --database spare 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    cat "$BATS_TEST_TMPDIR/err"
    [ "$rc" -eq 78 ]
    grep -q '^dq: bench: --database spare: there is no such database' "$BATS_TEST_TMPDIR/err"
    refute grep 'dq init' "$BATS_TEST_TMPDIR/err"
    rm -rf "$TMPDIR"/dq-bench.* # of the killed one
}

@test 'if bench cannot drop its database, it reports that after the cause, with the statement to do it' {
    as_account
    sql 'GRANT ALL ON `dq_bench_%`.* TO benchmark@localhost'
    bench_start --for 1m
    left=$(scratch)
    is_measuring() { grep -q '^measuring' "$BATS_TEST_TMPDIR/err"; }
    wait_until is_measuring
    sql 'REVOKE DROP ON `dq_bench_%`.* FROM benchmark@localhost'
    kill -INT "$BENCH_PID"
    rc=0; bench_wait || rc=$?
    [ "$rc" -eq 75 ]
    [ "$(grep '^dq: ' "$BATS_TEST_TMPDIR/err")" = \
        "dq: bench: interrupted; $left could not be dropped: dq bench --clean drops it later" ]
    sql 'GRANT ALL ON `dq_bench_%`.* TO benchmark@localhost'
    [ "$(dq bench --clean)" = '1 dropped' ]
    untouched
}

@test 'bench names databases left by a killed one; --clean drops them, but not those in use' {
    bench_start --for 1m
    first=$(scratch)
    kill -KILL "$BENCH_PID"
    bench_wait || true
    is_disconnected() { [ "$(sql "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'dq'")" -eq 0 ]; }
    wait_until is_disconnected
    sql 'CREATE DATABASE dq_bench_0123456789ab; CREATE TABLE dq_bench_0123456789ab.mine (a int);
         CREATE DATABASE dq_bench_of_bob'
    fresh "$BATS_TEST_TMPDIR/err"
    "$DQ_BIN/dq" bench --for 1m >/dev/null 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    BENCH_PID=$!
    is_measuring() { grep -q '^measuring' "$BATS_TEST_TMPDIR/err"; }
    wait_until is_measuring
    grep -q "^the database $first was left behind" "$BATS_TEST_TMPDIR/err"
    refute grep 'dq_bench_0123456789ab\|of_bob' "$BATS_TEST_TMPDIR/err"
    [ "$(dq bench --clean -o json)" = '{"dropped":1}' ]
    kill -0 "$BENCH_PID"
    kill -TERM "$BENCH_PID"
    rc=0; bench_wait || rc=$?
    [ "$rc" -eq 75 ]
    [ "$(dq bench --clean)" = '0 dropped' ]
    sql 'DROP DATABASE dq_bench_0123456789ab; DROP DATABASE dq_bench_of_bob'
    rm -rf "$TMPDIR"/dq-bench.* # of the killed one
    untouched
}

@test 'without a dqd, the lines that depend on it say so' {
    mkdir "$BATS_TEST_TMPDIR/bin"
    cp "$DQ_BIN/dq" "$BATS_TEST_TMPDIR/bin/dq"
    PATH=/nonexistent "$BATS_TEST_TMPDIR/bin/dq" bench --for 2s >"$BATS_TEST_TMPDIR/out"
    [ "$(grep -c 'not measured: there is no dqd beside dq, nor in PATH' "$BATS_TEST_TMPDIR/out")" -eq 3 ]
    grep -q 'a guess, because dqd was not measured' "$BATS_TEST_TMPDIR/out"
    untouched
}

@test 'an unavailable server and an invalid duration are reported at once' {
    rc=0; dq bench --for 1s 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    [ "$rc" -eq 64 ]
    rc=0; dq bench --database '' 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    [ "$rc" -eq 64 ]
    rc=0; dq bench --clean --for 5s 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    [ "$rc" -eq 64 ]
    sed "s|^socket *=.*|socket = $BATS_TEST_TMPDIR/nobody|" "$DQ_CONFIG" >"$BATS_TEST_TMPDIR/away.ini"
    rc=0; dq --config "$BATS_TEST_TMPDIR/away.ini" bench 2>"$BATS_TEST_TMPDIR/err" || rc=$?
    [ "$rc" -eq 69 ]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/err")" -eq 1 ]
}
