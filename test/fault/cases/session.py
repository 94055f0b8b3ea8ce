"""Sessions of handlers, accounts, runners that do not answer."""
import json
import os
import pwd
import signal
import subprocess
import time

from cases import case
from harness.oracle import CANCELLED, DONE, FAILED, Oracle

# Ways in which a handler creates a process group.
GROUPS = {"timeout": "timeout 97 {}", "job-control": "set -m; {} & wait", "timeout-below": "(timeout 97 {}) & wait"}


def _in_groups(t, words):
    command = " ".join([t.program, t.journal, *words.split()])
    return {name: {"run": json.dumps(line.format(command)), "shell": "/bin/bash"} for name, line in GROUPS.items()}


def _left(t):
    return subprocess.run(["pgrep", "-f", t.journal], capture_output=True, check=False).stdout.split()


@case("process-groups", 20)
def process_groups(t):
    """Handlers that create process groups time out, are cancelled, and lose their lease. None of their
    processes runs beside the next attempt, on any host, and none is left."""
    t.configure(slots=30, lease="2s")
    t.handlers(
        {
            **_in_groups(t, "ignore ms=3600000"),
            **{
                "slow-" + name: {**keys, "timeout": "500ms", "retry": "[10ms, 10ms, 10ms]"}
                for name, keys in _in_groups(t, "ignore ms=3600000").items()
            },
        },
        kill_grace="200ms",
        timeout="2h",
    )
    first = t.dqd()
    for name in GROUPS:
        t.add(2, "slow-" + name)
        t.add(2, name)
    t.wait(lambda: t.count(f"status = {FAILED}") == 2 * len(GROUPS), "the slow ones have used up their attempts")
    t.wait(lambda: t.count("status = 3") == 2 * len(GROUPS), "the others run")
    t.dqd()
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_poller") == 2, "another dqd is there")
    entry = t.faults.add("stop-poller", lasting=True)
    first.send("poller", signal.SIGSTOP)
    t.wait(
        lambda: t.one("SELECT COALESCE(MIN(attempt), 0) FROM dq_task WHERE status = 3") >= 2,
        "the other has taken them over",
    )
    first.send("poller", signal.SIGCONT)
    entry["until"] = time.monotonic()

    def all_cancelled():  # one that changes hands at this moment is left out
        t.dq("cancel", "--tag", "*", "-y", status=(0, 1))
        return t.count(f"status = {CANCELLED}") == 2 * len(GROUPS)

    t.wait(all_cancelled, "all are cancelled")
    t.wait(lambda: not _left(t), "no process of a handler is left")
    oracle = Oracle(t)
    oracle.check()
    t.note(f"{sum(len(a) for a in oracle.attempts.values())} attempts in {len(GROUPS)} shapes")


def _started(t):
    with open(t.journal, encoding="ascii") as f:
        return sum(line.startswith("S") for line in f)


def _handle_in_groups(t, ms):
    t.handlers(_in_groups(t, f"ignore ms={ms}"), timeout="2h", retry="[10ms, 10ms, 10ms, 10ms]")


def _as_root(t, ms, **keys):
    """Starts as root with `user`, so that the poller gives up its privileges. False if the test does not run as
    root."""
    if os.geteuid() != 0:
        t.note("skipped: not root")
        return False
    os.chmod(t.journal, 0o666)
    # the account of the server, which alone may enter the folder of its socket
    t.configure(user=pwd.getpwuid(os.stat(t.server.socket).st_uid).pw_name, slots=12, **keys)
    _handle_in_groups(t, ms)
    return True


@case("root-runner", 25)
def root_runner(t):
    """dqd is started as root with `user` set. The unprivileged poller kills a stopped runner, and everything
    that a killed runner has left behind; no two attempts overlap."""
    if not _as_root(t, 100, lease="6s"):
        return
    for who, number in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
        _handle_in_groups(t, 3_600_000)  # longer than the wait for their end
        started = _started(t)
        d = t.dqd()
        for name in GROUPS:
            t.add(2, name, max_attempts=50)
        t.wait(lambda started=started: _started(t) == started + 2 * len(GROUPS), "all run")
        runner = d.runner()
        t.expect(
            os.stat(f"/proc/{d.pid}").st_uid != 0 and os.stat(f"/proc/{runner}").st_uid == 0,
            "poller and runner do not have the expected accounts",
        )
        t.faults.add(f"{who}-runner", lasting=True)
        os.kill(runner, number)
        t.wait(lambda d=d: not d.alive(), "the poller has noticed and ended")
        t.expect(
            "its handlers were killed and their tasks" in d.log(), f"{who}: the tasks were not taken back"
        )
        t.expect('"restarting"' not in d.log(), f"{who}: the poller has begun again without the rights of root")
        t.wait(lambda runner=runner: not os.path.exists(f"/proc/{runner}"), "the runner is gone")
        t.wait(lambda: not _left(t), f"{who}: no process of a handler is left")
        t.expect(t.count("status = 3") == 0, f"{who}: a task is still running")
        _handle_in_groups(t, 100)
        t.dqd(keep=True)
        t.wait_finished()
        t.dqds[-1].stop()
    oracle = Oracle(t)
    oracle.check()
    t.expect(all(int(r[2]) == DONE for r in oracle.rows.values()), "not every task is done")


@case("unkillable-runner", 20)
def unkillable_runner(t):
    """The poller has no right to kill its runner, which is stopped. It logs that, renews no lease, and gives
    no task back."""
    if not _as_root(t, 4000, lease="4s"):
        return
    wrapper = t.dir + "/dqd"
    with open(wrapper, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\nexec setpriv --bounding-set=-kill {t.bin}/dqd \"$@\"\n")
    os.chmod(wrapper, 0o755)
    d = t.dqd(program=wrapper)
    t.add(2, "timeout", max_attempts=50)
    t.wait(lambda: _started(t) == 2, "all run")
    runner = d.runner()
    t.faults.add("stopped-runner", lasting=True)
    os.kill(runner, signal.SIGSTOP)
    try:
        t.wait(
            lambda: "no right to kill it" in d.log(),
            "the poller logs that it cannot kill its runner",
        )
        leases = t.sql("SELECT id, version, lease_until FROM dq_task WHERE status = 3")
        t.wait(lambda: not d.alive(), "the poller ends")
        t.expect(
            len(leases) == 2 and t.sql("SELECT id, version, lease_until FROM dq_task WHERE status = 3") == leases,
            "a lease was renewed, or a task was given back",
        )
        t.expect(
            d.log().count("runs again when its lease ends") == 2, "the log does not say when the tasks run again"
        )
    finally:
        os.kill(runner, signal.SIGCONT)
    t.wait(lambda: not _left(t), "the runner kills its handlers when it continues")
    t.dqd()
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    t.expect(all(int(r[2]) == DONE for r in oracle.rows.values()), "not every task is done")


def _cancel_frozen(t, who):
    places, end = 20, t.dir + "/end"
    t.configure(poll_interval="200ms", lease=f"{20 * t.pace()}s", slots=32)
    t.handlers({"t": {"max_running": places}}, kill_grace="200ms")
    d = t.dqd()
    for _ in range(20):  # dqd learns that they are short, one by one also on a slow machine, and claims ahead
        t.add(1, words="ms=1")
        t.wait_finished()
    t.add(4 * places, words=f"until={end}")
    t.wait(
        lambda: t.count("status = 3") > places and len(d.handlers()) == places,
        "some run, others are claimed and waiting",
    )
    freeze = t.faults.add("freeze", pids=d.pids(who))
    d.send(who, signal.SIGSTOP)
    t.dq("cancel", "--tag", "t", "--status", "pending,running", "-y")
    at = time.monotonic() * 1e6
    vouched_s = 1.5 * t.slowness()  # until then the runner may start what was checked before
    t.sleep(vouched_s + 0.1)
    open(end, "w", encoding="ascii").close()  # pylint: disable=consider-using-with
    t.sleep(t.slowness())  # places are free now
    d.send("runner", signal.SIGCONT)  # first, so that its poller cannot report the cancellation before
    t.sleep(0.2)
    d.send(who, signal.SIGCONT)
    freeze["until"] = time.monotonic()
    t.wait(lambda: not _left(t), "nothing runs")
    t.sleep(0.5)
    oracle = Oracle(t)
    oracle.check()
    late = [
        (a.start - at) / 1000
        for attempts in oracle.attempts.values()
        for a in attempts
        if a.start > at + vouched_s * 1e6
    ]
    t.expect(not late, f"{len(late)} were started up to {max(late, default=0):.0f} ms after they had been cancelled")
    t.expect(t.count("status IN (0, 3)") == 0 and t.count(f"status = {CANCELLED}") >= 8, "not all are cancelled")


@case("cancel-frozen", 15)
def cancel_frozen(t):
    """Claimed tasks that wait for a slot are cancelled while their dqd is frozen. After the thaw none of them
    starts."""
    _cancel_frozen(t, "both")


@case("cancel-frozen-poller", 15)
def cancel_frozen_poller(t):
    """Claimed tasks that wait for a slot are cancelled while only the poller is frozen. The runner stops
    starting them."""
    _cancel_frozen(t, "poller")
