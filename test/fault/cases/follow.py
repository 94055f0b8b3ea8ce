"""What ends without success: expiry, and the tasks of on_failed."""
from collections import Counter

from cases import case
from cases.kill import Producer
from cases.network import Mixed, cut_rules
from harness.chaos import Chaos
from harness.oracle import CANCELLED, DONE, FAILED, PENDING, Oracle
from harness.proxy import Rule


class Failing(Producer):  # pylint: disable=too-few-public-methods
    """Half of its tasks fail for good, some fail if they are taken back, and some expire."""

    def line(self):
        words = self.rng.choice(("fail=99", f"ms={self.rng.randrange(1, 60)}"))
        member = {"expires": "50ms"} if self.rng.random() < 0.2 else {}
        return self.t.line(self.rng.choice("tu"), in_ms=self.rng.randrange(0, 500), words=words, **member)


class Expiring(Producer):  # pylint: disable=too-few-public-methods
    """Its tasks expire at about the time at which they are claimed."""

    def line(self):
        expires = f"{self.rng.randrange(1, 300)}ms"
        return self.t.line(in_ms=self.rng.randrange(0, 500), words="ms=5", expires=expires)


@case("on-failed", 20)
def on_failed(t):
    """Tasks fail for good, are given up when their lease has ended, and expire, while dqds are killed and connections
    are cut at COMMIT and at the statement that adds the task of on_failed. Each of them has exactly one, and no other
    task has one, nor has one of those one."""
    # its key keeps no second one out
    t.sql("CREATE TRIGGER dead BEFORE INSERT ON dq_task FOR EACH ROW"
          " SET NEW.live = IF(NEW.tag = 'dead', NULL, NEW.live)")
    kills, total, seconds = (1000, 20_000, 400) if t.full else (15, 600, 8)
    wanted = t.often(30)
    taking = {"words": "ms=20", "retry": "[20ms]", "on_failed": "dead"}
    dead = {"words": "ms=5 exit=64", "on_failed": "t"}
    t.handlers({"t": taking, "u": {**taking, "on_lease_expiry": "fail"}, "dead": dead}, max_running=16)
    rules = cut_rules("commit", wanted // 2, 0.2)
    rules += cut_rules("^INSERT INTO dq_task .*failed-", wanted - wanted // 2, 0.3)
    for n in range(3):
        proxy = t.proxy()
        proxy.rules = [Mixed(rules)]
        t.dqd(ini=t.configure(proxy.settings(), path=f"{t.dir}/dq{n}.ini", lease="3s", slots=16), keep=True)
    producer = Failing(t, total, seconds)
    chaos = Chaos(t, (0.1, 0.6), kill=kills)

    def until_all_are_cut():
        if sum(r.hits for r in rules) < wanted:  # most transactions are cut that take a task back
            t.overdue_ms = 0

    chaos.run(until=until_all_are_cut, timeout=3600 if t.full else 300)
    producer.wait(3600 if t.full else 300)
    t.wait_finished(600 if t.full else 120)
    chaos.verify()
    Oracle(t).check()
    ended = {
        f"failed-{task}-{version}": (int(status), error or b"")
        for task, version, status, error in t.sql(
            "SELECT id, version, status, error_stack FROM dq_task"
            f" WHERE tag <> 'dead' AND status IN ({FAILED}, {CANCELLED})"
        )
    }
    added = Counter(key for key, in t.sql("SELECT task_key FROM dq_task WHERE tag = 'dead'"))
    missing, more = set(ended) - set(added), set(added) - set(ended)
    t.expect(not missing, f"{len(missing)} failures without a task of on_failed: {sorted(missing)[:5]}")
    t.expect(not more, f"tasks of on_failed without a failure: {sorted(more)[:5]}")
    t.expect(max(added.values()) == 1, f"several for one failure: {added.most_common(3)}")
    t.expect(t.count(f"tag = 'dead' AND status <> {FAILED}") == 0, "not every task of on_failed was run")
    chained = t.count("tag <> 'dead' AND task_key LIKE 'failed-%'")
    t.expect(chained == 0, f"{chained} tasks of on_failed have one themselves")
    kinds = Counter(
        "expired" if status == CANCELLED else "given up" if "lease" in str(error) else "failed"
        for status, error in ended.values()
    )
    t.expect(len(kinds) == 3, f"not every kind of failure took place: {kinds}")
    t.expect(sum(r.hits for r in rules) >= wanted, "fewer cuts than asked")
    t.note(f"{dict(kinds)}, each with one task; {len(t.faults.of('kill'))} kills, {sum(r.hits for r in rules)} cuts")


@case("expiry-against-claim", 12)
def expiry_against_claim(t):
    """Tasks expire in the very milliseconds in which they are claimed, while claims and cancellations are held up and
    dqds are killed. Each is started or cancelled: no task that runs is cancelled."""
    kills, total, seconds = (200, 20_000, 300) if t.full else (8, 600, 6)
    t.handlers({"t": "ms=5"}, max_running=16)
    rules = [Rule("claim", "delay", 0.5, seconds=0.1), Rule("^UPDATE .* SET expires_time", "delay", 0.5, seconds=0.1)]
    for n in range(3):
        proxy = t.proxy()
        proxy.rules = rules
        t.dqd(ini=t.configure(proxy.settings(), path=f"{t.dir}/dq{n}.ini", lease="3s", slots=16), keep=True)
    producer = Expiring(t, total, seconds)
    chaos = Chaos(t, (0.1, 0.6), kill=kills)
    chaos.run(timeout=3600 if t.full else 300)
    producer.wait(3600 if t.full else 300)
    t.wait_finished(600 if t.full else 120)
    chaos.verify()
    oracle = Oracle(t)
    oracle.check()
    wrong = t.sql(f"SELECT id FROM dq_audit WHERE status = {CANCELLED} AND old_status <> {PENDING}")
    t.expect(not wrong, f"{len(wrong)} tasks were cancelled while they ran")
    ended = Counter(int(row[2]) for row in oracle.rows.values())
    t.expect(ended[DONE] and ended[CANCELLED], f"not both took place: {ended}")
    t.note(f"{ended[DONE]} done, {ended[CANCELLED]} expired; {sum(r.hits for r in rules)} statements were held up")
