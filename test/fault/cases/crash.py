"""Every step once: the process is killed at this step, or the call fails."""
import errno
import os

from cases import case
from harness.oracle import DONE, Oracle

FAIL = {
    "open": errno.EMFILE,
    "pipe2": errno.EMFILE,
    "socket": errno.EMFILE,
    "socketpair": errno.EMFILE,
    "memfd_create": errno.EMFILE,
    "vfork": errno.EAGAIN,
    "fork": errno.EAGAIN,
    "epoll_ctl": errno.ENOMEM,
    "signalfd": errno.EMFILE,
    "send": errno.ECONNRESET,
    "recv": errno.ECONNRESET,
    "connect": errno.ECONNREFUSED,
    "sendmsg": errno.ENOBUFS,
    "recvmsg": errno.ENOMEM,
    "write": errno.EIO,
    "read": errno.EIO,
    "pwrite": errno.ENOSPC,
    "malloc": errno.ENOMEM,
    "calloc": errno.ENOMEM,
    "realloc": errno.ENOMEM,
}


def _fault(t, name, call, n, what):
    """The environment that arms the library, and the file that exists once it has struck."""
    log = f"{t.dir}/struck"
    if os.path.exists(log):
        os.unlink(log)
    return {"LD_PRELOAD": t.preload, "DQ_FAULT": f"{name}:{call}:{n}:{what}", "DQ_FAULT_LOG": log}, log


def _struck(log):
    return os.path.exists(log)


def _steps(t, first, most):
    """1, 2, 3 ... in the full run; otherwise a seeded choice with growing gaps."""
    if t.full:
        yield from range(first, most)
        return
    n = first
    while n < most:
        yield n
        n += t.rng.randrange(1, 2 + n // 6)


def _once(t, name, call, n, what):
    """Two tasks, one of which fails once, and one pass of dqd with the fault. False if the pass ended before
    the fault."""
    t.add_lines([t.line(words="ms=1"), t.line(words="ms=1 fail=1")])
    environment, log = _fault(t, name, call, n, what)
    d = t.dqd("--once", "--allow-overlap", environment=environment)
    t.wait(lambda: not d.alive(), f"dqd exits after {what} at call {n} of {call}", pause=0.005)
    t.dqds.remove(d)
    if not _struck(log):
        return False
    t.faults.add("fail" if isinstance(what, int) else "kill", who=name, call=call, n=n, runners=[], dqd=d.pid)
    return True


def _finish(t, note):
    """A whole dqd does what is left."""
    t.dqd()
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    t.note(note)
    t.expect(all(int(r[2]) == DONE for r in oracle.rows.values()), "not every task is done")


def _crash(t, name):
    t.configure(lease="2s", poll_interval="20ms")
    struck = 0
    for n in _steps(t, 1, 100_000):
        if not _once(t, name, "any", n, t.rng.choice(("kill", "late-kill"))):
            break
        struck += 1
    t.expect(struck >= 15, f"only {struck} steps were tried")
    _finish(t, f"{name} was killed at {struck} different steps")


@case("crash-poller", 25)
def crash_poller(t):
    """The poller is killed between any two of its system calls, from start to end. Everything is recovered, no
    task is stuck."""
    _crash(t, "dqd")


@case("crash-runner", 25)
def crash_runner(t):
    """The runner is killed between any two of its system calls, from start to end. Everything is recovered, no
    task is stuck."""
    _crash(t, "dqd-runner")


@case("hup-at-any-step", 15)
def hup_at_any_step(t):
    """SIGHUP arrives at any step of dqd, from its first call on. dqd reloads its files and the pass continues."""
    n = 0
    for n in range(1, 2000) if t.full else (*range(1, 25), *range(30, 200, 30)):
        t.add(1)
        environment, log = _fault(t, "dqd", "any", n, "hup")
        d = t.dqd("--once", environment=environment)
        t.wait(lambda d=d: not d.alive(), f"dqd exits after HUP at call {n}", pause=0.005)
        t.dqds.remove(d)
        t.expect(d.process.returncode == 0, f"HUP at call {n}: dqd exited with {d.process.returncode}")
        t.expect(t.count("status <> 1") == 0, f"HUP at call {n}: the task is not done")
        if not _struck(log):
            break
    t.note(f"{n} passes")
    Oracle(t).check()


@case("calls-fail", 60)
def calls_fail(t):
    """Each call fails once, at its first, second, ... use, in poller and runner. Nothing hangs, nothing is
    lost, nothing is repeated without a reason. Out of memory ends the process, by design."""
    t.configure(lease="2s", poll_interval="20ms")
    tried = 0
    for name in ("dqd", "dqd-runner"):
        for call, number in FAIL.items():
            for n in range(1, 400) if t.full else sorted({1, 2, t.rng.randrange(3, 40)}):
                if not _once(t, name, call, n, number):
                    break
                tried += 1
    t.expect(tried >= 30, f"only {tried} calls failed")
    _finish(t, f"{tried} calls failed")


@case("calls-fail-dq", 15)
def calls_fail_dq(t):
    """Each call of dq add fails once. It exits with an error or has stored the task once; it never exits with
    0 without storing it."""
    tried = 0
    for call, number in FAIL.items():
        for n in range(1, 400) if t.full else (1, 2, 3, t.rng.randrange(4, 30)):
            t.added += 1
            environment, log = _fault(t, "dq", call, n, number)
            done = t.dq(
                "add",
                "t",
                "x",
                "--key",
                f"k{t.added}",
                "--in",
                "1h",
                status=None,
                environment=environment,
            )
            stored = t.count(f"task_key = 'k{t.added}'")
            t.expect(
                done.returncode >= -6 and done.returncode != -11, f"{call} {n}: dq died of signal {-done.returncode}"
            )
            t.expect(
                stored == 1 if done.returncode == 0 else stored <= 1,
                f"{call} {n}: status {done.returncode}, stored {stored}",
            )
            t.expect(done.returncode <= 0 or done.stderr, f"{call} {n}: status {done.returncode} without a message")
            if not _struck(log):
                break
            tried += 1
    t.note(f"{tried} calls failed")
    t.expect(tried >= 20, f"only {tried} calls failed")


@case("cannot-start", 15)
def cannot_start(t):
    """A handler is missing, not executable, or has no interpreter or directory. Its tasks are given back
    without using up an attempt, an error is logged, and other tags continue."""
    plain = t.dir + "/not-executable"
    with open(plain, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n")
    os.chmod(plain, 0o644)
    broken = {
        "missing": {"run": "[/nonexistent/handler]"},
        "missing-sh": {"run": "/nonexistent/handler"},
        "plain": {"run": f"[{plain}]"},
        "plain-sh": {"run": plain},
        "cwd": {"cwd": "/nonexistent"},
        "interpreter": {"run": f"[{t.dir}/bad]"},
    }
    with open(t.dir + "/bad", "w", encoding="ascii") as f:
        f.write("#!/nonexistent/interpreter\n")
    os.chmod(t.dir + "/bad", 0o755)
    t.handlers({"t": "ms=5", **broken})
    for tag in broken:
        t.add(3, tag)
    d = t.dqd()
    t.add(20)
    t.wait(lambda: t.count("tag = 't' AND status = 1") == 20, "the healthy tag is done")
    t.wait(lambda: t.count("status = 3") == 0, "all tasks are given back")
    for tag in broken:
        t.expect(t.count(f"tag = '{tag}' AND status = 0 AND attempt = 0") == 3, f"{tag}: an attempt was used up")
        errors = [line for line in d.log().splitlines() if "cannot be started" in line and f"tag={tag} " in line]
        t.expect(len(errors) == 1, f"{tag}: {len(errors)} errors")
        t.faults.add("cannot-start", tag=tag)
    t.expect(d.stop() == 0, "dqd did not exit with 0")
    t.handlers({"t": "ms=5", **{tag: "" for tag in broken}})
    t.dqd()
    t.wait_finished()
    Oracle(t).check()


@case("cannot-fork", 20)
def cannot_fork(t):
    """The system refuses vfork, pipe2 or memfd_create. Tasks are given back without using up an attempt, and
    run soon: their tag does not rest."""
    t.configure(lease="10s")
    short, long = "ms=5", "ms=5" + 5000 * " "  # a long body travels in a file
    for name, call, number, words in (
        ("dqd-runner", "vfork", errno.EAGAIN, short),
        ("dqd-runner", "vfork", errno.ENOMEM, short),
        ("dqd-runner", "pipe2", errno.EMFILE, short),
        ("dqd-runner", "memfd_create", errno.EMFILE, short),
        ("dqd-runner", "memfd_create", errno.ENOMEM, short),
        ("dqd", "memfd_create", errno.EMFILE, long),
        ("dqd", "memfd_create", errno.ENOMEM, long),
    ):
        t.add(4, words=words)
        environment, log = _fault(t, name, call, 2, number)
        d = t.dqd(environment=environment)
        t.wait(lambda log=log: _struck(log), f"{call} is called twice")
        t.wait_finished()
        t.expect("rests on this host" not in d.log(), f"{call}: the tag rests")
        t.expect("this host is short of" in d.log(), f"{call}: no error is logged")
        t.expect(d.stop() == 0, "dqd did not exit with 0")
        t.faults.add("fail", who=name, call=call, runners=[], dqd=d.pid)
        t.expect(t.count("attempt > 1") == 0, f"{call}: an attempt was used up")
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()
