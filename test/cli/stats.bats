# stats: counts by tag and state, and what dqd counted over time.

load ../lib/sandbox

setup()
{
    sandbox_clear
    cd "$BATS_TEST_TMPDIR"
    minute=$(sql "SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:00')") # that of the whole test
}

# task TAG STATUS SECONDS: due that many seconds from now, added two hours ago.
task()
{
    sql "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time)
         VALUES ('$1', '', $2, UTC_TIMESTAMP(3) + INTERVAL $3 SECOND, UTC_TIMESTAMP(3) - INTERVAL 2 HOUR)"
}

# counted TAG MINUTES STARTED DONE FAILED RETRIED: so many minutes ago, all 20 ms late but one, which was 4 s late; all
# took less than a second but one, which took 2 s.
counted()
{
    sql "INSERT INTO dq_minute VALUES ('$minute' - INTERVAL $2 MINUTE, '$1',
         REPEAT('a', 16), $3, $4, $5, $6, 0, 0, 0, $3, 1000, 2000, 4000, 4000, 0, 0, $3 - 1, 0, 0, 0, 0, 1, 0, 0, 0, 0,
         0, 0, 0, 0, 0, 0, $3 - 1, 1, 0, 0, 0, 0)"
}

json() { python3 -c "import json, sys; rows = json.load(sys.stdin); $1"; }

@test 'stats shows counts of tasks, and starts, ends, rate and lateness of the period, by tag and in total' {
    task known 1 -60; task known 3 -60; task mail.x 0 -30; task mail.x 0 3600
    counted known 10 3000 2990 4 6
    counted mail.x 50 100 90 0 10
    counted known 100 7 7 0 0
    dq stats -o json | tee out | json '
a, k, m = rows
assert (a["tag"], k["tag"], m["tag"]) == (None, "known", "mail.x"), rows
assert (a["pending"], a["running"], a["done"], a["due"], a["sampled"]) == (2, 1, 1, 1, False), a
assert 30000 <= a["late"] < 90000 and a["late"] == m["late"] and k["late"] is None, rows
assert (a["starts"], a["ended_done"], a["ended_failed"], a["retried"]) == (3100, 3080, 4, 16), a
assert (k["starts"], k["ended_done"], k["ended_failed"], k["retried"]) == (3000, 2990, 4, 6), k
assert 10 <= k["late_p50"] <= 25 and k["late_p99"] <= 25 and k["late_max"] == 4000, k
assert 250 <= k["took_p50"] < k["took_p95"] <= 1000, k
assert 2990 / 3665 <= k["done_per_s"] <= 2990 / 3595, k'
    dq stats --since 3h -o json | json 'assert rows[1]["ended_done"] == 2997, rows'
    dq stats --since "$(date -d '-3 hours' +%H:%M)" -o json | json 'assert rows[1]["ended_done"] == 2997, rows'
    run dq stats --since 0s
    [ "$status" -eq 64 ]
    run dq stats --tag known
    [[ ${lines[1]} =~ ^\(all\)\ +0\ +1\ +1\ +0 ]]
    [[ $output =~ what\ began\ and\ ended\ in\ the\ last\ 1h ]]
    [[ $output =~ known\ +3000\ +[0-9]+ms\ +[0-9]+ms\ +[0-9]+ms\ +4s\ +[0-9]+ms\ +[0-9]+ms\ +2990\ +4\ +6\ +0\ +0\.8 ]]
    [[ $output == *█* && ${lines[-1]} == *'no dqd is alive' ]]
    sandbox_clear
    [[ $(dq stats -o ndjson) =~ ^\{\"tag\":null,\"pending\":0.*\"late_p50\":null ]]
}

@test 'the rate is that of all tasks that were done, however many' {
    echo 'handlers: {t: {run: "true"}}' | write_handlers
    for i in $(seq 500); do echo '{"tag":"t"}'; done | dq -q add --from - >/dev/null
    dqd
    dq stats -o json | json '
for r in rows:
    assert r["done"] == r["ended_done"] == r["starts"] == 500, r
    assert abs(r["done_per_s"] - 500 / 3600) < 0.01, r'
}

@test 'stats --by prints a row for each minute or hour; programs also get the tags' {
    counted known 2 10 9 1 0
    counted mail.x 2 1 1 0 0
    counted known 1 5 5 0 0
    dq stats --by minute --since 5m -o json | json '
every = [r for r in rows if r["tag"] is None]
assert len(every) == 6, rows
done = [r["ended_done"] for r in every]
assert sum(done) == 15 and done[done.index(10) + 1] == 5, rows
known = [r for r in rows if r["tag"] == "known"]
assert [(r["starts"], r["ended_done"], r["ended_failed"]) for r in known] == [(10, 9, 1), (5, 5, 0)], known
assert known[0]["time"].endswith(":00.000Z") and known[0]["late_max"] == 4000, known'
    dq stats --by hour --since 3h -o json |
        json 'assert sum(r["ended_done"] for r in rows if not r["tag"]) == 15, rows'
    fake_dqd
    run dq stats --by minute --since 5m --tag known
    [ "${#lines[@]}" -eq 7 ]
    [[ $output == *' ████████████████████████'* ]]
    run dq stats --by day
    [ "$status" -eq 64 ]
    run dq stats --by minute --since 34d17h21m
    [ "$status" -eq 64 ]
    [[ $output == *'--since is too long for --by minute: give --by hour, or less than 50000' ]]
    [ "$(dq stats --by minute --since 34d17h20m --tag none -o tsv | wc -l)" -gt 50000 ]
}

@test 'stats -o prometheus is what promtool accepts; labels are escaped, and there are not too many' {
    task known 0 -60
    task 'a"b\\c' 0 -60
    task "$(printf 'x\ny')" 0 -60
    task escape 0 -60
    sql "UPDATE dq_task SET tag = CONVERT(X'1B5D303B7AC29BE280AE' USING utf8mb4) WHERE tag = 'escape'"
    task '\\x1B]0;z\\u{009B}\\u{202E}' 0 -60 # another tag
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT CONCAT('many', seq), '', UTC_TIMESTAMP(3) + INTERVAL 1 HOUR, UTC_TIMESTAMP(3) FROM $(numbers 300)"
    counted known 10 100 98 1 1
    dq -q pause known
    dq stats -o prometheus >out
    promtool check metrics <out
    grep -qxF 'dq_tasks{tag="a\"b\\\\c",status="pending"} 1' out
    grep -qxF 'dq_tasks{tag="x\\ny",status="pending"} 1' out
    # what a terminal would act on is not there, and different tags stay different
    grep -qxF 'dq_tasks{tag="\\x1B]0;z\\u{009B}\\u{202E}",status="pending"} 1' out
    grep -qxF 'dq_tasks{tag="\\\\x1B]0;z\\\\u{009B}\\\\u{202E}",status="pending"} 1' out
    refute grep -q "$(printf '\033\|\302\233\|\342\200\256')" out
    [ "$(grep -v '^#' out | sed 's/ [^ ]*$//' | sort | uniq -d)" = '' ]
    grep -qxF 'dq_tasks{tag="",status="pending"} 205' out
    [ "$(grep -c '^dq_due_tasks' out)" = 101 ]
    grep -qxF 'dq_period_done{tag="known"} 98' out
    grep -qxF 'dq_tag_paused{tag="known"} 1' out
    grep -qxF 'dq_late_seconds{tag="known"} 0.000' out
    grep -qE '^dq_late_seconds\{tag="x.*"\} (6|7|8)[0-9]\.[0-9]{3}$' out
    grep -qxF 'dq_dqds_alive 0' out
    for name in $(sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' out); do grep -qF "$name" "$DQ_TOP/doc/dq-stats.1"; done
    run dq stats -o prometheus --by hour
    [ "$status" -eq 64 ]
    run dq tags -o prometheus
    [ "$status" -eq 64 ]
}

@test 'stats --html writes one page that loads nothing, in which tags are text' {
    task '<script>alert(1)</script>&"' 0 -60
    counted known 10 100 98 1 1
    counted known 40 20 20 0 0
    echo old >page.html
    dq stats --html page.html
    ls -A >files
    [ "$(grep -vxE 'out|files|page.html' files)" = '' ]
    grep -q '&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;' page.html
    refute grep -qiE '<script|https?:|src=|@import|url\(' page.html
    python3 - <<'END'
import re
from html.parser import HTMLParser
class Page(HTMLParser):
    seen, text = [], ''
    def handle_starttag(self, tag, attributes): self.seen.append(tag)
    def handle_data(self, data): self.text += data
p = Page()
p.feed(open('page.html').read())
assert p.seen.count('svg') >= 3 and 'table' in p.seen and '98 done' in p.text, p.seen
def heights(line):
    found = re.findall(f'<polyline class="{line}" points="([^"]*)', open('page.html').read())
    return [float(point.split(',')[1]) for points in found for point in points.split()]
p50, p95, most = map(heights, ('p50', 'p95', 'max'))
assert all(a >= b > (a + c) / 2 for a, b, c in zip(p50, p95, most)), (p50, p95, most)
END
    dq stats --html - | grep -q '^<!DOCTYPE html>'
    mkdir directory
    run dq stats --html directory/none/page.html
    [ "$status" -ne 0 ]
    [[ $output == 'dq: stats: cannot write directory/none/page.html: No such file or directory' ]]
}

# Never the /dev/null and /dev/stdout of this machine.
@test 'the page has the errors, what becomes due, and says when its job has stopped' {
    dq stats --html empty.html
    grep -q 'Nothing failed in this time' empty.html
    grep -q 'Nothing becomes due in this time' empty.html
    refute grep -qE 'http-equiv="refresh"|has stopped' empty.html
    task known 0 5400
    counted known 10 100 98 1 1
    for id in $(seq 12); do
        sql "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time)
                 VALUES ('pay<', '', 2, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3));
             INSERT INTO dq_attempt (task_id, version, attempt, start_time, finish_time, outcome, error_stack)
             VALUES (LAST_INSERT_ID(), 2, 1, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE, 'exit',
                 REPEAT('again <b> ', 1 + MOD($id, 11)))"
    done
    dq stats --html page.html --refresh 60s
    grep -q '<meta http-equiv="refresh" content="60">' page.html
    grep -qE '<p>made 20[^<]* from [^<]*; if this is older than 2m its job has stopped</p>' page.html
    [ "$(grep -c '^<li><b>' page.html)" -eq 10 ]
    grep -qE '^<li><b>2</b><div>pay&lt;: (again &lt;b&gt; ?)+ <small>2 failed, 0 run again, last ' page.html
    grep -qF '<p>and 1 more kinds: dq errors lists all</p>' page.html
    [ "$(grep -o '<path class="ahead"' page.html | wc -l)" -eq 1 ]
    grep -qF 'class="legend lines"' page.html
    run dq stats --refresh 60s
    [ "$status" -eq 64 ]
}

@test 'stats --html replaces nothing but files, which keep their mode' {
    cd "$BATS_TEST_TMPDIR"
    ends() { [ "$(tail -n 1 "$1")" = '</html>' ]; }
    echo old >page.html
    chmod 600 page.html
    ln -s page.html link
    dq stats --html link
    ends page.html
    [ "$(stat -c %a:%F page.html link)" = $'600:regular file\n777:symbolic link' ]
    ln -s /dev/fd/1 stdout
    { echo first; dq stats --html stdout; echo last; } >all
    [ "$(sed -n '1p; $p' all)" = $'first\nlast' ]
    sed -i '$d' all
    ends all
    mkfifo fifo
    cat fifo >copy 3>&- &
    dq stats --html fifo
    wait $!
    ends copy
    [ -p fifo ]
    if mknod null c 1 3; then # as root; the file system may be mounted nodev
        dq stats --html null || [ $? = 71 ]
        [ -c null ]
    fi
}

@test 'a paused tag does not make all tags late, and stands last on the page' {
    task held 0 -3600; task mail.x 0 -30; task idle 1 -60
    dq -q pause held
    dq stats -o json | json '
all, held = rows[0], rows[1]
assert held["tag"] == "held" and held["late"] is None and 30000 <= all["late"] < 600000, rows'
    dq stats -t held -o json | json 'assert rows[0]["late"] is None and rows[0]["due"] == 1, rows'
    dq stats --html - >page
    [ "$(grep -o '<th scope="row">[a-z.]*' page | cut -d '>' -f 2 | tr '\n' ' ')" = 'mail.x idle held ' ]
    grep -qF '<span>late</span><b class="bad">' page
    dq stats -t held --html - >page
    refute grep -F '<span>late</span><b class="bad">' page
    refute grep -F 'data-name="late" class=" bad"' page
    grep -qF 'paused until resumed' page
}
