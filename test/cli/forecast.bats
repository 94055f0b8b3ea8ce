# forecast: what becomes due when.

load ../lib/sandbox

setup()
{
    sandbox_clear
    cd "$BATS_TEST_TMPDIR"
}

# many TAG N SECONDS STEP: N tasks, due from that many seconds from now on, STEP milliseconds apart.
many()
{
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT '$1', '', n + INTERVAL $3 SECOND + INTERVAL seq * $4 * 1000 MICROSECOND, n
         FROM $(numbers "$2"), (SELECT UTC_TIMESTAMP(3) AS n) t"
}

json() { python3 -c "import json, sys; rows = json.load(sys.stdin); $1"; }

# steps_are FORMAT ARGUMENT...: the steps, which begin at times of that FORMAT, have the tasks that the table has.
steps_are()
{
    sql "SELECT DATE_FORMAT(expected_time, '$1'), COUNT(*) FROM dq_task WHERE expected_time > UTC_TIMESTAMP(3)
         GROUP BY 1" >counts
    dq forecast "${@:2}" -o json | json '
counts = dict(line.split("\t") for line in open("counts"))
assert [r for r in rows[1:] if r["tasks"] != int(counts.get(r["time"], 0))] == [], (counts, rows)'
}

@test 'forecast counts what becomes due in each hour and minute, and marks herds' {
    many a 30 -300 1000
    many a 500 3700 0
    many b 200 3700 1000
    many b 99 90000 0
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT 'c', '', DATE_FORMAT(n, '%Y-%m-%d %H:%i:%s') + INTERVAL 10000 SECOND + INTERVAL seq * 8000 MICROSECOND,
                n
         FROM $(numbers 120), (SELECT UTC_TIMESTAMP(3) AS n) t" # all in one second
    dq forecast -o json | tee out | json '
assert len(rows) == 26 and rows[0]["time"] is None and rows[0]["tasks"] == 30, rows
assert sum(r["tasks"] for r in rows[1:]) in (820, 919) and not any(r["sampled"] for r in rows), rows
herds = [r for r in rows if r["herd"]]
assert [(h["herd"], h["herd_tag"]) for h in herds] == [(500, "a"), (120, "c")], herds
assert herds[1]["herd_time"].endswith(":%02d.000Z" % int(herds[1]["herd_time"][17:19])), herds
assert herds[0]["time"] <= herds[0]["herd_time"], herds'
    dq forecast -t b -o json | json 'assert not any(r["herd"] for r in rows) and rows[0]["tasks"] == 0, rows'
    dq forecast --for 2h -o json | json '
assert len(rows) == 122, len(rows)
assert sum(r["tasks"] for r in rows[1:]) == 700, rows'
    steps_are '%Y-%m-%dT%H:%i:00.000Z' --for 2h
    steps_are '%Y-%m-%dT%H:00:00.000Z'
    run dq forecast
    [[ ${lines[1]} =~ ^due\ now\ +30\  ]]
    [[ $output =~ ██+\ +500\ +[0-9:\ -]+\ a ]]
    run dq forecast --for 0s
    [ "$status" -eq 64 ]
    run dq forecast --for 100d --by minute
    [ "$status" -eq 64 ]
    sandbox_clear
    dq forecast -o json | json 'assert all(r["tasks"] == 0 for r in rows), rows'
}

@test 'of very many tasks forecast counts each step, marks what it estimates instead, and finds the herd' {
    many big 90000 1 40
    many big 20000 5400 0
    many small 10 60 1000
    for tag in late later; do many $tag 80000 -200000 1000; done
    sql 'ANALYZE NO_WRITE_TO_BINLOG TABLE dq_task'
    dq forecast --for 2h --by minute -o json | json '
tasks = sum(r["tasks"] for r in rows[1:])
assert 90000 < tasks < 130000, tasks # of 110,010, of which some become due meanwhile
assert 105000 < tasks < 110011 or any(r["sampled"] for r in rows[1:]), tasks
herd = max(rows, key=lambda r: r["herd"] or 0)
assert (herd["herd"], herd["herd_tag"]) == (20000, "big"), herd'
    # those that are due already are counted, as in dq tags; if time was up, at most 5 percent off
    dq forecast -o json | json 'assert 152000 <= rows[0]["tasks"] <= 168000, rows[0]'
}

@test 'the tasks of very many tags are counted, not estimated' {
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT CONCAT('t', seq), '', UTC_TIMESTAMP(3) + INTERVAL 30 MINUTE + INTERVAL seq MICROSECOND, UTC_TIMESTAMP(3)
         FROM $(numbers 60000)"
    many herd 300 3000 0
    dq forecast --for 2h --by minute -o json | json '
assert not any(r["sampled"] for r in rows) and sum(r["tasks"] for r in rows) == 60300, rows
assert [(r["herd"], r["herd_tag"]) for r in rows if r["herd"]] == [(300, "herd")], rows'
}

@test 'schedules of a tag with one time are a herd, unless they are spread' {
    for i in $(seq 120); do echo "s$i nightly --every 1d --from 2026-01-01T00:00:00Z"; done >schedules
    dq schedule apply schedules
    dq forecast -o json | json '
assert [(r["tasks"], r["herd"], r["herd_time"][10:], r["herd_tag"]) for r in rows if r["herd"]] == [
    (120, 120, "T00:00:00.000Z", "nightly")], rows'
    sed -i 's/$/ --spread 2h/' schedules
    dq schedule apply schedules
    dq forecast -o json | json '
assert 60 <= sum(r["tasks"] for r in rows) <= 240 and not any(r["herd"] for r in rows), rows'
}
