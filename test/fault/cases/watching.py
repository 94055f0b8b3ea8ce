"""What operators watch: the counts of dq_minute, the output of running attempts,
and these tables when they are away."""
import json
import subprocess
import time

from cases import case
from harness import mysql
from harness.chaos import Chaos
from harness.oracle import DONE, FAILED, Oracle
from harness.proxy import Rule

MINUTE, CHUNK = r"^INSERT INTO dq_minute", r"\bdq_output\b"
CUTS = ("cut-before", "cut-after", "cut-late")
COUNTS = "COALESCE(SUM(started), 0), COALESCE(SUM(done), 0), COALESCE(SUM(failed), 0), COALESCE(SUM(retried), 0)"


def _counted(t, where="TRUE"):
    return tuple(map(int, t.sql(f"SELECT {COUNTS} FROM dq_minute WHERE {where}")[0]))


def _true(oracle):
    """The same by the journal and the audit table: attempts that began, tasks done, failed, attempts that were
    repeated."""
    to = [int(row[4]) for row in oracle.audit if int(row[3]) == 3]
    again = sum(1 for row in oracle.audit if (row[3], row[4]) == ("3", "0") and row[6] == row[7])
    return oracle.starts, to.count(DONE), to.count(FAILED), again


@case("cut-counts", 15, tls="full")
def cut_counts(t):
    """The connection is cut at claims, results and the counts themselves, and another dqd takes none of the
    tasks. At the end the counts by minute are exactly what happened."""
    proxy = t.proxy()
    t.configure(proxy.settings(), lease="20s", heartbeat="200ms")
    t.handlers({"t": "", "u": ""}, retry="[50ms, 50ms]")
    wanted = t.often(30, 300)
    d = t.dqd()
    for n in range(wanted):
        proxy.rules = [
            Rule((MINUTE, "settle", MINUTE, "commit", "claim")[n % 5], CUTS[n // 5 % 3], most=1, seconds=0.1)
        ]
        t.add(6, ("t", "u")[n % 2], words=f"ms=5 fail={n % 4}")
        t.wait(lambda n=n: t.faults.count("cut") > n, "it was cut")
    t.wait_finished()
    # Nothing happens any more that would write them again.
    proxy.rules = [Rule(MINUTE, "cut-before", most=5)]
    t.add(20, words="ms=1")
    t.wait_finished()
    t.wait(lambda: proxy.rules[0].hits == 5, "the last counts are cut off")
    t.wait(lambda: _counted(t)[1] == t.count("status = 1"), "they are written in the end")
    t.expect(d.stop() == 0, "dqd ends with status 0")
    oracle = Oracle(t)
    oracle.check()
    t.expect(t.faults.count("cut") >= wanted, "fewer cuts than asked")
    t.expect(
        _counted(t) == _true(oracle),
        f"counted (started, done, failed, retried) {_counted(t)}, happened {_true(oracle)}",
    )
    t.note(f"{t.faults.count('cut')} cuts; started, done, failed, retried: {_counted(t)}")


@case("kill-counts", 20)
def kill_counts(t):
    """dqd processes are killed. None counts anything twice, one that was not killed counts everything, and one
    that was has lost at most what it did since its last heartbeat."""
    heartbeat_s = 0.5
    t.configure(heartbeat=f"{heartbeat_s}s")
    t.add(200, words="ms=100")
    for _ in range(3):
        t.dqd(keep=True)
    chaos = Chaos(t, (0.3, 0.8), kill=60 if t.full else 12)
    chaos.run(lambda: t.count("status = 0") < 100 and t.add(50, words="ms=100"))
    chaos.verify()
    for d in t.dqds:
        d.stop()
    Oracle(t).check()
    since = heartbeat_s + 0.5 + 0.5 * t.slowness()
    rows = t.sql(
        "SELECT a.done, COALESCE(m.done, 0), a.recent, e.token IS NOT NULL FROM"
        " (SELECT old_token, COUNT(*) AS done, SUM(at > last - INTERVAL"
        f" {round(since * 1e6)} MICROSECOND) AS recent FROM dq_audit JOIN"
        "  (SELECT old_token AS token, MAX(at) AS last FROM dq_audit WHERE status = 1 GROUP BY old_token) l"
        "  ON l.token = old_token WHERE status = 1 GROUP BY old_token) a"
        " LEFT JOIN (SELECT poller, SUM(done) AS done FROM dq_minute GROUP BY poller) m ON m.poller = a.old_token"
        " LEFT JOIN dq_event e ON e.verb = 'dqd-end'"
        "  AND e.token = UNHEX(LEFT(SHA2(CONCAT(a.old_token, 'dqd-end0'), 256), 32))"
    )
    lost = 0
    for done, counted, recent, ended in (map(int, row) for row in rows):
        t.expect(counted <= done, f"{done} tasks done, {counted} counted")
        t.expect(not ended or counted == done, f"a dqd that ended counted {counted} of {done} tasks")
        t.expect(
            done - counted <= recent, f"{counted} of {done} tasks counted, {recent} done in the last {since:.1f} s"
        )
        lost += done - counted
    t.expect(sum(int(row[3]) for row in rows) >= 3, "fewer than three dqds ended")
    t.note(f"{len(rows)} dqds, {sum(int(row[0]) for row in rows)} tasks done, {lost} of them not counted")


# ---- output


class Follower:
    """dq logs -f, whose output goes to a file."""

    def __init__(self, t, task, ini=None):
        self.t, self.path = t, f"{t.dir}/follower{len(t.dqds)}.{time.monotonic()}"
        with open(self.path, "wb") as out, open(self.path + ".err", "wb") as err:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [t.bin + "/dq", "--config", ini or t.ini, "logs", "-f", str(task)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=t.environment,
            )

    def text(self):
        with open(self.path, encoding="utf-8") as f:
            return f.read()

    def said(self):
        with open(self.path + ".err", encoding="utf-8") as f:
            return f.read()

    def wait(self, timeout=30):
        self.t.wait(lambda: self.process.poll() is not None, f"dq logs -f ends; it said: {self.said()}", timeout)

    def kill(self):
        self.process.kill()
        self.process.wait()


def _counting(lines, pause="0.1"):
    """A handler that writes its attempt and a number, line by line."""
    script = f"i=1; while [ $i -le {lines} ]; do echo $DQ_ATTEMPT.$i; i=$((i+1)); sleep {pause}; done"
    return {"run": json.dumps(["/bin/sh", "-c", script])}


def _same(t, follower, attempt, count):
    """The follower has printed all lines of the attempt, and no other."""
    lines, expected = follower.text().split(), _lines(attempt, count).split()
    wrong = next((a for a, b in zip([*lines, "nothing"], [*expected, "nothing"]) if a != b), None)
    t.expect(
        not wrong, f"{len(lines)} of {count} lines were printed, the first wrong one is {wrong}; {follower.said()}"
    )


def _lines(attempt, count):
    return "".join(f"{attempt}.{n}\n" for n in range(1, count + 1))


@case("cut-output", 15, tls="full")
def cut_output(t):
    """A running attempt is followed while the connections of its dqd and of dq logs are cut again and again,
    and both are away for a second. Everything it wrote is printed, once and in order."""
    theirs, ours = t.proxy(), t.proxy()
    lines = 120
    t.handlers({"t": _counting(lines)}, timeout="10m")
    t.configure(theirs.settings(), lease="20s")
    follower_ini = t.configure(ours.settings(), path=t.dir + "/follower.ini")
    t.dqd()
    t.add(1)
    t.wait(lambda: t.count("status = 3") == 1, "it runs")
    follower = Follower(t, 1, follower_ini)
    t.wait(lambda: "1.3\n" in follower.text(), "its output comes")
    theirs.rules = [Rule(CHUNK, action, 0.15, seconds=0.1) for action in CUTS]
    ours.rules = [Rule(CHUNK, action, 0.15, seconds=0.1) for action in CUTS]
    t.wait(lambda: "1.60\n" in follower.text(), "half of its output has come")
    theirs.rules = ours.rules = []
    t.faults.add("away")
    for proxy in (theirs, ours):
        proxy.close()
    t.sleep(1)
    for proxy in (theirs, ours):
        proxy.open()
    t.wait_finished()
    follower.wait()
    _same(t, follower, 1, lines)
    t.expect(follower.process.returncode == 0, f"dq logs: status {follower.process.returncode}")
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_output") == 0, "its output is deleted")
    made = t.faults.count("cut")
    t.expect(made >= 4, f"only {made} cuts")
    t.note(f"{made} cuts; follower: {follower.said().strip()!r}")


OVER = 140  # lines: more seconds than a dqd keeps the output of an attempt that has ended


@case("output-taken-over", 25)
def output_taken_over(t):
    """A followed dqd is frozen beyond its lease, and another one takes the task over and is followed, too. Each
    follower prints what its attempt wrote and nothing of the other; when the first dqd is back it changes
    nothing of the new one's output."""
    t.handlers({"t": _counting(OVER)}, timeout="10m", retry="[50ms, 50ms]")
    first = t.dqd()
    t.add(1, max_attempts=5)
    t.wait(lambda: t.count("status = 3") == 1, "it runs")
    old = Follower(t, 1)
    t.wait(lambda: "1.5\n" in old.text(), "its output comes")
    entry = t.faults.add("freeze", pids=first.pids("both"))
    first.send("both", 19)
    second = t.dqd()
    t.wait(lambda: t.count("status = 3 AND attempt = 2") == 1, "another dqd runs it")
    new = Follower(t, 1)
    t.wait(lambda: "2.5\n" in new.text(), "the output of the second attempt comes")
    first.send("both", 18)
    entry["until"] = time.monotonic()
    t.wait(lambda: not first.handlers(), "the first dqd has killed its handler")
    old.wait()
    version = t.one("SELECT version FROM dq_task")
    t.wait(
        lambda: not t.one(f"SELECT COUNT(*) FROM dq_output WHERE task_version < {version}"),
        "the output of the first attempt is deleted",
    )
    t.expect(t.count(f"status = 3 AND version = {version}"), "the second attempt has ended too early")
    chunks = t.sql(f"SELECT COUNT(*), MAX(seq) FROM dq_output WHERE seq > 0 AND task_version = {version}")[0]
    t.expect(chunks[0] == chunks[1], f"of the new output, {chunks[0]} chunks of {chunks[1]} are left")
    t.wait(lambda: "is done" in new.said(), f"the second attempt ends: {new.said()}")
    new.wait()
    _same(t, new, 2, OVER)
    t.expect(_lines(1, OVER).startswith(old.text()), f"of attempt 1 was printed: {old.text()!r}; {old.said()}")
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_output") == 0, "all output is deleted")
    t.expect(second.alive() and first.alive(), "a dqd has exited")
    t.note(f"{len(old.text().split())} lines of the first attempt, {len(new.text().split())} of the second")


# ---- tables that are away

TABLES = ("dq_output", "dq_minute", "dq_event", "dq_handler", "dq_rest")
LATE_MS = 400


def _works(t, d, what, late_most):
    """Tasks that come in start on time, more of them than there are slots drain, and a cancelled handler is
    killed."""
    before, due, queue, beside = t.count("status = 1"), 24, 24, t.neighbours[0]
    beside.allows_ms(1, 0)
    t.add_lines([t.line("due", in_ms=200 + 200 * n, words="ms=20") for n in range(due)], ini=t.direct)
    t.add(queue, "queue", words="ms=200")
    t.add(1, "long", words="ms=60000", max_attempts=1)
    t.wait(lambda: t.count("tag = 'long' AND status = 3") == 1, f"{what}: the long task runs", 20)
    t.sleep(0.5)  # dqd has checked it
    began = time.monotonic()
    t.sql("UPDATE dq_task SET status = 4, version = version + 1, live = NULL WHERE tag = 'long' AND status = 3")
    t.wait(lambda: not t.count("tag = 'queue' AND status IN (0, 3)"), f"{what}: the queue is worked off", 30)
    worked_off = time.monotonic() - began
    t.wait_finished(30)
    t.wait(lambda: not d.handlers(), f"{what}: the cancelled handler is killed", 5 * t.slowness())
    late = [
        int(row[0])
        for row in t.sql(
            "SELECT TIMESTAMPDIFF(MICROSECOND, expected_time, execution_time) DIV 1000 FROM dq_task"
            f" WHERE tag = 'due' ORDER BY id DESC LIMIT {due}"
        )
    ]
    limit = LATE_MS * t.slowness() + beside.allows_ms(1 - late_most, LATE_MS)
    share = sum(ms > limit for ms in late) / due
    t.note(f"{what}: {share:.0%} of the starts late, by {max(late)} ms at most; queue gone after {worked_off:.1f} s")
    t.expect(t.count("status = 1") == before + due + queue, f"{what}: not every task is done")
    t.in_time(
        share <= late_most,
        f"{what}: {share:.0%} of the tasks started later than {limit:.0f} ms, by {max(late)} ms at most",
    )
    t.in_time(worked_off <= 5 * t.slowness(), f"{what}: the queue took {worked_off:.1f} s")


@case("tables-away", 35)
def tables_away(t):
    """The tables that only operators look at are missing, locked by another session, or full. Tasks start on
    time but for a second each in which a lock is waited for, cancelled ones are stopped, and the tables are
    used when they are back."""
    proxy = t.proxy()
    t.configure(proxy.settings(), lease="10m", slots=6, log_level="debug")
    t.handlers({"due": {"max_running": 2}, "queue": {"max_running": 3}, "long": ""})
    d = t.dqd()
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_poller") == 1, "dqd is there")
    t.neighbour()
    _works(t, d, "all there", 0.25)
    entry, tried = t.faults.add("lock"), d.log().count(" duty=minute ")
    locker = t.server.client(t.database)
    locker.query("LOCK TABLES " + ", ".join(f"{table} WRITE" for table in TABLES))
    _works(t, d, "all locked", 0.6)
    t.sleep(max(0, entry["at"] + 10 - time.monotonic()))
    locker.close()
    lasted, tried = time.monotonic() - entry["at"], d.log().count(" duty=minute ") - tried
    t.expect(0 < tried <= 1 + lasted / 3.5, f"all locked: counts were written {tried} times in {lasted:.1f} s")
    t.expect(d.log().count("cannot read dq_output") == 1, "dqd did not log once that it cannot read dq_output")
    t.faults.add("missing")
    t.sql("RENAME TABLE " + ", ".join(f"{table} TO {table}_gone" for table in TABLES))
    _works(t, d, "all missing", 0.25)
    t.sql("RENAME TABLE " + ", ".join(f"{table}_gone TO {table}" for table in TABLES))
    proxy.rules = [Rule(rf"^INSERT (IGNORE )?INTO ({'|'.join(TABLES)})\b", "error", number=1114)]
    _works(t, d, "all full", 0.25)
    proxy.rules = []
    t.expect(d.alive(), "dqd has exited")
    d.stop()
    t.expect(
        _counted(t)[1] == t.count("status = 1"), f"{_counted(t)[1]} tasks counted of {t.count('status = 1')} done"
    )
    Oracle(t).check()
