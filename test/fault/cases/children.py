"""Handlers in every shape: background processes, pipes, sessions of their own, deaf ones, verbose ones."""
import os
import shutil
import time

from cases import case
from harness.oracle import DONE, FAILED, Oracle

TIMEOUT_MS, GRACE_MS = 500, 300

# Each of these hangs; {forever} is a long sleep.
SHAPES = {
    "plain": "{forever}",
    "exec": "exec {forever}",
    "background": "{forever} & wait",
    "background-left": "{forever} & {forever}",
    "pipe": "{forever} | cat",
    "pipe-into": "yes | {forever}",
    "subshell": "( {forever} )",
    "subshell-background": "( {forever} & ) ; {forever}",
    "substitution": "x=$({forever})",
    "trap": "trap '' TERM; {forever}; {forever}; {forever}",
    "trap-loop": "trap : TERM; while :; do {forever}; done",
    "stopped": "kill -STOP $$; {forever}",
    "nested": "{shell} -c '{shell} -c \"{forever}; :\"; :'",
    "closed": "exec >&- 2>&-; {forever}",
    "here-document": "cat <<END | {forever}\nx\nEND",
    "nohup": "nohup {forever} </dev/null",
    # these create process groups
    "timeout": "timeout 97 {forever}",
    "timeout-background": "timeout 97 {forever} & timeout 97 {forever} & wait",
    "timeout-deaf": "timeout -s KILL 97 {shell} -c \"trap '' TERM; {forever}; {forever}\"",
    "job-control": "set -m; {forever} & {forever} & wait",
    "job-control-deaf": "set -m; (trap '' TERM HUP; {forever}; {forever}) & wait",
    "job-control-twice": "set -m; (set -m; ({forever} & {forever}) & wait) & wait",
}
# These exit and leave behind a process that keeps their output open.
LEAVERS = {
    "left-background": "{forever} & exit 0",
    "left-setsid": "setsid {forever} & exit 0",
    "left-double": "( ( {forever} & ) & ) ; exit 0",
    "left-timeout": "timeout 97 {forever} & exit 0",
    "left-job-control": "set -m; {forever} & exit 0",
    "left-job-control-twice": "set -m; (set -m; {forever} & {forever} &) & exit 0",
}


def _processes(mark):
    """Pids whose command line contains the mark."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if mark.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def _zombies(d):
    return [pid for pid in d.handlers() if _state(pid) == "Z"]


def _state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def _shell_cases(t, shell, rounds):
    forever = f"{t.dir}/sleeper 97"
    if not os.path.exists(t.dir + "/sleeper"):
        shutil.copy("/bin/sleep", t.dir + "/sleeper")
    tags = {}
    for name, text in {**SHAPES, **LEAVERS}.items():
        line = text.format(forever=forever, shell=shell, mark="")
        tags[f"{shell}-{name}".replace("/", "-").lstrip("-")] = {
            "run": "|\n      " + line.replace("\n", "\n      "),
            "shell": shell,
            "timeout": f"{TIMEOUT_MS}ms",
            "retry": "[]",
            "max_running": rounds,
        }
    return tags


@case("timeouts", 30)
def timeouts(t):
    """Whatever a shell leaves behind, a timeout is enforced within grace + 1 s. Other tasks are not
    affected."""
    shells = [s for s in ("/bin/dash", "/bin/bash", "/bin/sh") if os.path.exists(s)][:2]
    rounds = 10 if t.full else 1
    t.configure(slots=80, lease="10s")
    tags = {}
    for shell in shells:
        tags.update(_shell_cases(t, shell, rounds))
    t.handlers(
        {"t": "ms=5", "deaf": {"words": "ignore ms=60000", "timeout": f"{TIMEOUT_MS}ms", "retry": "[]"}, **tags},
        kill_grace=f"{GRACE_MS}ms",
    )
    d = t.dqd()
    for tag in tags:
        t.add(rounds, tag)
    t.add(rounds, "deaf")
    for _ in range(20):
        t.add(5)
        t.sleep(0.1)
    t.wait_finished(300)
    left = [pid for pid in _processes(t.dir + "/sleeper") if _state(pid) != "Z"]
    sessions = {pid: _session_leader_name(pid) for pid in left}
    t.expect(all(own for own in sessions.values()), f"processes survived: {sessions}")
    for pid in left:  # dqd does not kill sessions of their own
        os.kill(pid, 9)
    t.wait(lambda: not _zombies(d), "no zombie is left")
    worst = 0
    for tag, status, outcome, ran in t.sql(
        "SELECT t.tag, t.status, a.outcome, TIMESTAMPDIFF(MICROSECOND, a.start_time, a.finish_time) DIV 1000"
        " FROM dq_task t LEFT JOIN dq_attempt a ON a.task_id = t.id"
    ):
        if tag == "t" or "left-" in tag and "background-left" not in tag:
            t.expect(int(status) == DONE, f"{tag} is not done: {outcome}")
        else:
            t.expect(int(status) == FAILED and outcome == "timeout", f"{tag} ended as {status} {outcome}")
            worst = max(worst, int(ran) - TIMEOUT_MS)
    t.note(
        f"{len(tags)} shapes in {' and '.join(shells)}: latest end {worst} ms after its time-out (grace {GRACE_MS} ms)"
    )
    slow = t.slowness()
    t.in_time(worst <= GRACE_MS + 1000 * slow, f"a time-out was enforced {worst} ms late")
    t.in_time(
        t.one("SELECT MAX(TIMESTAMPDIFF(MICROSECOND, expected_time, execution_time)) FROM dq_task WHERE tag = 't'")
        < 2_000_000 * slow,
        "other tasks were held up",
    )


def _session_leader_name(pid):
    """Whether the process is in a session that it leads itself."""
    try:
        return os.getsid(pid) == pid
    except OSError:
        return True


@case("deaf-handlers", 10)
def deaf_handlers(t):
    """Handlers ignore SIGTERM. Their group gets SIGKILL after the grace period; no process or zombie is left,
    and no other group is killed."""
    words = "ignore fork=3600000 ms=3600000"
    t.handlers({"t": {"words": words, "timeout": "300ms", "retry": "[]"}}, kill_grace="300ms")
    bystander = os.fork()
    if bystander == 0:
        os.setsid()
        time.sleep(3600)
        os._exit(0)
    d = t.dqd()
    t.add(16)
    t.wait_finished()
    try:
        t.wait(lambda: not d.handlers(), "no children are left")
        t.wait(lambda: not _processes(t.journal), "no process of a group is left")
        t.expect(_state(bystander) == "S", "a process of another group was hurt")
    finally:
        os.kill(bystander, 9)
        os.waitpid(bystander, 0)
    oracle = Oracle(t)
    oracle.check()
    t.expect(t.count(f"status = {FAILED}") == 16, "not all tasks have failed")
    slow = t.slowness()
    for attempts in oracle.attempts.values():
        t.in_time(attempts[0].alive - attempts[0].start < 600_000 + 1_000_000 * slow, "a handler lived too long")


def _memory_kb(pid, field="VmHWM"):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(field))


@case("flood-of-output", 25)
def flood_of_output(t):
    """Handlers write gigabytes of output with NULs and invalid UTF-8. Memory stays bounded; the tail and the
    exit status are kept."""
    size = (10 << 30) if t.full else (300 << 20)
    t.handlers(
        {
            "out": {"words": f"out={size} exit=3", "timeout": "1h", "retry": "[]", "output_limit": 65536},
            "endless-line": {
                "run": f"'head -c {size // 4} /dev/zero | tr \"\\000\" x; exit 4'",
                "retry": "[]",
                "timeout": "1h",
                "batch": 2,
            },
            "nul": {"run": "'printf \"a\\000b\\377\\376c\"; exit 5'", "retry": "[]"},
        }
    )
    d = t.dqd()
    t.add(3, "out")
    t.add(1, "endless-line")
    t.add(1, "nul")
    t.wait_finished(1200 if t.full else 120)
    t.expect(d.alive() and d.runner(), "dqd or its runner has exited")
    poller, runner = _memory_kb(d.pid), _memory_kb(d.runner())
    t.note(f"{3 * size >> 20} MB written; most memory: poller {poller} kB, runner {runner} kB")
    t.expect(max(poller, runner) < 30_000, "memory grew")
    rows = {tag: (int(code), int(n)) for tag, code, n in t.sql("SELECT tag, exit_code, LENGTH(output) FROM dq_task")}
    t.expect(rows["out"] == (3, 65536), f"out: {rows['out']}")
    t.expect(rows["endless-line"][0] == 4, f"endless-line: {rows['endless-line']}")
    t.expect(
        t.sql("SELECT output FROM dq_task WHERE tag = 'nul'", raw=True)[0][0] == b"a\0b\xff\xfec",
        "bytes were changed",
    )
    done = t.dq("show", str(t.one("SELECT id FROM dq_task WHERE tag = 'nul'")), "-o", "json")
    t.expect(done.stdout.isascii() or done.stdout.decode("utf-8"), "dq show does not print UTF-8")


def _descriptors(d):
    """How many the poller and the runner have."""
    return [len(os.listdir(f"/proc/{pid}/fd")) for pid in (d.pid, d.runner())]


def _memory(d):
    return [_memory_kb(pid, "VmRSS") for pid in (d.pid, d.runner())]


def _no_more(before, after, slack):
    return all(now <= was + slack for was, now in zip(before, after))


@case("ten-thousand-starts", 20)
def ten_thousand_starts(t):
    """After thousands of starts, no descriptor, zombie or memory has leaked."""
    n = 10_000 if t.full else 1500
    t.configure(slots=16, log_level="warn")
    t.handlers({"t": {"run": "'echo x; exit 0'", "max_running": 16}})
    d = t.dqd()
    t.add(200)
    t.wait_finished()
    t.wait(lambda: not d.handlers(), "no children are left")
    before = _descriptors(d), _memory(d)
    t.add(n)
    t.wait_finished(600 if t.full else 120)
    t.expect(t.count(f"status = {DONE}") == n + 200, "not every task is done")
    t.wait(lambda: not d.handlers(), "no children are left")
    t.wait(lambda: _no_more(before[0], _descriptors(d), 1), "no descriptor has leaked")
    after = _descriptors(d), _memory(d)
    t.note(f"{n} starts: descriptors and kB of poller and runner {before} -> {after}")
    t.expect(_no_more(before[1], after[1], 3000), "memory leaks")
