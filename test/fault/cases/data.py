"""Bytes, texts, times."""
import datetime
import json
import os

from cases import case
from harness.oracle import DONE, Oracle
from harness.proxy import Rule

FNV_START, FNV_PRIME = 14695981039346656037, 1099511628211


def _fnv(data):
    h = FNV_START
    for byte in data:
        h = (h ^ byte) * FNV_PRIME & (1 << 64) - 1
    return f"{h:016x}"


def _fnv_of_zeros(size):
    return f"{FNV_START * pow(FNV_PRIME, size, 1 << 64) % (1 << 64):016x}"


@case("bodies", 15)
def bodies(t):
    """Bodies with every byte and of every size up to the packet limit arrive unchanged on the handler's stdin,
    or are refused before anything is sent."""
    limit = 1 << 20
    t.sql(f"SET GLOBAL max_allowed_packet = {limit}")
    try:
        rng = t.rng
        every = bytes(range(256))
        bodies_ = [
            b"",
            b"x",
            b"\0",
            b"it's",
            b"\\",
            every,
            every * 64,
            b"'\\\"\n\r\x1a%_;--",
            rng.randbytes(16383),
            rng.randbytes(16384),
            rng.randbytes(16385),
            rng.randbytes(200_000),
            "ünï\u202e".encode(),
            b"\xff\xfe\xc0\x80",
        ]
        bodies_ += [bytes([b]) for b in range(256) if t.full]
        expected = {}
        for body in bodies_:
            expected[int(t.dq("add", "t", "-", body=body).stdout)] = (len(body), _fnv(body))
        low, high = limit - 2000, limit + 1
        while high - low > 1:  # the longest body of zeros that is accepted: as a literal it would be twice as long
            middle = (low + high) // 2
            done = t.dq("add", "t", "-", body=b"\0" * middle, status=(0, 65))
            if done.returncode:
                t.expect(b"max_allowed_packet" in done.stderr, f"refused without giving a reason: {done.stderr}")
                high = middle
            else:
                expected[int(done.stdout)] = (middle, _fnv_of_zeros(middle))
                low = middle
        t.note(f"max_allowed_packet {limit}: {low} bytes are taken, {high} are refused")
        t.expect(low >= limit - 1024, f"a body of {high} bytes was refused")
        t.expect(t.count() == len(expected), "a refused body was stored")
        lines = "".join(json.dumps({"tag": "t", "body": text}) + "\n" for text in ("", "\u0000", "é", "\U0001f600"))
        first = t.one("SELECT MAX(id) FROM dq_task") + 1
        t.dq("add", "--from", "-", body=lines.encode())
        for n, text in enumerate(("", "\0", "é", "\U0001f600")):
            expected[first + n] = (len(text.encode()), _fnv(text.encode()))
        t.configure(lease="10s")
        t.dqd()
        t.wait_finished()
        oracle = Oracle(t)
        oracle.check()
        for task, (size, digest) in expected.items():
            a = oracle.attempts[task][0]
            t.expect(
                (a.size, a.hash) == (size, digest),
                f"task {task}: {size} bytes {digest} became {a.size} bytes {a.hash}",
            )
    finally:
        t.sql("SET GLOBAL max_allowed_packet = 16777216")


# Tags, keys and bodies. Tags that dq add refuses are inserted as an application would insert them.
EVIL = [
    "$(touch${{IFS}}{0})",
    ";touch${{IFS}}{0};#",
    "a|touch${{IFS}}{0}",
    "a&touch${{IFS}}{0}&",
    "a;touch<>{0}",
    "%s%n%p",
    "[!a]",
    "e\u0301",
    "..",
    "../../x",
    "a=b",
    "~root",
    "x;DROP(dq_task);--",
    "x" * 128,
]
EVIL_KEYS = ["a\u202eb", "a\u2066b", "\u200b"]  # refused in a tag only
EVIL_ROWS = [
    "$(touch {0})",
    "`touch {0}`",
    "; touch {0} #",
    "' ; touch {0} ; '",
    "\" ; touch {0} ; \"",
    "a\" OR 1=1 --",
    "x'; DROP TABLE dq_task; --",
    "*",
    "?[!a]",
    "a b",
    "\\",
    "\\'",
    "-rf",
    "--help",
    "a\nb",
    "a\ntouch {0}\n",
    "a\x1b[2J",
    "\x1b]0;title\x07",
    "a\x7f",
    "a\x9bb",
    *EVIL_KEYS,
]


def _hex(text):
    data = text if isinstance(text, bytes) else text.encode()
    return f"X'{data.hex()}'" if data else "''"


@case("evil-text", 15)
def evil_text(t):
    """Tags, keys and bodies full of shell, SQL and terminal tricks, from dq and from applications, have no
    effect anywhere."""
    mark = t.dir + "/touched"
    t.handlers({"*": {"run": "'true \"$DQ_TAG\" $DQ_KEY; cat; echo \"$DQ_TAG $DQ_KEY\"'"}})
    texts, rows = ([e.format(mark)[:128] for e in some] for some in (EVIL, EVIL_ROWS))
    keys = texts + [text for text in rows if text.isprintable()] + EVIL_KEYS
    bodies_ = [text.encode() for text in texts + rows] + [b"\x1b]0;title\x07\x1b[2J", b"line\r\nline\0"]
    for n, text in enumerate(texts):
        t.dq("add", text, "-", "--key", text + str(n), body=bodies_[n])
    for n, key in enumerate(keys):
        t.dq("add", "plain", "-", "--key", key, body=bodies_[-1 - n])
    stored = t.count()
    for bad in ("", "x" * 129, *[text for text in rows if text != "--help"]):
        t.dq("add", bad, "x", status=(64, 65))
    t.expect(stored == len(texts + keys) and t.count() == stored, "not every task is stored, or one that was refused")
    for text in rows:
        t.sql(
            "INSERT INTO dq_task (tag, task_key, live, message_body, expected_time, create_time)"
            f" VALUES ({_hex(text)}, {_hex(text)}, 1, {_hex(text)}, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
        )
    stored = t.count()
    t.dqd()
    t.wait_finished()
    t.expect(not os.path.exists(mark), "something was executed")
    t.expect(t.count(f"status = {DONE}") == stored, "not every task is done")
    # Nothing printed on a terminal may move its cursor or reorder its text.
    forbidden = (
        [chr(c) for c in range(32) if chr(c) != "\n"]
        + ["\x7f", "\u202e", "\u2066", "\u200b"]
        + [chr(c) for c in range(0x80, 0xA0)]
    )
    for arguments in (
        ["list", "--status", "all"],
        ["tags"],
        ["show", *[r[0] for r in t.sql("SELECT id FROM dq_task")]],
        ["stats"],
    ):
        done = t.dq(*arguments)
        text = done.stdout.decode()
        t.expect(
            not [c for c in forbidden if c in text], f"dq {arguments[0]} prints {[c for c in forbidden if c in text]}"
        )
    tags = {r["tag"] for r in json.loads(t.dq("list", "-o", "json", "--status", "all", "-n", "0").stdout)}
    t.expect(tags == {*texts, *rows, "plain"}, f"tags came out changed: {tags ^ {*texts, *rows, 'plain'}}")
    log = t.dqds[0].log()
    t.expect(not [c for c in forbidden if c in log], "the log has control characters")
    for text in rows:  # as an operator would copy them from a list
        t.dq("cancel", "--tag", text, "-y", status=(0, 1, 64, 65))
        t.dq("pause", text, status=(0, 1, 64, 65))
    t.expect(t.count() == stored and not os.path.exists(mark), "a tag was executed")


@case("clocks", 25)
def clocks(t):
    """The host's clock is an hour off, time zones are odd, on the host and in the session. Nothing starts
    early or late."""
    worst = 0
    hosts = [
        ("3600000", "UTC"),
        ("-3600000", "UTC"),
        ("0", "Asia/Kathmandu"),
        ("0", "America/New_York"),
        ("7200000", "Pacific/Chatham"),
        ("0", ":/nonexistent"),
    ]
    beside = t.neighbour()
    for clock, zone in hosts:
        environment = {"LD_PRELOAD": t.preload, "DQ_FAULT_CLOCK_MS": clock, "TZ": zone}
        ini = t.configure({"init_command": "SET SESSION time_zone = '+12:45'"}, path=t.dir + "/clock.ini")
        for n in range(4):
            t.added += 1
            t.dq("add", "t", "--in", f"{300 + 200 * n}ms", "--key", f"k{t.added}", ini=ini, environment=environment)
            t.acked.add(f"k{t.added}")
        t.faults.add("clock", by=clock, zone=zone)
        d = t.dqd(ini=ini, environment=environment)
        t.wait_finished()
        t.expect(d.stop() == 0, "dqd did not exit with 0")
    oracle = Oracle(t)
    oracle.check()
    worst = t.one("SELECT MAX(TIMESTAMPDIFF(MICROSECOND, expected_time, execution_time)) DIV 1000 FROM dq_task")
    t.note(f"{len(hosts)} hosts: latest start {worst} ms after its time")
    t.in_time(worst < 1500 * t.slowness() + beside.allows_ms(1, 1500), f"a task was {worst} ms late")


@case("clock-changes", 5)
def clock_changes(t):
    """Local times around both changes of daylight saving time are exact, or refused with both readings."""

    def added(zone, at):
        done = t.dq("add", "t", "--at", at, status=(0, 64), environment={"TZ": zone})
        if done.returncode:
            return done.stderr.decode()
        return t.sql(f"SELECT expected_time FROM dq_task WHERE id = {int(done.stdout)}")[0][0]

    berlin = "Europe/Berlin"
    for at, expected in (
        ("2027-03-28 01:59:59.999", "2027-03-28 00:59:59.999"),
        ("2027-03-28 03:00", "2027-03-28 01:00:00.000"),
        ("2027-10-31 01:59", "2027-10-30 23:59:00.000"),
        ("2027-10-31 03:00", "2027-10-31 02:00:00.000"),
        ("2027-10-31T02:30:00+02:00", "2027-10-31 00:30:00.000"),
        ("2027-10-31T02:30:00+01:00", "2027-10-31 01:30:00.000"),
    ):
        t.expect(added(berlin, at) == expected, f"{at} became {added(berlin, at)}")
    for at, readings in (
        ("2027-03-28 02:30", ("2027-03-28T01:30:00+01:00", "2027-03-28T03:30:00+02:00")),
        ("2027-10-31 02:30", ("2027-10-31T02:30:00+02:00", "2027-10-31T02:30:00+01:00")),
    ):
        said = added(berlin, at)
        t.expect(all(r in said for r in readings), f"{at} was not refused with both readings: {said}")


@case("far-times", 8)
def far_times(t):
    """2038, leap days, the far future, the past, negative delays: times are exact, or refused."""
    exact = {
        "2038-01-19T03:14:07Z": "2038-01-19 03:14:07.000",
        "2038-01-19T03:14:08Z": "2038-01-19 03:14:08.000",
        "2028-02-29T12:00:00Z": "2028-02-29 12:00:00.000",
        "2106-02-07T06:28:16Z": "2106-02-07 06:28:16.000",
        "9999-12-31T23:59:59.999Z": "9999-12-31 23:59:59.999",
        "@4102444800.25": "2100-01-01 00:00:00.250",
    }
    for at, expected in exact.items():
        task = int(t.dq("add", "far", "--at", at).stdout)
        stored = t.sql(f"SELECT expected_time FROM dq_task WHERE id = {task}")[0][0]
        t.expect(stored == expected, f"{at} became {stored}")
        shown = json.loads(t.dq("list", "-o", "json", "--columns", "id,expected", "-n", "100").stdout)
        mine = next(r for r in shown if r["id"] == task)
        t.expect(
            datetime.datetime.fromisoformat(mine["expected"].replace("Z", "+00:00")).strftime(
                "%Y-%m-%d %H:%M:%S.%f"
            )[:-3]
            == expected,
            f"{at} is shown as {mine}",
        )
    before = t.count()
    for bad in (
        ["--in", "-5s"],
        ["--in", "9999999d"],
        ["--at", "2027-02-29"],
        ["--at", "2027-13-01"],
        ["--at", "10000-01-01"],
        ["--at", "@99999999999999"],
        ["--in", "5"],
        ["--in", "5x"],
    ):
        t.dq("add", "far", *bad, status=(64, 65))
    t.expect(t.count() == before, "a refused task is stored")
    t.dq("add", "t", "--at", "2000-01-01T00:00:00Z")
    t.handlers({"t": "", "far": ""})
    t.dqd()
    t.wait(lambda: t.count("tag = 't' AND status = 1") == 1, "an overdue task runs at once")
    t.sleep(0.5)
    t.expect(t.count("tag = 'far' AND status = 0") == before, "a task of the far future was started")


@case("ladder", 10)
def ladder(t):
    """The nine steps of the default ladder are planned to the millisecond. Then the task has failed."""
    steps = [5, 30, 60, 600, 1800, 3600, 21600, 86400, 172800]
    with open(t.handlers_file, "w", encoding="utf-8") as f:
        f.write(f"handlers:\n  t:\n    run: [{t.program}, {t.journal}, exit=1]\n")
    t.dqd()
    t.add(1)
    for n, seconds in enumerate(steps, 1):
        t.wait(lambda n=n: t.count(f"status = 0 AND attempt = {n}") == 1, f"attempt {n} has failed")
        planned = t.one("SELECT TIMESTAMPDIFF(MICROSECOND, update_time, expected_time) FROM dq_task")
        t.expect(
            planned == seconds * 1_000_000, f"after attempt {n}: planned {planned} us ahead instead of {seconds} s"
        )
        t.dq("run-now", "1", "-y")
    t.wait(lambda: t.count("status = 2 AND attempt = 10") == 1, "it has failed after ten attempts")
    oracle = Oracle(t)
    oracle.check()
    t.expect(
        oracle.starts == 10 and t.one("SELECT COUNT(*) FROM dq_attempt WHERE outcome = 'exit'") == 10,
        "the history is wrong",
    )


@case("refused-pass", 10)
def refused_pass(t):
    """The server refuses the writes of a pass. The pass exits and says why; a task whose result was not
    recorded runs again."""
    proxy = t.proxy()
    ini = t.configure(proxy.settings(), lease="2s")
    t.add(1, words="ms=5")
    for statement in ("claim", "settle"):
        proxy.rules = [Rule(statement, "error", number=1114)]
        done = t.run("dqd", "--config", ini)
        t.expect(
            done.returncode == 69 and b"space" in done.stderr, f"{statement}: status {done.returncode}: {done.stderr}"
        )
        t.expect(t.faults.count("error") > 0, "nothing was refused")
    proxy.rules = []
    t.wait(
        lambda: t.run("dqd", "--config", ini).returncode == 0 and t.count("status = 1") == 1,
        "the next pass runs it",
    )
    Oracle(t).check()


@case("disk-full", 20, options="--innodb-file-per-table=0 --innodb-data-file-path=ibdata1:12M:autoextend:max:24M")
def disk_full(t):
    """The database runs out of space. dq add fails with a message, no acknowledged task is missing, no task is
    falsely done; with space again, everything continues."""
    t.handlers({"t": "", "big": ""})
    t.dqd()
    body, full = os.urandom(200_000).hex().encode(), 0
    for n in range(200):
        t.added += 1
        done = t.dq("add", "big", "-", "--key", f"k{t.added}", "--in", "1h", body=body, status=None)
        if done.returncode == 0:
            t.acked.add(f"k{t.added}")
            continue
        t.expect(done.returncode == 69 and b"space" in done.stderr, f"status {done.returncode}: {done.stderr}")
        full += 1
        t.faults.add("full")
        if full == 5:
            break
    t.expect(full == 5, f"dq add failed {full} of 5 times: the disk had space, or dq add did not fail")
    keys = {r[0] for r in t.sql("SELECT task_key FROM dq_task")}
    t.expect(keys == t.acked, f"{len(keys)} stored, {len(t.acked)} acknowledged")
    t.note(f"{len(keys)} tasks of 400 kB fitted")
    small = t.dq("add", "t", "--key", "small", status=None)
    if small.returncode == 0:
        t.acked.add("small")
    t.server.kill()
    t.server.options = t.server.options.replace(":24M", ":64M")
    t.server.start()
    t.wait(lambda: t.dq("run-now", "--tag", "big", "-y", status=None).returncode == 0, "there is room again")
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
