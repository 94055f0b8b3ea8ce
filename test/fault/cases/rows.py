"""Locked rows, hosts that vanish within a transaction, rows with wrong values."""
import os
import signal
import time

from cases import case
from harness import mysql
from harness.mysql import numbers
from harness.oracle import DONE, Oracle, read_journal
from harness.proxy import Rule

# Much longer than anything below takes; the locks last until they are released.
SOON = 30


class Lock:
    """The open transaction of another session that has locked what a SELECT ... FOR UPDATE finds."""

    def __init__(self, t, select):
        self.client = t.server.client(t.database)
        self.entry = t.faults.add("lock", lasting=True, sql=select)
        self.client.query(
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
        )  # no gap locks: producers continue
        self.client.query("START TRANSACTION")
        self.rows = self.client.query(select + " FOR UPDATE")

    def ids(self):
        return [int(r[0]) for r in self.rows]

    def release(self):
        self.client.query("ROLLBACK")
        self.client.close()
        self.entry["until"] = time.monotonic()


def all_done(t):
    oracle = Oracle(t)
    oracle.check(lease_slack_ms=60_000)
    t.expect(all(int(r[2]) == DONE for r in oracle.rows.values()), "not every task is done")
    return oracle


def _skips_locked(t):
    try:
        t.sql("SELECT id FROM dq_task LIMIT 0 FOR UPDATE SKIP LOCKED")
    except mysql.Error:
        return False
    return True


@case("locked-due", 15)
def locked_due(t):
    """Another session locks due rows, more than are put aside one by one. Other tags, and other tasks of the
    same tag, run as usual; the log names one of the rows; when released, they run (in the short run, some of them)."""
    t.handlers({"a": "", "b": "", "limited": {"global_max_running": 4}})
    t.configure(lease="10s")
    keyed = 1200 if t.full else 200
    for tag, locked in (("a", keyed), ("limited", 3)):
        t.add(locked, tag)
    t.add(1200 - keyed, "a", key=False)
    if _skips_locked(t):  # more than are put aside
        t.sql(
            "INSERT INTO dq_task (tag, message_body, body_size, expected_time, create_time)"
            " WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 900)"
            " SELECT 'a', '', 0, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM n x, n y WHERE y.i <= 6"
        )
    locks = [
        Lock(t, f"SELECT id FROM dq_task FORCE INDEX (due) WHERE status = 0 AND tag = '{tag}'")
        for tag in ("a", "limited")
    ]
    for tag in ("a", "limited", "b"):
        t.add(40, tag)
    began = time.monotonic()
    d = t.dqd()
    t.wait(lambda: t.count("status = 1") == 120, "tasks that are not locked are done", SOON)
    took = time.monotonic() - began
    t.add(40, "b")
    t.wait(lambda: t.count("status = 1 AND tag = 'b'") == 80, "tasks added later are done, too", SOON)
    t.dq("limit", "a", "--running", "40")
    t.add(40, "a")
    t.wait(lambda: t.count("status = 1 AND tag = 'a'") == 80, "a limit that was set meanwhile is seen", 5)
    for lock, tag in zip(locks, ("a", "limited")):
        t.wait(
            lambda tag=tag, lock=lock: any(
                f"id={i} " in line
                for line in d.log().splitlines()
                if f"tag={tag} " in line and "cannot be claimed" in line
                for i in lock.ids()
            ),
            f"the log names a task of {tag}",
            SOON,
        )
    t.expect(
        d.log().count("cannot be claimed; others of their tag") <= 4, "the log says it again and again"
    )
    keyless = t.sql("SELECT id FROM dq_task WHERE task_key IS NULL ORDER BY id")
    if keyless:  # they need not all be run; the other tasks have lower or higher ids, and some are locked
        locks[0].client.query(
            "DELETE t FROM dq_task t FORCE INDEX (PRIMARY)"
            f" WHERE id BETWEEN {keyless[0][0]} AND {keyless[-1][0]}"
        )
        locks[0].client.query("COMMIT")
    for lock in locks:
        lock.release()
    t.wait_finished()
    oracle = all_done(t)
    oracle.no_repeats()
    t.note(f"120 tasks beside {sum(len(lock.rows) for lock in locks)} locked ones in {took:.1f} s")


@case("locked-limit", 8)
def locked_limit(t):
    """Other sessions lock the dq_limit row that guards global_max_running, and that of a limit of two tags. Only these
    tags wait."""
    shared = {"limit": "shared"}
    t.handlers({"limited": {"global_max_running": 4}, "b": "", "one": shared, "two": shared})
    t.sql("INSERT INTO dq_limit (name) VALUES ('limited')")
    t.dq("limit", "shared", "--rate", "100/s", "--burst", "10")
    locks = [Lock(t, f"SELECT name FROM dq_limit WHERE name = '{name}'") for name in ("limited", "shared")]
    for tag in ("limited", "one", "two"):
        t.add(10, tag)
    t.add(40, "b")
    d = t.dqd()
    t.wait(lambda: t.count("status = 1") == 40, "the other tag is done", SOON)
    t.wait(lambda: "a tag cannot be claimed" in d.log(), "it is logged", SOON)
    t.expect(t.count("tag <> 'b' AND status = 0") == 30, "a limit was exceeded")
    for lock in locks:
        lock.release()
    t.wait_finished()
    all_done(t)


@case("locked-running", 20)
def locked_running(t):
    """One of many running rows is locked for longer than the lease. Its handler is killed in time; the other
    leases are renewed."""
    pace = t.pace()
    t.configure(lease=f"{3 * pace}s")
    t.handlers({"t": ""}, timeout="5m")
    d = t.dqd()
    t.add(6, words=f"ms={6500 * pace}")
    t.wait(lambda: t.count("status = 3") == 6, "all run")
    lock = Lock(t, "SELECT id FROM dq_task FORCE INDEX (PRIMARY) WHERE status = 3 ORDER BY id LIMIT 1")
    t.wait(lambda: "some leases cannot be renewed; others are not affected" in d.log(), "it is logged", SOON)
    t.sleep(5 * pace)
    lock.release()
    t.wait_finished()
    oracle = all_done(t)
    for attempts in oracle.attempts.values():
        if attempts[0].id in lock.ids():
            lived = attempts[0].alive / 1e6 - lock.entry["at"]
            most = 3 * pace + t.slowness() - 1  # a slow machine kills late
            t.expect(lived < most, f"task {attempts[0].id} lived {lived:.1f} s after its last renewal")
        else:
            t.expect(
                len(attempts) == 1,
                f"task {attempts[0].id}, which nobody had locked, was started {len(attempts)} times",
            )


@case("locked-finishing", 20)
def locked_finishing(t):
    """Rows are locked while their handlers end. Other results are recorded; theirs are recorded once the lock
    is gone, exactly once."""
    repeats = 0
    for history, words in (("failed", ""), ("all", ""), ("failed", "fail=1")):
        t.configure(lease="10s", history=history)
        t.sql("DELETE FROM dq_task")
        t.acked.clear()
        d = t.dqd()
        t.add(8, words=f"until={t.dir}/end {words}")
        t.wait(lambda: t.count("status = 3") == 8, "all run")
        lock = Lock(t, "SELECT id FROM dq_task FORCE INDEX (PRIMARY) WHERE status = 3 ORDER BY id LIMIT 1")
        open(t.dir + "/end", "w", encoding="ascii").close()  # pylint: disable=consider-using-with
        t.wait(lambda: t.count("status = 1") == 7, "the results of the others are recorded", SOON)
        t.add(8, words="")
        t.wait(lambda: t.count("status = 1") == 15, "claims go on", SOON)
        t.wait(
            lambda lock=lock, d=d: f"id={lock.ids()[0]} " in d.log().partition("cannot be recorded yet")[2],
            "the log names it",
            SOON,
        )
        lock.release()
        t.wait_finished()
        oracle = all_done(t)
        repeats += 8 if "fail" in words else 0
        t.expect(oracle.repeats == repeats, f"{oracle.repeats} repeats, not {repeats}")
        d.stop()
        os.unlink(t.dir + "/end")


@case("locked-dead", 20)
def locked_dead(t):
    """Another session locks a row of a dead dqd. The others are taken back in time, and the log does not
    report the locked one as taken back before it is."""
    t.configure(lease="2s")
    first = t.dqd()
    t.add(8, words="ms=60000")
    t.wait(lambda: t.count("status = 3") == 8, "all run")
    lock = Lock(t, "SELECT id FROM dq_task FORCE INDEX (PRIMARY) WHERE status = 3 ORDER BY id LIMIT 1")
    t.faults.add("kill", pids=first.pids("both"), runners=[], who="both")
    first.send("both", signal.SIGKILL)
    others = [r[0] for r in t.sql("SELECT id FROM dq_task") if int(r[0]) != lock.ids()[0]]
    for i in others:
        t.sql(f"UPDATE dq_task SET message_body = '' WHERE id = {i}")
    second = t.dqd()
    t.wait(lambda: t.count("status = 1") == 7, "the others are taken back and done", SOON)
    t.wait(
        lambda: f"id={lock.ids()[0]} " in second.log().partition("cannot be taken back")[2], "the log names it", SOON
    )
    t.expect(f"task taken back id={lock.ids()[0]} " not in second.log(), "the log says that it was taken back")
    lock.client.query("UPDATE dq_task SET message_body = '' WHERE id = %d" % lock.ids()[0])
    lock.client.query("COMMIT")
    t.wait_finished()
    t.expect(
        f"id={lock.ids()[0]} " in second.log().partition("task taken back")[2],
        "the log does not say that it was taken back",
    )
    all_done(t)


@case("locked-dead-many", 15)
def locked_dead_many(t):
    """Another session locks more rows of a dead dqd than are taken back at a time. The others are taken back
    meanwhile: those of other tags, and those of the same tag if the server has SKIP LOCKED."""
    t.handlers({"many": "", "t": ""})
    t.configure(lease="2s")
    running = "status = 3, version = 1, attempt = 1, lease_until = UTC_TIMESTAMP(3)"
    t.sql(
        "INSERT INTO dq_task (tag, message_body, body_size, expected_time, create_time, status, version, attempt)"
        f" SELECT 'many', '', 0, '2026-01-01', '2026-01-01', 3, 1, 1 FROM {numbers(3000)}"
    )
    lock = Lock(t, "SELECT id FROM dq_task FORCE INDEX (PRIMARY)")
    t.add(5, "t")
    t.add(5, "many")
    t.sql(f"UPDATE dq_task FORCE INDEX (due) SET {running} WHERE status = 0")
    t.faults.add("stale", lasting=True)
    t.dqd()
    began = time.monotonic()
    t.wait(lambda: t.count("status = 1 AND tag = 't'") == 5, "the others are taken back and done", SOON)
    if _skips_locked(t):
        t.wait(lambda: t.count("status = 1") == 10, "those of the same tag are taken back, too", SOON)
    t.note(f"taken back beside {len(lock.rows)} locked rows in {time.monotonic() - began:.1f} s")
    lock.client.query(
        f"DELETE t FROM dq_task t FORCE INDEX (PRIMARY) WHERE task_key IS NULL AND id <= {lock.ids()[-1]}"
    )
    lock.client.query("COMMIT")
    lock.release()
    t.wait_finished(30)
    all_done(t)


@case("locked-poller", 8)
def locked_poller(t):
    """Another session locks the dq_poller row of a dqd. It continues to work, and logs it."""
    d = t.dqd()
    t.add(5)
    t.wait_finished()
    lock = Lock(t, "SELECT host FROM dq_poller")
    t.wait(lambda: "cannot write the heartbeat" in d.log(), "it is logged", SOON)
    t.add(20)
    t.wait_finished(SOON)
    lock.release()
    t.wait(lambda: "the heartbeat can be written again" in d.log(), "its end is logged", SOON)
    all_done(t)


# Where a host can vanish: dqd's transactions, statement by statement. 1: before the statement reaches the server.
VANISH = [
    ("START TRANSACTION", 0, "limit"),
    ("^INSERT INTO dq_limit ", 0, "limit"),
    ("^SELECT g.name", 0, "limit"),
    ("^SELECT c.id", 0, "limit"),
    ("claim", 0, "limit"),
    ("commit", 1, "limit"),
    ("commit", 0, "limit"),
    ("START TRANSACTION", 0, "fail"),
    ("FOR UPDATE$", 0, "fail"),
    ("^INSERT INTO dq_attempt", 0, "fail"),
    ("settle", 0, "fail"),
    ("commit", 1, "fail"),
    ("commit", 0, "fail"),
    ("START TRANSACTION", 0, "reap"),
    ("FOR UPDATE$", 0, "reap"),
    ("^INSERT INTO dq_attempt", 0, "reap"),
    ("take-back", 0, "reap"),
    ("commit", 1, "reap"),
    ("commit", 0, "reap"),
    ("claim", 0, "plain"),
    ("renew", 0, "long"),
]


@case("host-vanishes", 60)
def host_vanishes(t):
    """A host vanishes, without closing its connection, after any statement of dqd's transactions, over a
    socket and TCP. Its leases are taken back in time, and no other tag waits."""
    t.handlers(
        {"limit": {"global_max_running": 4}, "fail": "exit=1", "plain": "", "long": "ms=4000", "reap": "", "b": ""}
    )
    worst = 0.0
    chosen = VANISH if t.full else VANISH[t.rng.randrange(3) :: 3]
    for n, (statement, before, tag) in enumerate(chosen):
        tcp = n % 2 == 1
        proxy = t.proxy(tcp=tcp)
        ini = t.configure(
            {"host": "127.0.0.1", "port": proxy.port} if tcp else {"socket": proxy.path},
            path=t.dir + "/vanishing.ini",
            lease="3s",
        )
        t.configure(lease="3s")
        t.sql("DELETE FROM dq_task")
        t.acked.clear()
        if tag == "reap":
            t.add(6, "reap")
            t.sql("UPDATE dq_task SET status = 3, version = version + 1, attempt = 1, lease_until = UTC_TIMESTAMP(3)")
        else:
            t.add(6, tag, max_attempts=2)
        proxy.rules = [Rule(statement, "vanish-before" if before else "vanish", most=1)]
        gone = t.dqd("--tag", tag, ini=ini)
        t.wait(lambda n=n: t.faults.count("vanish") == n + 1, f"the host vanishes after {statement} of {tag}")
        t.faults.add("kill", pids=gone.pids("both"), runners=[], who="both")
        gone.send("both", signal.SIGKILL)
        at = time.monotonic()
        other = t.dqd()
        t.add(20, "b")
        t.wait(
            lambda: t.count("tag = 'b' AND status = 1") == 20,
            f"the other tag is done, after {statement} of {tag}",
            SOON,
        )
        t.wait(lambda: t.count("status IN (0, 3)") == 0, f"all tasks are done, after {statement} of {tag}", SOON)
        worst = max(worst, time.monotonic() - at)
        other.stop()
        proxy.close()
    t.note(f"{len(chosen)} places; the longest until all was taken back and done: {worst:.1f} s")


@case("body-size-lies", 15, options="--max-allowed-packet=64M")
def body_size_lies(t):
    """Rows have a body_size that is far too small. Their bodies reach the handlers complete, the poller stays
    small, and other tasks do not wait."""
    count, size = 8, 12_000_000
    t.handlers({"single": "", "batch": {"words": "batch", "batch": count}, "z": ""}, max_running=32)
    t.configure(lease="20s", slots=40)
    for tag, says in (("single", 1), ("batch", 20_000)):
        t.sql(
            "INSERT INTO dq_task (tag, task_key, live, message_body, body_size, expected_time, create_time) SELECT"
            f" '{tag}', CONCAT('{tag}', seq), 1, REPEAT('x', {size}), {says}, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)"
            f" FROM {numbers(count)}"
        )
    t.add(20, "z")
    d = t.dqd()
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    tags = {int(r[0]): r[1] for r in t.sql("SELECT id, tag FROM dq_task")}
    starts = {
        tag: sorted(a[0].start for i, a in oracle.attempts.items() if tags[i] == tag)
        for tag in ("single", "batch", "z")
    }
    t.expect(all(a[0].size == size for i, a in oracle.attempts.items() if tags[i] == "single"), "a body was cut")
    before = sum(start < starts["z"][-1] for start in starts["single"] + starts["batch"])
    t.expect(before <= count, f"the short bodies waited for {before} of {2 * count} long ones")
    with open(f"/proc/{d.pid}/status", encoding="ascii") as f:
        peak = int(next(line for line in f if line.startswith("VmHWM")).split()[1]) // 1024
    t.expect(peak < 100, f"the poller took {peak} MiB for {2 * count} bodies of {size // 1_000_000} MB")
    t.note(
        f"{2 * count} bodies of {size // 1_000_000} MB: the poller took {peak} MiB; {before} started before the"
        " last short one"
    )


@case("odd-rows", 10)
def odd_rows(t):
    """Rows have a version or attempt that cannot be incremented, or stale rows in dq_attempt. Each affects
    only itself and is logged."""
    t.configure(lease="2s")
    t.handlers({"t": "fail=1", "b": ""})
    t.add(12)
    t.add(20, "b")
    ids = [int(r[0]) for r in t.sql("SELECT id FROM dq_task WHERE tag = 't' ORDER BY id")]
    odd = ids[:3]
    for i, change in zip(
        odd, ("version = 18446744073709551615", "version = 18446744073709551614", "attempt = 4294967295")
    ):
        t.sql(f"UPDATE dq_task SET {change} WHERE id = {i}")
    t.sql(
        "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome) SELECT id, 1, 9, '2020-01-01',"
        " 'stale' FROM dq_task"
        f" WHERE id NOT IN ({','.join(map(str, odd))})"
    )
    # Tasks of a dead dqd; the version of one of them cannot be incremented.
    t.sql(
        "UPDATE dq_task SET status = 3, version = IF(id = %d, 18446744073709551615, 1), attempt = 1, lease_until"
        " = '2020-01-01'"
        " WHERE id IN (%d, %d, %d, %d)" % (ids[3], *ids[3:7])
    )
    d = t.dqd()
    t.faults.add("stale", lasting=True)
    good = [i for i in ids if i not in ids[:4]]
    t.wait(
        lambda: t.count(f"status = 1 AND id IN ({','.join(map(str, good))})") == len(good),
        "the valid rows are done",
        SOON,
    )
    t.wait(lambda: t.count("tag = 'b' AND status = 1") == 20, "the other tag is done", SOON)
    t.wait(
        lambda: f"id={ids[3]} " in d.log().partition("cannot be taken back")[2],
        "the log names the task that cannot be taken back",
        SOON,
    )
    t.expect(
        any(f"id={i} " in d.log().partition("cannot be claimed")[2] for i in odd),
        "the log does not name a task that cannot be claimed",
    )
    t.expect(
        t.one(
            "SELECT COUNT(*) FROM dq_attempt WHERE outcome = 'stale' AND task_id IN " f"({','.join(map(str, good))})"
        )
        == 0,
        "a stale row of dq_attempt remained",
    )
    t.expect(t.count(f"status = 0 AND id IN ({','.join(map(str, odd))})") == 3, "an odd row was changed")


def _restore(t, ids, words="", cut=None, **handler):
    """While tasks run, these rows get older content, as by a restore, or by a failover to a replica that lacks the end
    of the log: some are pending again, others are new tasks with the same ids. The dqd that runs the old ones claims
    them. Their handlers start only when the former ones have ended, whose results do not count. cut: a proxy, which is
    shut meanwhile; then the answer to a claim is lost."""
    t.handlers({"t": {"words": f"{words} ignore until={t.dir}/go", **handler}}, kill_grace="3s")
    t.add(4, key=False)
    t.sql("CREATE TABLE older LIKE dq_task")
    t.sql(f"INSERT INTO older SELECT * FROM dq_task WHERE id IN {ids}")
    t.sql("UPDATE older SET message_body = 'new', body_size = 3 WHERE id % 2")
    d = t.dqd()

    def attempts():
        return [len(a) for _, a in sorted(read_journal(t.journal).items())]

    t.wait(lambda: attempts() == [1] * 4, "all run")
    t.faults.add("restore")
    if cut:
        cut.close()
        cut.rules = [Rule("claim", "cut-after", most=1)]
    for statement in (
        "START TRANSACTION",
        f"DELETE FROM dq_task WHERE id IN {ids}",
        "INSERT INTO dq_task SELECT * FROM older",
        "COMMIT",
    ):
        t.sql(statement)
    if cut:
        cut.open()
    text = "its former attempt has not ended"
    t.wait(lambda: text in d.log(), "the log says why they wait")
    if not handler:
        t.wait(lambda: attempts() == [2] * 4, "all run again")
    open(t.dir + "/go", "w", encoding="ascii").close()  # pylint: disable=consider-using-with
    t.wait_finished()
    oracle = Oracle(t)
    oracle.finished()
    oracle.results_are_owned()
    oracle.no_overlap(0)
    t.expect(all(int(r[4]) == 1 for r in oracle.rows.values()), "an attempt was used up")
    return attempts()


@case("rows-restored", 10)
def rows_restored(t):
    """All rows are restored, in one transaction."""
    t.configure(poll_interval="50ms")
    _restore(t, "(1, 2, 3, 4)")


@case("rows-restored-batch", 10)
def rows_restored_batch(t):
    """Two of the four tasks of a batch are restored: the others are not disturbed."""
    t.configure(poll_interval="50ms")
    got = _restore(t, "(1, 2)", "batch", batch=4)
    t.expect(got == [2, 2, 1, 1], f"attempts: {got}")


@case("rows-restored-cut", 10)
def rows_restored_cut(t):
    """The answer to the first claim after the restore is lost: that claim has the version and the token of the former
    attempts."""
    proxy = t.proxy()
    t.configure(proxy.settings(), lease="10s", poll_interval="50ms")
    _restore(t, "(1, 2, 3, 4)", cut=proxy)
    t.expect(proxy.rules[0].hits == 1, "no answer was lost")
