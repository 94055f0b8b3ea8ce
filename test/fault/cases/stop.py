"""Ending dqd, and cancelling tasks."""
import signal
import subprocess
import time

from cases import case
from harness.oracle import CANCELLED, DONE, Oracle
from harness.proxy import Rule


@case("term-in-batch", 10)
def term_in_batch(t):
    """dqd gets SIGTERM with tasks running and waiting. It claims nothing more, gives unstarted tasks back
    within a second, and lets the others finish."""
    t.configure(slots=4, drain_timeout="20s")
    t.handlers({"t": ""}, max_running=4)
    d = t.dqd()
    t.add(40, words="ms=20")
    t.add(12, words=f"ms={1500 * t.pace()}")
    t.wait(lambda: t.count("status = 3") >= 4 and t.count("status = 1") >= 40, "long ones run")
    t.faults.add("term")
    began = time.monotonic()
    d.process.send_signal(signal.SIGTERM)
    t.wait(lambda: t.count("status = 3") <= 4, "unstarted tasks are given back", pause=0.005)
    gave = time.monotonic() - began
    t.in_time(gave <= 1.0 * t.slowness(), f"giving unstarted tasks back took {gave:.2f} s")
    t.add(5)
    t.expect(d.process.wait(120) == 0, "dqd did not exit with 0")
    t.note(f"given back after {gave * 1000:.0f} ms, ended after {(time.monotonic() - began) * 1000:.0f} ms")
    t.expect(t.count("status = 3") == 0, "a task was left running")
    t.expect(t.count("status = 0 AND attempt = 0") == t.count("status = 0"), "an attempt was used up")
    t.expect(t.one("SELECT COUNT(*) FROM dq_poller") == 0, "it is still registered")
    t.dqd()
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()


@case("term-twice", 10)
def term_twice(t):
    """A second SIGTERM kills running handlers and gives their tasks back at once. SIGTERM followed by SIGKILL
    loses nothing."""
    t.configure(drain_timeout="10m", lease="10s")
    d = t.dqd()
    t.add(4, words=f"ms={3000 * t.pace()}")
    t.wait(lambda: t.count("status = 3") == 4, "all run")
    t.faults.add("kill", who="term twice", dqd=d.pid, runners=[d.runner()])
    d.process.send_signal(signal.SIGTERM)
    t.wait(lambda: "asked to stop" in d.log(), "it drains")
    began = time.monotonic()
    d.process.send_signal(signal.SIGTERM)
    t.expect(d.process.wait(120) == 0, "dqd did not exit with 0")
    took = time.monotonic() - began
    t.in_time(took < 2 * t.slowness(), f"it took {took:.1f} s")
    t.expect(t.count("status = 0") == 4, "not all were given back")
    e = t.dqd()
    t.wait(lambda: t.count("status = 3") == 4, "all run again")
    t.faults.add("kill", who="term, kill", dqd=e.pid, runners=[e.runner()])
    e.process.send_signal(signal.SIGTERM)
    e.process.send_signal(signal.SIGKILL)
    e.process.wait(120)
    t.dqd()
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    t.expect(all(int(r[2]) == DONE for r in oracle.rows.values()), "not every task is done")


@case("cancel-races", 15)
def cancel_races(t):
    """dq cancel races with claims, runs and ends. Each race has exactly one winner, and no pending task starts
    after its cancellation was acknowledged."""
    rounds = 600 if t.full else 60
    proxy = t.proxy()
    proxy.rules = [Rule("claim", "delay", 0.5, seconds=0.05)]  # after the candidates have been read
    t.configure(proxy.settings(), poll_interval="20ms")
    t.handlers({"t": ""}, kill_grace="200ms")
    for _ in range(2):
        t.dqd()
    acknowledged = {}
    t.faults.add("cancels")
    pace = 1.0  # from how long the last command took, so that neither side wins each race
    for _ in range(rounds):
        t.added += 1
        due, ms = round(110 * pace), round(t.rng.choice((0, 20, 200)) * pace)
        began = time.monotonic()
        done = t.dq("add", "t", "-", "--key", f"k{t.added}", "--in", f"{due}ms", body=f"@ms={ms}".encode())
        pause = t.rng.uniform(0, 0.16) * pace
        pace = min(20, max(1.0, (time.monotonic() - began) / 0.05))
        task = int(done.stdout)
        t.acked.add(f"k{t.added}")
        time.sleep(pause)
        if t.dq("cancel", str(task), "-y", status=(0, 1)).returncode == 0:
            acknowledged[task] = time.monotonic() * 1e6
    t.wait_finished()
    slow = t.slowness()
    oracle = Oracle(t)
    oracle.check()
    for task, at in acknowledged.items():
        t.expect(
            int(oracle.rows[task][2]) == CANCELLED,
            f"task {task} was cancelled, but is in state {oracle.rows[task][2]}",
        )
        for a in oracle.attempts.get(task, []):
            # the claim came before the cancel; the start may follow within the poll interval, and is then killed
            t.expect(
                a.start <= at + 1_000_000 * slow,
                f"task {task} was started {(a.start - at) / 1000:.0f} ms after its cancel",
            )
    for (task,) in t.sql(
        f"SELECT id FROM dq_task WHERE status = {CANCELLED}"
        " AND finish_time < expected_time - INTERVAL 51000 MICROSECOND"
    ):
        t.expect(int(task) not in oracle.attempts, f"task {task} was cancelled in time, and was started")
    for task, row in oracle.rows.items():
        t.expect(
            (int(row[2]) == CANCELLED) == (task in acknowledged),
            f"task {task}: state {row[2]} does not fit what dq cancel said",
        )
    ran = sum(1 for task in acknowledged if oracle.attempts.get(task))
    t.note(f"{len(acknowledged)} of {rounds} cancelled, {ran} of them had been started")
    t.expect(10 <= len(acknowledged) < rounds, "one side won every race")


def _left(t):
    """Pids of handlers that still run."""
    return subprocess.run(["pgrep", "-f", t.journal], capture_output=True, check=False).stdout.split()


@case("cancel-running", 10)
def cancel_running(t):
    """A running task is cancelled. Its handler gets SIGTERM within a poll interval and SIGKILL after the grace
    period."""
    t.configure(poll_interval="200ms", lease="10s")
    t.handlers({"t": "", "stubborn": "ignore ms=60000"}, kill_grace="500ms", timeout="5m")
    t.dqd()
    t.add(3, words="ms=60000")
    t.add(3, "stubborn")
    t.wait(lambda: t.count("status = 3") == 6, "all run")
    t.wait(
        lambda: sum(line.startswith("S") for line in open(t.journal, encoding="ascii")) == 6, "all have started"
    )
    t.faults.add("cancel")
    at = time.monotonic() * 1e6
    t.dq("cancel", "--tag", "*", "-y")
    t.wait(lambda: not _left(t), "no handler is left")
    slow = t.slowness()
    oracle = Oracle(t)
    oracle.check()
    for attempts in oracle.attempts.values():
        lived = (attempts[0].alive - at) / 1000
        stubborn = t.one(f"SELECT tag FROM dq_task WHERE id = {attempts[0].id}") == "stubborn"
        t.expect(
            lived <= 200 + 1000 * slow + (500 if stubborn else 0),
            f"task {attempts[0].id} lived {lived:.0f} ms after its cancel",
        )
    t.expect(t.count(f"status = {CANCELLED} AND version = 2") == 6, "not all are cancelled")
    t.expect(t.one("SELECT COUNT(*) FROM dq_attempt WHERE outcome = 'cancelled'") == 6, "the history is wrong")
