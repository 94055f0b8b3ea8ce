"""Rows that take long to change: large bodies, slow triggers."""
import os
import re
import signal
import time

from cases import case
from harness.mysql import numbers
from harness.oracle import percentile

GAP_MS = 100  # between the tasks of the other tag: a fifth of the bound
LATE_MS = 500
MINUTE_MS = 60_000
# In the short run, each row with a large body costs so much more, as on a disk: a few rows are then as bad for a
# statement without a bound as many.
ROW_S = 0.12
SLOW_ROWS = """
CREATE TRIGGER slow_{0} BEFORE {0} ON dq_task FOR EACH ROW BEGIN
  IF OLD.tag = 'large' THEN DO SLEEP({1}); END IF;
END"""
SLOW_ENDS = f"""
CREATE TRIGGER slow_end BEFORE UPDATE ON dq_task FOR EACH ROW BEGIN
  IF OLD.again_body IS NOT NULL AND NEW.status <> 3 THEN DO SLEEP({ROW_S}); END IF;
END"""


class _Others:
    """Short tasks of another tag, and how late they start beyond what a plain client meets beside them."""

    def __init__(self, t, minutes):
        t.sql(
            "INSERT INTO dq_task (tag, message_body, expected_time, create_time)"
            f" SELECT 'other', '', UTC_TIMESTAMP(3) + INTERVAL 2000000 + seq * {GAP_MS * 1000} MICROSECOND,"
            f" UTC_TIMESTAMP(3) FROM {numbers(minutes * MINUTE_MS // GAP_MS)}"
        )
        self.t, self.beside, self.worst, self.since = t, t.neighbour(), 0, t.one("SELECT UTC_TIMESTAMP(3)")

    def end_phase(self, what):
        """Notes how late those have started that have become due since the last phase. Those that were claimed by a dqd
        that was killed are left out: they wait until their lease ends."""
        until = self.t.one("SELECT UTC_TIMESTAMP(3)")
        due = f"tag = 'other' AND expected_time >= '{self.since}' AND expected_time < '{until}'"
        self.t.wait(lambda: self.t.count(f"{due} AND status <> 1") == 0, f"{what}: the others are done")
        late = sorted(
            int(r[0]) / 1000
            for r in self.t.sql(
                f"SELECT TIMESTAMPDIFF(MICROSECOND, expected_time, execution_time) FROM dq_task WHERE {due}"
                " AND attempt = 1"
            )
        )
        allowed = self.beside.allows_ms(1, LATE_MS)
        if late:
            self.t.note(
                f"{what}: {len(late)} others start {percentile(late, 0.5):.0f} ms late (median),"
                f" {percentile(late, 0.99):.0f} (p99), {late[-1]:.0f} (max); a client beside allows {allowed:.0f}"
            )
            self.worst = max(self.worst, late[-1] - allowed)
        self.since = until


def _keep_failed(t, how_long):
    """dqd looks each second for failed tasks that are older."""
    with open(t.ini, encoding="utf-8") as f:
        text = re.sub(r"(?m)^failed = .*\n(interval = .*\n)?", f"failed = {how_long}\ninterval = 1s\n", f.read())
    with open(t.ini, "w", encoding="utf-8") as f:
        f.write(text)


@case("large-bodies", 120, options="--innodb-buffer-pool-size=24M --max-allowed-packet=64M")
def large_bodies(t):
    """Tasks with large bodies are claimed, renewed, recorded, retried, cancelled, given back, taken back and deleted,
    many at a time. Tasks of another tag start within half a second meanwhile."""
    count, size = (60, 12 << 20) if t.full else (12, 17 << 19)
    lease, gate = (30 if t.full else 12) * t.pace(), t.dir + "/gate"
    os.mkfifo(gate)
    t.configure(
        {"read_timeout": "1m"},
        lease=f"{lease}s",
        slots=count + 20,
        poll_interval="200ms",
        steal_after="50ms",
        drain_timeout="0s",
    )
    _keep_failed(t, "never")
    t.handlers(
        {"large": {"run": f"': <{gate}'"}, "other": {"run": "':'"}},
        timeout="2h",
        max_running=count,
        retry="[100ms, 100ms, 100ms]",
    )
    t.sql("DROP TRIGGER dq_audit_update")  # in it, AUTO_INCREMENT is locked until the statement ends
    for _ in range(count):
        t.sql(
            "INSERT INTO dq_task (tag, message_body, status, expected_time, finish_time, create_time) VALUES"
            f" ('large', REPEAT('x', {size}), 4, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
        )
    if not t.full:
        for event in ("UPDATE", "DELETE"):
            t.sql(SLOW_ROWS.format(event, ROW_S))
    others = _Others(t, 15)

    def large(where):
        return t.count(f"tag = 'large' AND {where}")

    def retry(dqd):
        t.dq("retry", "--tag", "large", "--status", "finished", "-y")
        t.wait(lambda: len(dqd.handlers()) >= count and large("status = 3") == count, "all run", 300)
        others.end_phase("retried, claimed, loaded")

    def finish():
        door = os.open(gate, os.O_WRONLY)
        t.wait(lambda: large("status IN (0, 3)") == 0, "all are done", 300)
        os.close(door)
        others.end_phase("recorded")

    first = t.dqd()
    t.sleep(4)
    others.end_phase("alone")
    retry(first)
    lease_end = t.one("SELECT MAX(lease_until) FROM dq_task WHERE tag = 'large'")
    t.wait(lambda: large(f"lease_until > '{lease_end}'") == count, "all are renewed", 300)
    others.end_phase("renewed")
    finish()
    retry(first)

    def cancel():
        t.dq("cancel", "--tag", "large", "-y", status=None)  # some rows may be locked, or just change
        return large("status = 4") == count

    t.wait(cancel, "all are cancelled", 300)
    t.wait(lambda: len(first.handlers()) < 5, "their handlers are stopped", 300)
    others.end_phase("cancelled")
    retry(first)
    second = t.dqd()
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_poller") == 2, "there are two dqds")
    first.send("poller", signal.SIGTERM)
    t.wait(lambda: not first.alive() and len(second.handlers()) >= count, "the other one has all", 300)
    others.end_phase("given back, claimed, loaded")
    third = t.dqd()
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_poller") == 2, "there are two dqds")
    t.faults.add("kill", who="both", dqd=second.pid, runners=[second.runner()])
    second.send("both", signal.SIGKILL)
    t.wait(lambda: len(third.handlers()) >= count and large("status = 3") == count, "the other one has all", 300)
    others.end_phase("taken back, claimed, loaded")
    finish()
    for at in range(count):
        t.sql(f"UPDATE dq_task SET status = 2 WHERE id = {at + 1}")
    others.end_phase("made to look failed")
    _keep_failed(t, "1s")
    third.send("poller", signal.SIGHUP)
    t.wait(lambda: large("TRUE") == 0, "all are deleted", 300)
    others.end_phase("deleted")
    slow = t.slowness()
    t.in_time(
        others.worst < LATE_MS * slow,
        f"tasks of another tag start up to {others.worst:.0f} ms late (bound {LATE_MS} ms, times {slow:.1f})",
    )


@case("slow-tag", 60)
def slow_tag(t):
    """A trigger makes each change of a row of two tags take 0.3 s, in the full run a second: to claim it, to renew its
    lease, to record its result; of a third tag, only to record its result; of a fourth, only to renew its lease. Tasks
    of another tag start within the time of three such rows, one of each kind, and what else there is to do."""
    row_s, count, renewals, lease = (1, 12, 8, 40) if t.full else (0.3, 12, 12, 15)
    lease *= t.pace()
    t.configure({"read_timeout": "1m"}, lease=f"{lease:g}s", slots=count + 16, poll_interval="200ms")
    t.handlers(
        {
            "short": {"run": "':'"},
            "long": {"run": f"'sleep {lease * 0.7:g}'", "max_running": 4},
            "result": {"run": "':'"},
            "renewal": {"run": f"'sleep {lease * 0.7:g}'", "max_running": renewals},
            "other": {"run": "':'"},
        },
        timeout="2h",
        max_running=count,
    )
    t.sql("DROP TRIGGER dq_audit_update")  # in it, AUTO_INCREMENT is locked until the statement ends
    t.sql(
        "CREATE TRIGGER slow BEFORE UPDATE ON dq_task FOR EACH ROW BEGIN"
        " IF OLD.tag IN ('short', 'long') OR (OLD.tag = 'result' AND NEW.status = 1)"
        " OR (OLD.tag = 'renewal' AND OLD.status = 3 AND NEW.status = 3)"
        f" THEN DO SLEEP({row_s}); END IF; END"
    )
    d = t.dqd()
    t.add(1, "short", key=False)
    t.add(1, "long", key=False)
    t.add(1, "result", key=False)
    t.add(1, "renewal", key=False)
    t.wait(lambda: t.count("status <> 0") == 4, "all tags have been claimed once")
    t.wait(lambda: t.count("tag = 'result' AND status = 1") == 1, "a result has been recorded")
    others = _Others(t, 5)
    t.sleep(3)
    others.end_phase("alone")
    t.add(count, "short", key=False)
    t.wait(lambda: t.count("tag = 'short' AND status <> 1") == 0, "the short ones are done", 15 * count * row_s)
    others.end_phase("claimed and recorded")
    t.add(count, "result", key=False)
    t.wait(lambda: t.count("tag = 'result' AND status <> 1") == 0, "their results are recorded", 15 * count * row_s)
    others.end_phase("recorded")
    t.wait(lambda: t.count("tag = 'renewal' AND status <> 1") == 0, "the first one has been renewed", 5 * lease)
    others.end_phase("meanwhile")
    t.add(4, "long", key=False)
    t.add(renewals, "renewal", key=False)
    t.wait(lambda: t.count("tag IN ('long', 'renewal') AND status <> 1") == 0, "the long ones are done", 5 * lease)
    others.end_phase("renewed")
    late_ms = (3000 * row_s + 500) * t.slowness()
    t.in_time(
        others.worst < late_ms,
        f"tasks of another tag start up to {others.worst:.0f} ms late (bound {late_ms:.0f} ms)",
    )
    t.expect("lease" not in d.log(), "leases were lost")
    for tag in ("short", "long", "result"):
        t.expect(f'one by one" tag={tag} took=' in d.log(), f"{tag} is not named")


@case("large-again", 20, options="--innodb-buffer-pool-size=24M --max-allowed-packet=64M")
def large_again(t):
    """Tasks with small bodies run, and are added again with large ones; then all of them end at once, half of them with
    a failure. Tasks of another tag start within half a second meanwhile."""
    count, size = (400, 12 << 20) if t.full else (20, 12 << 20)
    gate = t.dir + "/gate"
    os.mkfifo(gate)
    t.configure({"read_timeout": "1m"}, lease=f"{30 * t.pace()}s", slots=2 * count, poll_interval="200ms")
    t.handlers(
        {"large": {"run": f"': <{gate}; exit $((DQ_ID % 2))'"}, "other": {"run": "':'"}},
        timeout="2h",
        max_running=count,
        retry="[1h]",
    )
    t.sql("DROP TRIGGER dq_audit_update")
    if not t.full:
        t.sql(SLOW_ENDS)
    d = t.dqd()
    others = _Others(t, 5)
    t.add(count, "large", key=False)
    t.wait(lambda: len(d.handlers()) >= count, "all run", 100)
    others.end_phase("alone")
    began = time.monotonic()
    for (task_id,) in t.sql("SELECT id FROM dq_task WHERE tag = 'large'"):
        t.sql(
            f"UPDATE dq_task SET again_time = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR, again_body = REPEAT('x', {size})"
            f" WHERE id = {task_id}"
        )
    row_ms = (time.monotonic() - began) * 1000 / count
    t.sleep(1)
    others.end_phase("added again")
    others.worst = 0  # what adding them costs the server is no matter of dqd
    door = os.open(gate, os.O_WRONLY)
    t.wait(lambda: t.count("tag = 'large' AND status = 3") == 0, "all are recorded", 300)
    os.close(door)
    others.end_phase("recorded")
    # where such a row takes long, its result does, too: there are two in a statement, and renewals between them
    late_ms = max(LATE_MS * t.slowness(), 4 * row_ms)
    t.in_time(
        others.worst < late_ms,
        f"tasks of another tag start up to {others.worst:.0f} ms late (bound {late_ms:.0f}, {row_ms:.0f} to add one)",
    )
