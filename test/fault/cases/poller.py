"""A log that nobody reads, a database that accepts connections but no writes, very many
tags and very many tasks at once."""
import fcntl
import os
import re
import select
import signal
import subprocess
import time

from cases import case
from harness.mysql import numbers
from harness.oracle import DONE, Oracle


def _fill(writer):
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"#")
    except BlockingIOError:
        os.set_blocking(writer, True)


def _full_pipe():
    """Both ends of a full pipe. Its descriptors block, like those of a service manager or a shell."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    _fill(writer)
    return reader, writer


@case("log-unread", 20)
def log_unread(t):
    """Nobody reads the log, and its pipe is full. Tasks continue and keep their leases; lost lines are counted
    and reported once the log is read. If that poller dies, its runner kills its handlers before their lease
    ends."""
    reader, writer = _full_pipe()
    lease = 2 * t.pace()
    t.configure(lease=f"{lease}s")
    t.handlers({"t": ""}, timeout="2h")
    d = t.dqd("--log-level", "debug", stderr=writer)
    t.add(200)
    t.add(4, words=f"ms={2500 * lease}")
    t.wait_finished()
    t.expect(not select.select([], [writer], [], 0)[1], "the pipe was no longer full: the test showed nothing")
    text = bytearray()
    os.set_blocking(reader, False)

    def said():
        try:
            text.extend(os.read(reader, 65536))
        except BlockingIOError:
            pass
        return b"log lines were lost because nobody read them" in text and text.endswith(b"\n")

    t.wait(said, "the log reports lost lines")
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()
    t.add(4, words="ms=3600000")
    t.wait(lambda: len(d.handlers()) == 4, "its handlers run")
    _fill(writer)
    t.faults.add("kill", who="poller", dqd=d.pid, runners=[d.runner()])
    d.send("poller", signal.SIGKILL)
    other = t.dqd()
    t.wait(lambda: len(other.handlers()) == 4, "another dqd has them")
    t.sleep(1)
    t.sql("UPDATE dq_task SET status = 4, version = version + 1 WHERE status = 3")
    t.wait(lambda: not other.handlers(), "the handlers have ended")
    Oracle(t).check()
    os.close(reader)
    os.close(writer)


def _connections(t):
    """That were made to the server."""
    return int(t.sql("SHOW GLOBAL STATUS LIKE 'Connections'")[0][1])


@case("read-only", 25, options="--skip-slave-start")
def read_only(t):
    """The only server is read-only. A pass and --for exit with 69 and say why. A resident dqd logs it once,
    retries with growing pauses, keeps its results, and reports the database as back only when a write has
    succeeded."""
    t.configure(lease="3s", heartbeat="200ms")
    d = t.dqd()
    t.add(6, words="ms=1500")
    t.wait(lambda: len(d.handlers()) == 6, "handlers run")
    t.sql("SET GLOBAL read_only = 1")
    t.faults.add("read-only", lasting=True)
    try:
        for mode in (["--once"], ["--for", "3s"]):
            done = subprocess.run(
                [t.bin + "/dqd", "--config", t.ini, "--allow-overlap", *mode],
                capture_output=True,
                timeout=300,
                check=False,
                env=t.environment,
            )
            t.expect(
                done.returncode == 69
                and re.search(rb"\ndqd: no database for [^;]+; the last attempt failed: .*read-only", done.stderr)
                and done.stderr.count(b"read-only") <= 3
                and b"results could not be recorded" not in done.stderr,  # it had none
                f"{mode[0]} exited with {done.returncode}: {done.stderr.decode()}",
            )
        t.sleep(2)
        log = d.log()
        t.expect("the database is back" not in log, "the database is reported as back although it refuses writes")
        t.expect(log.count("read-only") == 1, f"the read-only server is logged {log.count('read-only')} times")
        before, began = _connections(t), time.monotonic()
        t.sleep(3)
        t.wait(lambda: _connections(t) > before, "dqd tries again")
        tries, took = _connections(t) - before, time.monotonic() - began
        t.expect(tries <= 10 * took, f"{tries} tries in {took:.1f} s")
    finally:
        t.sql("SET GLOBAL read_only = 0")
    t.wait(lambda: "the database is back" in d.log(), "the database is back")
    t.wait_finished()
    Oracle(t).check(lease_slack_ms=20_000)
    t.note(f"{tries} tries in {took:.1f} s")


def _expect_in_time(t, groups, beside, median_ms, most_ms):
    """The tasks of each of these groups of tags were started at most so late, beyond what a client beside dqd met."""
    slow = t.slowness()
    allowed = beside.allows_ms(1, most_ms)
    for tags in groups:
        late = _late_ms(t, tags)
        median = late[len(late) // 2]
        t.note(f"tag {tags}: median {median} ms late, at most {late[-1]} ms; a client beside allows {allowed:.0f}")
        t.in_time(
            median < median_ms * slow and late[-1] < most_ms * slow + allowed,
            f"tasks with tag {tags} start {median} to {late[-1]} ms late"
            f" (bounds {median_ms} and {most_ms} ms, times {slow:.1f}, and {allowed:.0f})",
        )


def _late_ms(t, tags):
    """How late the tasks of these tags were started, sorted."""
    rows = t.sql(
        f"SELECT TIMESTAMPDIFF(MICROSECOND, expected_time, execution_time) DIV 1000 FROM dq_task WHERE tag {tags}"
        f" AND status = {DONE}"
    )
    return sorted(int(r[0]) for r in rows)


def _add_apart(t, n, tag, pause):
    """Inserts tasks that are due at once, one by one and without a wake-up, as an application does."""
    for i in range(n):
        t.sql(
            "INSERT INTO dq_task (tag, message_body, body_size, expected_time, create_time) VALUES"
            f" ('{tag % i if '%' in tag else tag}',"
            " '', 0, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
        )
        t.sleep(pause)


def _statements(t):
    """That the server has got."""
    return int(t.sql("SHOW GLOBAL STATUS LIKE 'Questions'")[0][1])


def _entries_read(t):
    """Index entries that the server has read."""
    return sum(int(t.sql(f"SHOW GLOBAL STATUS LIKE 'Handler_read_{what}'")[0][1]) for what in ("key", "next"))


@case("many-tags", 45, options="--skip-slave-start")
def many_tags(t):
    """Beside 100,000 tags (in the short run 20,000) without a handler, whose tasks are due, tasks of known and of new
    tags start within about a second, and dq stats, tags, list, forecast and check take seconds."""
    n, added = 100_000 if t.full else 20_000, 40
    t.configure(wake_dir="", poll_interval="200ms", lease="30s")
    t.handlers({"t": "", "new.*": ""})
    d = t.dqd()
    t.add(1)
    t.wait(lambda: t.count("status = 1") == 1, "dqd works")
    t.sql(
        "INSERT INTO dq_task (tag, message_body, body_size, expected_time, create_time) SELECT CONCAT('u', seq *"
        " 7919 MOD 1000003), '', 0,"
        f" UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, UTC_TIMESTAMP(3) FROM {numbers(n)}"
    )
    t.wait(
        lambda: "more tags with due tasks" in d.log() or d.log().count("no handler here") > 1000,
        "dqd has seen them",
    )
    t.sleep(2)
    before, began, beside = _entries_read(t), time.monotonic(), t.neighbour()
    _add_apart(t, added, "t", 0.1)
    _add_apart(t, added, "new.%d", 0.1)
    t.wait(
        lambda: t.one("SELECT COUNT(*) FROM dq_task WHERE status = 1") == 1 + 2 * added,
        "all tasks with a handler are done",
    )
    took, entries, slow = time.monotonic() - began, _entries_read(t) - before, t.slowness()
    # a look at all of them, every few seconds, reads an entry or two of each; every poll would make it ten a second
    t.expect(entries < n * took, f"{entries} index entries were read in {took:.0f} s")
    _expect_in_time(t, ("= 't'", "LIKE 'new.%'"), beside, 1000, 4000)
    t.expect(d.log().count("no handler here") < 1000, "each tag is logged separately")
    t.note(f"{entries} index entries read in {took:.0f} s")
    began = time.monotonic()
    t.sql("SELECT tag, COUNT(*), MIN(expected_time) FROM dq_task GROUP BY tag")
    plain = time.monotonic() - began
    for verb in ("stats", "tags", "list", "forecast", "check"):
        began, before = time.monotonic(), _statements(t)
        t.dq(verb, status=None)
        took, asked = time.monotonic() - began, _statements(t) - before
        t.note(f"dq {verb}: {took:.1f} s, {asked} statements")
        # not one for each tag; beside it, dqd and the other client make some
        t.expect(asked < 500 + 50 * took, f"dq {verb} took {took:.1f} s, and {asked} statements were made")
        t.in_time(
            took < max(5 * slow, 6 * plain), f"dq {verb} took {took:.1f} s, a plain client {plain:.1f} s to read all"
        )


@case("many-handled-tags", 30, options="--skip-slave-start")
def many_handled_tags(t):
    """100,000 tags (in the short run 40,000) have a handler, and tasks far in the future. Those that become due start
    within about a second."""
    n, added = 100_000 if t.full else 40_000, 40
    t.configure(wake_dir="", poll_interval="200ms", lease="30s")
    t.handlers({"*": ""})
    t.sql(
        "INSERT INTO dq_task (tag, message_body, body_size, expected_time, create_time) SELECT CONCAT('h', seq), '', 0,"
        f" UTC_TIMESTAMP(3) + INTERVAL 1 DAY, UTC_TIMESTAMP(3) FROM {numbers(n)}"
    )
    t.dqd()
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_poller") == 1, "dqd is there")
    t.sleep(2)
    beside = t.neighbour()
    _add_apart(t, added, "h%d000", 0.1)
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_task WHERE status = 1") == added, "all due tasks are done")
    _expect_in_time(t, ("LIKE 'h%'",), beside, 1500, 4000)


@case("stale-statistics", 30, options="--skip-slave-start")
def stale_statistics(t):
    """The server's statistics do not cover 300,000 (in the short run 100,000) newly inserted tasks, so every look at
    all tags reads all of them. Tasks start on time nevertheless, those of new tags, too, and such looks are rare."""
    n, seconds = 300_000 if t.full else 100_000, 6
    t.configure(wake_dir="", poll_interval="200ms", lease="30s")
    t.handlers({"t": "", "new.*": "", "later": ""})
    t.sql("ALTER TABLE dq_task STATS_AUTO_RECALC = 0")
    t.dqd()
    t.add(1)
    t.wait(lambda: t.count("status = 1") == 1, "dqd works")
    t.sql(
        "INSERT INTO dq_task (tag, message_body, body_size, expected_time, create_time) SELECT 'later', '', 0,"
        f" UTC_TIMESTAMP(3) + INTERVAL 1 DAY, UTC_TIMESTAMP(3) FROM {numbers(n)}"
    )

    before, began, beside = _entries_read(t), time.monotonic(), t.neighbour()
    _add_apart(t, 10 * seconds // 2, "t", 0.1)
    _add_apart(t, 10 * seconds // 2, "new.%d", 0.1)
    t.wait(lambda: t.count("status = 1") == 1 + 10 * seconds, "all due tasks are done")
    took, entries = time.monotonic() - began, _entries_read(t) - before
    t.note(f"{entries} entries read in {took:.0f} s")
    t.expect(entries < n * took / 2, f"{entries} entries were read in {took:.0f} s")
    _expect_in_time(t, ("<> 'later'",), beside, 1000, 2500)
