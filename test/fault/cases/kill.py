"""Processes that die: dqd, its parts, the database."""
import random
import signal
import threading
import time

from cases import case
from harness.chaos import Chaos
from harness.oracle import DONE, Oracle, percentile
from harness.proxy import Rule


class Producer(threading.Thread):
    """Adds tasks at a steady rate while faults are made, until `total` are acknowledged."""

    def __init__(self, t, total, seconds, chunk=50):
        super().__init__(daemon=True)
        self.t, self.left, self.chunk = t, total, chunk
        self.period = seconds * chunk / total
        self.rng = random.Random(t.rng.random())
        self.refused = 0
        self.failure = None
        self.start()

    def line(self):
        words, priority = f"ms={self.rng.randrange(1, 60)}", self.rng.choice(("high", "normal", "low"))
        return self.t.line(in_ms=self.rng.randrange(0, 500), words=words, priority=priority)

    def run(self):
        try:
            while self.left > 0:
                n = min(self.chunk, self.left)
                if self.t.add_lines([self.line() for _ in range(n)], status=(0, 69, 75)):
                    self.left -= n
                else:
                    self.refused += n
                time.sleep(self.rng.uniform(0, 2 * self.period))
        except Exception as e:  # pylint: disable=broad-except
            self.failure = e

    def wait(self, timeout=300):
        spend = self.t.patience(timeout, "all adds are acknowledged")
        while self.is_alive():
            spend()
            self.t.sleep(0.05)
        if self.failure:
            raise self.failure


def _judge_kills(t, chaos):
    chaos.verify()
    oracle = Oracle(t)
    oracle.check()
    killed, stalled = oracle.repeats_by_cause()
    t.note(
        f"{len(t.faults.of('kill'))} kills of dqd, {len(t.faults.of('kill-database'))} of the database;"
        f" repeats: {killed} were in flight at a kill, {stalled} lost by a dqd that was stalled"
    )
    t.expect(all(int(r[2]) == DONE for r in oracle.rows.values()), "not every task is done")
    return oracle


@case("kill-dqd", 20)
def kill_dqd(t):
    """Random pollers, runners and pairs are killed with kill -9. Every task is done, and repeats do not exceed
    the attempts in flight at the kills."""
    kills = 20
    t.add(400, in_ms=0, words="ms=40")
    t.add(400, in_ms=4000, words="ms=20")
    for _ in range(3):
        t.dqd(keep=True)
    chaos = Chaos(t, (0.1, 0.5), kill=kills)
    chaos.run()
    _judge_kills(t, chaos)


@case("kill-database", 15)
def kill_database(t):
    """The database is killed with kill -9 and restarted. Running handlers finish and are settled; no attempt
    is repeated."""
    t.configure(lease="60s")  # longer than all three outages, on a slow machine too
    t.add(300, words="ms=100")
    for _ in range(3):
        t.dqd(keep=True)
    chaos = Chaos(t, (0.3, 1.0), **{"kill-database": 3})
    chaos.run()
    chaos.verify()
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()


@case("outage-outlasts-leases", 20)
def outage_outlasts_leases(t):
    """The database is away for longer than a lease, and then one dqd reconnects before the other. It leaves the
    other's tasks alone until their results, which the other has kept, are recorded."""
    proxy, lease = t.proxy(), 6.0 * t.pace()
    t.configure(lease=f"{lease}s")
    first = t.dqd()
    last = t.dqd(ini=t.configure(proxy.settings(), path=t.dir + "/last.ini", lease=f"{lease}s"))
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_poller") == 2, "both are there")
    t.add(16, words="ms=1000")
    t.wait(lambda: first.handlers() and last.handlers(), "both run handlers")
    entry = t.faults.add("kill-database")
    t.server.kill()
    proxy.close()
    t.wait(lambda: not first.handlers() and not last.handlers(), "the handlers have ended")
    t.sleep(lease)
    t.server.start()
    entry["until"] = time.monotonic()
    back = "the database is back"
    t.wait(lambda: back in first.log(), "the first is back")
    proxy.open()
    t.wait(lambda: back in last.log(), "the last is back")
    took = time.monotonic() - entry["until"]
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    t.note(f"both were back after {took:.1f} s")
    if took < lease / 2:
        oracle.no_repeats()


def id_reused(t, account, down_seconds):
    proxy = t.proxy()
    t.configure({**proxy.settings(), "read_timeout": "10m"}, lease="10m")
    others = [t.server.client("mysql") for _ in range(20)]
    proxy.rules = [Rule("settle", "hold", most=1, seconds=None)]
    t.dqd()
    t.add(1)
    t.wait(lambda: t.faults.count("hold") == 1, "dqd waits for an answer")
    session = "SELECT MAX(id) FROM information_schema.processlist WHERE user = 'dq'"
    t.wait(lambda: t.one(session) is not None, "the server lists its session")
    broken = t.one(session)
    for client in others:
        client.close()
    entry = t.faults.add("kill-database")
    t.server.kill()
    proxy.rules[0].go.set()
    proxy.close()
    t.sleep(down_seconds)
    t.server.start()
    entry["until"] = time.monotonic()
    others = []
    while not others or others[-1].thread_id <= broken:
        client = t.server.client("dq", user=account)
        if client.thread_id < broken:  # otherwise max_connections would be reached
            client.close()
        else:
            others.append(client)
    t.expect(others[0].thread_id == broken, "no session has the id of the broken connection")
    proxy.open()
    t.add(5)
    t.wait(lambda: t.count("status = 1") == 6, "dqd works again")
    t.expect(t.one("SELECT MAX(attempt) FROM dq_task") == 1, "an attempt was repeated")
    for client in others:
        client.query("DO 1")  # fails if the session was killed
        client.close()
    Oracle(t).check()


@case("kill-database-id-reused", 10)
def kill_database_id_reused(t):
    """After a restart of the server, another session of dqd's account has the connection id that dqd lost. That session
    is not killed, and dqd reconnects."""
    id_reused(t, "dq", 2.2)  # a server reports its uptime in whole seconds


@case("kill-database-id-reused-at-once", 10)
def kill_database_id_reused_at_once(t):
    """The same with a session of another account that dqd may kill, and a server that is back so soon that its uptime
    may not show the restart."""
    t.sql("GRANT PROCESS, SUPER ON *.* TO dq@localhost")
    id_reused(t, "root", 0)


def set_back(t):
    """What is left if the server's clock was an hour ahead, and is put right now."""
    t.sql("UPDATE dq_task SET lease_until = lease_until + INTERVAL 1 HOUR WHERE status = 3")
    t.sql("UPDATE dq_poller SET start_time = start_time + INTERVAL 1 HOUR, last_seen = last_seen + INTERVAL 1 HOUR")
    t.faults.add("clock", by=-3600)


@case("clock-ahead-at-death", 20)
def clock_ahead_at_death(t):
    """A dqd dies while the server's clock is an hour ahead, which is then put right. Its tasks run again as after any
    death, and it is recorded as lost; the tasks of a dqd that lives go on. If none lives, dq check says so at once."""
    t.configure(lease="4s", heartbeat="500ms")
    dead, live = t.dqd(), t.dqd()
    pid = dead.pid
    t.add(16, words="ms=6000")
    t.wait(lambda: t.one("SELECT COUNT(DISTINCT pid) FROM dq_task WHERE status = 3") == 2, "both dqds run tasks")
    t.faults.add("kill")
    dead.send("both", signal.SIGKILL)
    set_back(t)
    kept, lost = (t.sql(f"SELECT id FROM dq_task WHERE status = 3 AND pid = {d}") for d in (live.pid, pid))
    t.wait_finished()
    again = {i for i, in t.sql("SELECT id FROM dq_task WHERE attempt > 1")}
    t.expect(again == {i for i, in lost}, f"run again: {again}; of the dead dqd: {lost}; of the other: {kept}")
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_event WHERE verb = 'dqd-lost'") == 1, "the death is recorded")
    t.dq("check")
    t.faults.add("kill")
    live.send("both", signal.SIGKILL)
    set_back(t)
    t.dq("check", status=(2,))
    Oracle(t).check()


@case("kill-everything", 50, tls="full")
def kill_everything(t):
    """dqd and the database are killed while producers add tasks."""
    tasks, kills, databases, seconds = (100_000, 1000, 100, 600) if t.full else (600, 20, 2, 8)
    t.configure(t.way(), lease="3s", slots=16, poll_interval="100ms")
    t.handlers({"t": ""}, max_running=16)
    producer = Producer(t, tasks, seconds)
    for _ in range(3):
        t.dqd(keep=True)
    chaos = Chaos(t, (0.2, 0.6), kill=kills, **{"kill-database": databases})
    chaos.run(timeout=3600 if t.full else 300)
    producer.wait(3600 if t.full else 300)
    t.wait_finished(600 if t.full else 120)
    oracle = _judge_kills(t, chaos)
    waits = oracle.rerun_ms()
    t.note(
        f"{len(t.acked)} tasks acknowledged, {producer.refused} not; run again after a kill: p50"
        f" {percentile(waits, .5):.0f} ms,"
        f" p99 {percentile(waits, .99):.0f} ms, most {percentile(waits, 1):.0f} ms"
    )


@case("run-again", 20)
def run_again(t):
    """Attempts of a killed worker run again elsewhere within lease + poll + 5 s."""
    # Far enough apart that few tasks are killed repeatedly: those are delayed on purpose.
    lease, kills, pause = (10, 100, (4.0, 8.0)) if t.full else (2, 8, (1.0, 2.0))
    t.configure(lease=f"{lease}s", poll_interval="200ms")
    for _ in range(3):
        t.dqd(keep=True)
    chaos = Chaos(t, pause, kill=kills)
    long = min(lease * 2500, 15_000)  # a handler that survives its runner overlaps with the repeat

    def more():  # few enough that a task that is taken back need not wait for a slot
        if t.count("status IN (0, 3)") < 9:
            t.add(3, words=f"ms={t.rng.choice((300, 1000, 3000, 3000, 3000, long))}", max_attempts=50)

    chaos.run(more, timeout=900 if t.full else 300)
    oracle = _judge_kills(t, chaos)
    waits = oracle.rerun_ms()
    p99 = percentile(waits, 0.99)
    t.note(
        f"lease {lease} s: run again p50 {percentile(waits, .5):.0f} ms, p99 {p99:.0f} ms, most"
        f" {percentile(waits, 1):.0f} ms,"
        f" {len(waits)} reruns"
    )
    t.expect(waits, "no attempt was killed")
    t.in_time(p99 <= (lease + 0.2 + 5 * t.slowness()) * 1000, f"p99 {p99:.0f} ms")


CRASHES = 5


@case("poison", 60)
def poison(t):
    """A handler that kills its dqd at every start fails after max_attempts. Tasks that were claimed with it
    are done in the end."""
    t.handlers(
        {"t": "ms=20", "kills-runner": "kill=runner", "kills-poller": "kill=poller", "kills-both": "kill=both"}
    )
    killers = ("kills-runner", "kills-poller", "kills-both")
    for tag in killers:
        t.add(1, tag, max_attempts=CRASHES)
    # A crash can cost each of the others an attempt; on a slow machine leases also end without one.
    patience = round((len(killers) * CRASHES + 1) * t.slowness())
    t.add(100, max_attempts=patience)
    t.add(50, in_ms=3000, max_attempts=patience)
    t.faults.add("poison", lasting=True)
    t.dqd(keep=True)
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    for tag in killers:
        task = t.one(f"SELECT id FROM dq_task WHERE tag = '{tag}' AND status = 2")
        t.expect(task is not None, f"{tag} did not end as failed")
        starts = len(oracle.attempts[task])
        outcomes = [r[0] for r in t.sql(f"SELECT outcome FROM dq_attempt WHERE task_id = {task} ORDER BY version")]
        t.note(f"{tag}: {starts} starts, history {' '.join(outcomes)}")
        t.expect(starts <= CRASHES, f"{tag} was started {starts} times, {CRASHES} attempts were allowed")
        t.expect(
            len([o for o in outcomes if o in ("lease-expired", "runner-died")]) == CRASHES,
            f"{tag}: {CRASHES} crashes were to be counted",
        )
    t.expect(t.count("tag = 't' AND status = 1") == 150, "the other tasks are not all done")
    lost = t.one("SELECT MAX(attempt) - 1 FROM dq_task WHERE tag = 't'")
    t.note(f"each of the others lost {lost} attempts at most")
    together = t.count(
        "tag = 't' AND attempt > 2 AND expected_time = create_time + INTERVAL delay_time * 1000 MICROSECOND"
    )
    t.expect(together == 0, f"{together} tasks taken back twice were due with those they had been claimed with")


BATCH = 50
LOST = BATCH.bit_length() - 1  # attempts that a task loses to others of its batch, at most: doc/reliability
LADDER = "[5s, 30s, 60s, 10m, 30m, 1h, 6h, 24h, 48h]"  # the default one
# How a process ends that meets a poison, and how many of these there are beside 60 good tasks.
ENDS = {
    "traceback": ("poison=1", 1),
    "permanent": ("poison=70", 1),
    "killed": ("poison=kill", 1),
    "hangs": ("poison=hang", 1),
    "garbles": ("poison=garble", 1),
    "says": ("say poison=1", 1),
    "many": ("poison=1", 12),
    "two-attempts": ("poison=1", 1),
}


def _add_poisoned(t, tag, poisons):
    tasks = [t.line(tag) for _ in range(60)]
    for at in t.rng.sample(range(60), poisons):
        tasks.insert(at, t.line(tag) | {"body": "poison"})
    t.add_lines(tasks)


def _climb(t, *arguments, fresh=None):
    """Passes of dqd, and between them the rest of the ladder in no time, until nothing is left. fresh: a tag that gets
    a whole batch after the first pass, due among the others."""
    for rung in range(30):
        if not t.count("status IN (0, 3)"):
            return
        t.dqd("--once", *arguments).process.wait(120 * t.slowness())
        t.wait(lambda: t.count("status = 3 AND lease_until > UTC_TIMESTAMP(3)") == 0, "leases of a dead dqd end")
        if fresh and rung == 0:
            t.add(BATCH, fresh)
        t.sql("UPDATE dq_task SET expected_time = UTC_TIMESTAMP(3) - INTERVAL id % 7 SECOND WHERE status = 0")


def _only_poisons_failed(t, tag):
    lost = t.count(f"tag = '{tag}' AND message_body <> 'poison' AND status <> 1")
    t.expect(lost == 0, f"{tag}: {lost} good tasks failed")
    spared = t.count(f"tag = '{tag}' AND message_body = 'poison' AND status <> 2")
    t.expect(spared == 0, f"{tag}: {spared} poisons did not fail")
    most = t.one(f"SELECT MAX(attempt) FROM dq_task WHERE tag = '{tag}' AND message_body <> 'poison'")
    t.note(f"{tag}: a good task lost {most - 1} attempts at most")
    t.expect(most - 1 <= LOST, f"{tag}: a good task lost {most - 1} attempts, {LOST} are allowed")


@case("poison-batch", 40)
def poison_batch(t):
    """One task ends its batch without verdicts: with any exit status, by a signal, a hang, or garbled output. Only
    such tasks fail; the others lose at most log2(batch) attempts to them, and fresh ones keep their full
    company."""
    tags = {
        tag: {"words": f"batch {words}", "batch": BATCH, "timeout": f"{1 + t.pace()}s"}
        for tag, (words, _) in ENDS.items()
    }
    tags["two-attempts"]["retry"] = "[5s]"
    t.configure(slots=64)
    t.handlers(tags, retry=LADDER)
    for tag, (_, poisons) in ENDS.items():
        _add_poisoned(t, tag, poisons)
    _climb(t, fresh="traceback")
    oracle = Oracle(t)
    oracle.check()
    for tag in ENDS:
        _only_poisons_failed(t, tag)
    fresh = t.one("SELECT MAX(id) FROM dq_task WHERE tag = 'traceback'")
    together = {a.pid for task in range(fresh - BATCH + 1, fresh + 1) for a in oracle.attempts[task]}
    t.expect(len(together) == 1, f"a fresh batch was run by {len(together)} processes, beside one that is retried")


@case("poison-batch-crash", 60)
def poison_batch_crash(t):
    """One task of a batch kills the runner or the poller whenever it runs. It fails; the others, whose leases end with
    it, lose at most log2(batch) attempts."""
    killers = ("runner", "poller")
    t.handlers(
        {tag: {"words": f"batch poison={tag}", "batch": BATCH, "max_running": 1} for tag in killers}, retry=LADDER
    )
    t.faults.add("poison", lasting=True)
    for tag in killers:
        _add_poisoned(t, tag, 1)
        _climb(t, "--tag", tag)
        _only_poisons_failed(t, tag)
    Oracle(t).check()


@case("many-pollers", 12)
def many_pollers(t):
    """20 pollers share one hot tag. No task is repeated, no poller is starved, and few races are lost."""
    n = 100_000 if t.full else 1_500
    # In the short run steal_after is so long that no poller takes tasks of another share, even on a slow machine:
    # a poller that helps out loses races.
    # The lease is one that does not end if the machine is too slow for 20 pollers.
    t.configure(slots=4, claim_batch=100, lease="60s", heartbeat="2s", steal_after="2s" if t.full else "20s",
                poll_interval="50ms" if t.full else "1s", log_level="debug")
    t.handlers({"t": {"words": "batch ms=5", "batch": 50}}, max_running=4)
    dqds = [t.dqd() for _ in range(20)]
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_poller") == 20, "20 pollers have registered")
    t.wait(
        lambda: all(d.log().rpartition('msg="share of the work"')[2].split("\n")[0].endswith("of=20") for d in dqds),
        "each knows its share",
    )
    shares = sum(d.log().count('msg="share of the work"') for d in dqds)
    t.add(n)
    t.wait_finished(300)
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()
    share = {d.runner(): 0 for d in dqds}
    for attempts in oracle.attempts.values():
        share[attempts[0].runner] += 1
    claims = [line for d in dqds for line in d.log().splitlines() if 'msg="claimed"' in line]
    won = sum(int(line.split("tasks=")[1].split()[0]) for line in claims)
    lost = sum(int(line.split("lost=")[1].split()[0]) for line in claims)
    t.note(
        f"{n} tasks: per poller {min(share.values())} to {max(share.values())}; {len(claims)} claims won {won},"
        f" lost {lost} rows"
    )
    t.expect(min(share.values()) > 0, "a poller was starved")
    shares = sum(d.log().count('msg="share of the work"') for d in dqds) - shares
    if shares:
        t.note(f"heartbeats were late, and shares changed {shares} times")
    else:
        t.expect(lost < 0.1 * won, f"{lost} rows lost in races, {won} won")


def _share(d):
    """The share that it logged last: "0 of 1"."""
    said = [
        line.split("share=")[-1].split()[:2] for line in d.log().splitlines() if 'msg="share of the work"' in line
    ]
    return " ".join(said[-1]).replace("of=", "of ") if said else "0 of 1"


@case("join-and-leave", 15)
def join_and_leave(t):
    """Pollers come and go. Within two heartbeats each has its new share; a killed poller is dropped after
    three."""
    beat = 1.5
    t.configure(heartbeat=f"{beat}s", lease="10s", log_level="debug")

    def shares(dqds):
        return sorted(_share(d) for d in dqds)

    def rebalanced(dqds, beats, what):
        began = time.monotonic()
        t.wait(lambda: shares(dqds) == [f"{k} of {len(dqds)}" for k in range(len(dqds))], what)
        took = (time.monotonic() - began) / beat
        t.note(f"{what}: {took:.1f} heartbeats")
        t.in_time(took <= beats + 0.5 * t.slowness(), f"{what} only after {took:.1f} heartbeats")

    dqds = [t.dqd()]
    rebalanced(dqds, 2, "one alone")
    for n in (2, 3):
        dqds.append(t.dqd())
        rebalanced(dqds, 2, f"{n} have joined")
    t.faults.add("leave")
    gone = dqds.pop(0)
    gone.process.terminate()
    rebalanced(dqds, 2, "one has left")
    t.faults.add("kill", who="both", dqd=dqds[0].pid, runners=[dqds[0].runner()])
    dqds.pop(0).send("both", signal.SIGKILL)
    rebalanced(dqds, 4, "one was killed")


@case("fault-free", 20, full_only=False)
def fault_free(t):
    """Without faults, no task is repeated."""
    n = 1_000_000 if t.full else 3_000
    t.configure(slots=8, lease="60s")
    t.handlers({"t": {"words": "batch", "batch": 500}})
    chunk = [t.line(words="", key=False) for _ in range(1000)]
    for _ in range(n // 1000):
        t.add_lines(chunk)
    for _ in range(2):
        t.dqd()
    t.wait_finished(1800 if t.full else 120)
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()
    t.expect(oracle.starts == n, f"{n} tasks, {oracle.starts} starts")
