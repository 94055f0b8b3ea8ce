"""Limits hold over all hosts: how many tasks run, how fast they start, and when a breaker opens."""
import bisect
import signal
import statistics

from cases import case
from harness.chaos import Chaos
from harness.oracle import Oracle, read_journal
from harness.proxy import Rule

RATE, BURST, RUNNING = 20, 4, 3  # RATE a second


def within_rate(t, what, at_s, slack_s):
    """No window has more starts than it may have; each may be off by so much."""
    at_s, least, first = sorted(at_s), 0, 0
    for j, at in enumerate(at_s):
        if j - RATE * at < least or not j:
            least, first = j - RATE * at, j  # the window that begins there is the fullest
        most = BURST + RATE * (at - at_s[first] + slack_s)
        t.expect(j - first < most, f"{what}: {j - first + 1} in {at - at_s[first]:.3f} s, at most {most:.1f}")


def claims(t):
    """When tasks were claimed, in seconds."""
    micros = "TIMESTAMPDIFF(MICROSECOND, (SELECT MIN(at) FROM dq_audit), at)"
    return [int(at) / 1e6 for at, in t.sql(f"SELECT {micros} FROM dq_audit WHERE old_status = 0 AND status = 3")]


def _returned(t, ended):
    """Whether there is enough for judge_return: a second after each start that it looks at, or none is to come."""
    at_s = [at for at in claims(t) if at > ended]
    return at_s and max(at_s) - min(at_s) > t.slowness() + 1.5 or not t.count("status IN (0, 3)")


def judge_return(t, ended):
    """The rate, of a second, is reached within a second of the first start after that moment; on a slow machine, what
    of it was reached in the storm. The first start may wait until the leases of what the dead ran have ended."""
    at_s = sorted(claims(t))
    in_a_second = {at: bisect.bisect(at_s, at + 1) - i for i, at in enumerate(at_s)}
    usual = min(RATE, statistics.quantiles((n for at, n in in_a_second.items() if at < ended), n=10)[-1])
    back = min(at for at in at_s if at > ended)
    t.in_time(back - ended < 6 * t.slowness(), f"nothing started for {back - ended:.1f} s")
    until = back + t.slowness()
    n = max(n for at, n in in_a_second.items() if back <= at <= until)
    t.in_time(n >= 0.9 * usual, f"after the storm {n} started in a second, in it {usual:.0f}")
    t.note(f"starts go on {back - ended:.1f} s after the last kill, {n} in a second")


def judge(t):
    # Claims reserve starts up to 2 s ahead on a slow machine, but of no more than RUNNING tasks, which are 0.15 s;
    # the clock is read some time before rows change.
    within_rate(t, "reserved starts", claims(t), 0.5 * t.slowness())
    starts = [a.start / 1e6 for attempts in read_journal(t.journal).values() for a in attempts]
    within_rate(t, "starts", starts, 1.5 * t.slowness())
    running = most = 0
    for old, new in t.sql("SELECT old_status, status FROM dq_audit ORDER BY n"):
        running += (new == "3") - (old == "3")
        most = max(most, running)
    t.expect(most <= RUNNING, f"{most} ran at a time")
    t.expect(most == RUNNING, f"no more than {most} ran at a time: the limit was not reached")


@case("limit-storm", 60)
def limit_storm(t):
    """dqds and the server are killed, and connections cut in the claim, while two tags share a limit. Neither its rate
    nor the number that runs is ever exceeded, and after the storm the rate is reached again within its period."""
    dqds, kills, databases, cuts, tasks = (8, 300, 20, 200, 20_000) if t.full else (8, 16, 2, 12, 600)
    t.handlers({"a": {"limit": "shared"}, "b": {"limit": "shared"}})
    t.dq("limit", "shared", "--rate", f"{RATE}/s", "--burst", str(BURST), "--running", str(RUNNING))
    rules = [
        Rule(statement, action, 0.2, most=cuts // 6)
        for statement in (r"^UPDATE dq_limit SET next_at", "claim", "commit")
        for action in ("cut-before", "cut-after")
    ]
    for tag in ("a", "b"):
        t.add(tasks // 2, tag, words="ms=20")
    for n in range(dqds):
        proxy = t.proxy()
        proxy.rules = rules
        t.dqd(keep=True, ini=t.configure(proxy.settings(), path=f"{t.dir}/dq{n}.ini", steal_after="1s"))
    chaos = Chaos(t, (0.1, 0.7), kill=kills, **{"kill-database": databases})
    spend = t.patience(3600 if t.full else 60, "all faults are made")
    while not chaos.done() or sum(r.hits for r in rules) < cuts // 2:
        spend()
        chaos.step()
        t.sleep(0.02)
    chaos.verify()
    for rule in rules:
        rule.most = 0
    # one of them stays, and has to take the starts that are the business of another one, which does not count as dead
    for d in t.dqds[1:]:
        d.keep = False
        if d.alive() and d.runner():
            t.faults.add("kill", who="both", dqd=d.pid, runners=[d.runner()])
            d.send("both", signal.SIGKILL)
    t.sql("UPDATE dq_poller SET stale_after = 3600000")
    ended = t.one("SELECT TIMESTAMPDIFF(MICROSECOND, (SELECT MIN(at) FROM dq_audit), UTC_TIMESTAMP(6))") / 1e6
    t.expect(t.count("status = 0") > 4 * RATE, "no tasks are left for after the storm")
    if not t.full:  # the others would only take their time
        t.wait(lambda: _returned(t, ended), "the rate is reached again", pause=0.5)
        t.sql("UPDATE dq_task SET status = 4, version = version + 1, live = NULL WHERE status = 0")
    t.wait_finished(3600 if t.full else 120)
    Oracle(t).check()
    judge(t)
    judge_return(t, ended)
    t.note(f"{len(claims(t))} starts; {kills} kills, {databases} of the server, {sum(r.hits for r in rules)} cuts")


@case("limit-accuracy", 15)
def limit_accuracy(t):
    """While two dqds always have tasks, as many start as the rate allows, to a percent."""
    seconds = 600 if t.full else 8
    t.handlers({"a": {"limit": "shared"}})
    t.dq("limit", "shared", "--rate", f"{RATE}/s", "--burst", str(BURST))
    t.add(RATE * (seconds + 4), "a", words="ms=1")
    for _ in range(2):
        t.dqd()
    t.wait(lambda: claims(t) and max(claims(t)) - min(claims(t)) > seconds + 1, "time goes by", 2 * seconds + 60, 0.2)
    at_s = claims(t)
    n = sum(1 < at - min(at_s) <= 1 + seconds for at in at_s)
    off = abs(n - RATE * seconds)
    t.in_time(off <= RATE * seconds / 100 * t.slowness() + BURST, f"{n} starts in {seconds} s at {RATE} a second")
    t.note(f"{n} starts in {seconds} s at {RATE} a second")


@case("limit-many", 10)
def limit_many(t):
    """Twelve dqds wait for the starts of one rate. They do not all ask at each slot, but the one whose rank is the hash
    of the limit's name, and another one now and then."""
    seconds = 60 if t.full else 5
    t.handlers({"a": {"limit": "shared"}})
    t.dq("limit", "shared", "--rate", f"{RATE}/s")
    t.configure(slots=2)
    for _ in range(12):
        t.dqd()
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_poller") == 12, "dqds are there")
    t.add(RATE * (seconds + 20), "a", words="ms=1")
    t.wait(lambda: len(claims(t)) > 3 * RATE, "each dqd has learned who claims")
    for statement in ("SET GLOBAL log_output = 'TABLE'", "TRUNCATE mysql.general_log", "SET GLOBAL general_log = 1"):
        t.sql(statement)
    before = len(claims(t))
    t.wait(lambda: len(claims(t)) > before + RATE * seconds, "time goes by", 2 * seconds + 60, 0.2)
    starts = len(claims(t)) - before
    t.sql("SET GLOBAL general_log = 0")
    asked = t.one("SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE 'SELECT g.name, g.version, g.running,%'")
    t.expect(0 < asked <= 6 * starts, f"the limit was read {asked} times for {starts} starts")
    t.note(f"the limit was read {asked} times for {starts} starts")


@case("limit-clock", 15)
def limit_clock(t):
    """The server's clock is set back by an hour, and ahead, while a rate is used up: the starts go on at that rate."""
    t.handlers({"a": {"limit": "shared"}})
    t.dq("limit", "shared", "--rate", f"{RATE}/s", "--burst", str(BURST), "--running", str(RUNNING))
    t.add(8 * RATE, "a", words="ms=5")
    dqds = [t.dqd(), t.dqd()]
    for by in ("+", "-"):
        begun = t.count("status = 1")
        t.wait(lambda begun=begun: t.count("status = 1") > begun + RATE, "tasks are done")
        t.faults.add("clock", by=by)
        t.sql(f"UPDATE dq_limit SET next_at = next_at {by} INTERVAL 1 HOUR")
    t.wait_finished(30)
    Oracle(t).no_repeats()
    t.expect(any("the server's clock was set back" in d.log() for d in dqds), "it is logged")
    # a jump ahead earns one burst more
    within_rate(t, "reserved starts", claims(t), 0.5 * t.slowness() + BURST / RATE)


@case("limit-far", 25)
def limit_far(t):
    """The database is far away, so that every duty takes long. What has ended under a limit is noticed and recorded
    between them, and its place taken again, after 30 statements or so."""
    proxy, most, seconds = t.proxy(), 40, 0.12 * t.pace()
    t.configure(proxy.settings(), lease="2m")
    t.handlers({"a": {"limit": "shared"}, "b": ""})
    t.dq("limit", "shared", "--running", "1")
    t.add(12, "a", words="ms=1")
    t.add_lines([t.line("b", int(3000 * seconds * n), "ms=1") for n in range(400)], ini=t.direct)  # one is always due
    far = Rule("", "delay", seconds=seconds)
    proxy.rules = [far]
    t.dqd()
    t.wait(lambda: t.count("tag = 'a' AND status = 1") > 2, "dqd has learned how long a claim takes")
    tasks, statements = t.count("tag = 'a' AND status = 1"), far.hits
    t.wait(lambda: t.count("tag = 'a' AND status = 1") > tasks + 3, "tasks end", pause=0.02)
    each = (far.hits - statements) / (t.count("tag = 'a' AND status = 1") - tasks)
    t.expect(each < most, f"{each:.0f} statements for each task")
    t.note(f"{each:.0f} statements for each task")


@case("far-failures", 15)
def far_failures(t):
    """The database is far away, and failures come one by one. Nobody takes round trips for a row that takes long to
    change: those that come meanwhile are recorded together."""
    proxy, count, most = t.proxy(), 60, 3
    t.configure(proxy.settings(), lease="2m", slots=6)
    t.handlers({"a": "fail=9"}, retry="[1h]")
    t.add(count, "a", words="ms=300")
    far = Rule("", "delay", seconds=0.12 * t.pace())
    proxy.rules = [far]
    t.dqd()
    t.wait(lambda: t.count("attempt = 1 AND status = 0") == count, "all failures are recorded", pause=0.1)
    t.expect(far.hits / count < most, f"{far.hits / count:.1f} statements for each task")
    t.note(f"{far.hits / count:.1f} statements for each task")


@case("breaker-opens-once", 8)
def breaker_opens_once(t):
    """All dqds see at the same time that the tasks of a limit fail. It rests once."""
    t.handlers({"a": {"limit": "shared", "words": "exit=1", "breaker": "{failures: 4, rest: 1h}"}}, retry="[1h]")
    rule = Rule(r"^UPDATE dq_limit SET version = version \+ 1, update_time", "delay", seconds=1.5)
    for n in range(4):
        proxy = t.proxy()
        proxy.rules = [rule]
        t.dqd(ini=t.configure(proxy.settings(), path=f"{t.dir}/dq{n}.ini", slots=1, lease="20s"))
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_handler") > 0, "dqds are there")
    t.add(40, "a", words="ms=50 exit=1")
    t.wait(lambda: rule.hits > 1, "two dqds open it")
    t.wait(lambda: t.one("SELECT breaker FROM dq_limit") == 1, "the limit rests")
    t.sleep(2)
    times = t.one("SELECT COUNT(*) FROM dq_event WHERE verb = 'breaker-open'")
    t.expect(times == 1 and t.one("SELECT breaker FROM dq_limit") == 1, f"the breaker has opened {times} times")
    t.note(f"{rule.hits} dqds wanted to open it")
