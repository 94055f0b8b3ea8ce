"""Processes and servers that are stopped and continued."""
import time

from cases import case
from harness.chaos import Chaos
from harness.oracle import DONE, Oracle
from harness.proxy import Rule


@case("freeze-dqd", 35)
def freeze_dqd(t):
    """Poller, runner or both are stopped beyond the lease, others finish their tasks, and they are
    continued. The stale owner changes nothing, its handlers are killed, and no overlap outlasts the thaw by
    a second."""
    freezes = 200 if t.full else 8
    t.configure(slots=6)
    t.handlers({"t": ""}, max_running=6, kill_grace="100ms")
    for _ in range(4):
        t.dqd(keep=True)
    chaos = Chaos(t, (0.3, 1.0), freeze=freezes)

    def more():
        if t.count("status IN (0, 3)") < 30:
            # Most are short, so that another dqd has a free slot while a long one should be dead.
            t.add(20, words=f"ms={t.rng.choice((200, 200, 200, 6000))}", max_attempts=50)

    chaos.run(more, timeout=3000 if t.full else 300)
    chaos.verify()
    oracle = Oracle(t)
    oracle.check(overlap_slack_ms=1000 * t.slowness())
    frozen = t.faults.of("freeze", "stall")
    t.note(
        ", ".join(f"{sum(f['who'] == who for f in frozen)} of {who}" for who in ("poller", "runner", "both"))
        + " were frozen"
    )
    t.expect(all(int(r[2]) == DONE for r in oracle.rows.values()), "not every task is done")


PATIENT = {"read_timeout": "10m"}
LONG_LEASE = "10m"  # for which the server keeps an idle session


def _hold_settlement(t):
    """A dqd whose result is held back on its way until the lease of the task has ended; and the rule that does it."""
    slow = t.proxy()
    t.configure({"socket": slow.path, **PATIENT}, lease=LONG_LEASE)
    owner = t.dqd()
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_poller") == 1, "the owner is there")
    slow.rules = [Rule("settle", "delay", most=1, seconds=None)]
    t.add(1, words="ms=200")
    t.wait(lambda: t.faults.count("delay") == 1, "the owner settles")
    t.sql("UPDATE dq_task SET lease_until = UTC_TIMESTAMP(3)")
    return owner, slow.rules[0]


@case("reaper-late", 15)
def reaper_late(t):
    """The reaper reads a row, the owner settles it, the reaper writes. The result is not overwritten."""
    owner, held = _hold_settlement(t)
    late = t.proxy()
    # In its transaction the reaper has found the row and waits before it begins to lock it.
    late.rules = [Rule(r"^START TRANSACTION", "delay", most=1, seconds=None)]
    other = t.configure({"socket": late.path, **PATIENT}, path=t.dir + "/other.ini", lease=LONG_LEASE)
    reaper = t.dqd(ini=other)
    t.wait(lambda: t.faults.count("delay") == 2, "the reaper has read the row")
    held.go.set()
    t.wait(lambda: t.count("status = 1") == 1, "the owner's result is stored")
    late.rules[0].go.set()
    t.wait(lambda: all("until" in f for f in t.faults.of("delay")), "the reaper has written")
    t.sleep(0.5 * t.slowness())
    t.expect(t.count("status = 1 AND version = 2") == 1, "the result was overwritten")
    t.expect(t.one("SELECT COUNT(*) FROM dq_attempt") == 0, "the reaper left a row in dq_attempt")
    t.expect(owner.alive() and reaper.alive(), "a dqd has exited")
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()


@case("owner-late", 15)
def owner_late(t):
    """The reaper has taken a task back when the owner's result arrives. The result changes nothing, and the
    owner learns of it."""
    owner, held = _hold_settlement(t)
    t.dqd(ini=t.direct)
    t.wait(lambda: t.count("status = 1") == 1, "another dqd has done it")
    held.go.set()
    t.wait(lambda: all("until" in f for f in t.faults.of("delay")), "the late result has arrived")
    t.wait(lambda: "not recorded" in owner.log(), "the owner logs it")
    t.expect(t.count("status = 1 AND version = 4 AND attempt = 2") == 1, "the late result changed the row")
    t.expect(t.sql("SELECT outcome FROM dq_attempt") == [("lease-expired",)], "the history is wrong")
    Oracle(t).check()


@case("database-frozen", 25)
def database_frozen(t):
    """The database is frozen for two leases. Timeouts are still enforced, handlers are killed before their
    lease ends, and nothing is lost."""
    pace = t.pace()
    lease = 4 * pace
    t.handlers(
        {"t": {"timeout": "1m"}, "short": {"words": "ms=60000", "timeout": f"{pace}s", "retry": "[]"}},
        kill_grace="200ms",
    )
    t.configure({"read_timeout": "2m"}, lease=f"{lease}s")
    t.add(2, "short")
    t.add(4, words=f"until={t.dir}/end")
    t.dqd()
    t.wait(lambda: t.count("status = 3") == 6, "all run")
    entry = t.faults.add("freeze-database")
    t.server.freeze()
    began = time.monotonic()
    t.sleep(2 * lease)
    t.server.thaw()
    entry["until"] = time.monotonic()
    open(t.dir + "/end", "w", encoding="ascii").close()  # pylint: disable=consider-using-with
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    for attempts in oracle.attempts.values():
        a = attempts[0]
        ran = (a.alive - a.start) / 1e6
        # renewed just before the freeze at the latest; a slow machine kills late
        lease_end = (entry["at"] + lease + t.slowness() - 1) * 1e6
        t.expect(a.alive < lease_end, f"task {a.id} lived {a.alive / 1e6 - began:.1f} s into the freeze")
        t.expect(
            t.one(f"SELECT tag FROM dq_task WHERE id = {a.id}") != "short" or ran < pace + 0.2 + t.slowness(),
            f"a time-out of {pace} s took {ran:.1f} s",
        )
    t.expect(t.count("tag = 'short' AND status = 2") == 2, "the tasks that timed out have not failed")
    t.expect(t.count("tag = 't' AND status = 1") == 4, "the others are not done")


@case("slow-claims", 25)
def slow_claims(t):
    """Each claim takes so long that those of all tags take longer than a lease. Leases are renewed between them."""
    proxy, lease, tags = t.proxy(), 8 * t.pace(), [f"t{n}" for n in range(16)]
    t.configure({**proxy.settings(), "read_timeout": "1m"}, lease=f"{lease}s", slots=40)
    t.handlers({tag: "" for tag in ("t", *tags)}, timeout="5m")
    d = t.dqd()
    t.add(1, words=f"ms={1900 * lease}")
    t.wait(d.handlers, "its handler runs")
    proxy.rules = [Rule("claim", "delay", seconds=1.5 * lease / len(tags))]
    t.add_lines([t.line(tag) for tag in tags], ini=t.direct)
    t.wait_finished()
    t.expect(t.faults.count("delay") >= len(tags), "the claims were not slow")
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()


@case("slow-duties", 30)
def slow_duties(t):
    """A heartbeat's row, a look at due tasks, and a look for dead owners each take half a lease. The lease is renewed
    between any two of them."""
    proxy, lease = t.proxy(), 8 * t.pace()
    t.configure({**proxy.settings(), "read_timeout": "1m"}, lease=f"{lease}s")
    t.handlers({"t": ""}, timeout="2h")
    d = t.dqd()
    t.add(1, words=f"until={t.dir}/end")
    t.wait(d.handlers, "its handler runs")
    look = r"GROUP BY|^SELECT UTC_TIMESTAMP(?!.*dq_meta)"  # the second statement of a heartbeat has dq_meta
    duties = (r"^INSERT INTO dq_poller", look, r" t.status = 3 AND .* ORDER BY t.tag")
    proxy.rules = [Rule(what, "delay", seconds=lease * 0.5) for what in duties]
    t.sleep(3 * lease)
    t.wait(lambda: all(rule.hits for rule in proxy.rules), "every duty was slow", 10 * lease)
    open(t.dir + "/end", "w", encoding="ascii").close()  # pylint: disable=consider-using-with
    t.wait(lambda: not d.handlers(), "its handler has ended", 10 * lease)
    proxy.rules = []
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()


@case("row-locked", 20)
def row_locked(t):
    """Another session locks a running row for longer than the lease. The handler is killed in time, and
    nothing is lost."""
    lease = 3 * t.pace()
    t.configure(lease=f"{lease}s")
    t.dqd()
    t.add(3, words=f"until={t.dir}/end")
    t.wait(lambda: t.count("status = 3") == 3, "all run")
    locker = t.server.client(t.database)
    entry = t.faults.add("lock")
    locker.query("START TRANSACTION")
    locker.query("SELECT id FROM dq_task WHERE status = 3 ORDER BY id LIMIT 1 FOR UPDATE")
    t.sleep(2 * lease + t.slowness())
    locker.query("ROLLBACK")
    locker.close()
    entry["until"] = time.monotonic()
    open(t.dir + "/end", "w", encoding="ascii").close()  # pylint: disable=consider-using-with
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    for attempts in oracle.attempts.values():
        lived = attempts[0].alive / 1e6 - entry["at"]
        most = lease + t.slowness() - 1  # a slow machine kills late
        t.expect(lived < most, f"task {attempts[0].id} lived {lived:.1f} s after its last renewal")
    t.expect(all(int(r[2]) == DONE for r in oracle.rows.values()), "not every task is done")
