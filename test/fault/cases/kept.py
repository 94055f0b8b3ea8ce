"""Processes that stay: killed in each state, misbehaving, replaced by a deployment."""
import json
import os
import signal
import time
from collections import Counter

from cases import case
from harness.chaos import Chaos
from harness.dqd import name_of
from harness.oracle import DONE, FAILED, Oracle, read_journal


def _handler(t, keep=2, words="", **keys):
    """Its workers do what the bodies of their tasks say."""
    t.handlers({"t": {"words": f"stay {words}", "keep": keep, **keys}})


def _workers(d):
    return [pid for pid in d.handlers() if name_of(pid) == "journal"]


def _worker(t, d):
    found = []
    t.wait(lambda: found.extend(_workers(d)) or found, "there is a worker")
    return found[0]


def _kill(t, pid):
    t.faults.add("kill-kept", pid=pid, lasting=True)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def _one(t, words=""):
    """A task; returns its status, attempts and what is in its history, when it has finished."""
    t.add(1, words=words)
    t.wait_finished()
    task = t.one("SELECT MAX(id) FROM dq_task")
    status, attempt = t.sql(f"SELECT status, attempt FROM dq_task WHERE id = {task}")[0]
    history = t.sql(f"SELECT outcome, error_stack FROM dq_attempt WHERE task_id = {task} ORDER BY version")
    return int(status), int(attempt), [(outcome, error) for outcome, error in history]


def _killed_together(t):
    """While the runner is frozen, more workers answer and die than it hears of in a turn."""
    t.configure(slots=50, lease="20s")
    _handler(t, keep=50, max_running=50)
    d = t.dqd()
    last = t.one("SELECT MAX(id) FROM dq_task")
    t.add(50, words="ms=3000 die=after")
    begun = []

    def all_begin():
        begun[:] = [a for tries in read_journal(t.journal).values() for a in tries if a.id > last]
        return len(begun) >= 50

    t.wait(all_begin, "all are begun")
    d.send("runner", signal.SIGSTOP)
    t.wait(lambda: all(_state(a.pid) in ("", "Z") for a in begun), "all have died")
    d.send("runner", signal.SIGCONT)
    t.wait_finished()
    lost = t.sql(f"SELECT task_id, outcome, error_stack FROM dq_attempt WHERE task_id > {last}")
    t.expect(not lost, f"{len(lost)} answers were lost with their process: {lost[:1]}")


@case("kept-killed", 20)
def kept_killed(t):
    """A worker is killed with kill -9 before it is ready, idle, when it has not read its task, when it has, while it
    works, after half an answer and after its answer, alone and with others of which the runner hears at once. The task
    runs again if it was read and not answered, with a record, and only then."""
    _handler(t, keep=1, words="boot=300")
    d = t.dqd()
    t.add(1)
    _kill(t, _worker(t, d))  # before it is ready
    t.wait_finished()
    t.expect(t.one("SELECT attempt FROM dq_task") == 1, "a worker that was never ready has cost an attempt")
    idle = _worker(t, d)
    _kill(t, idle)
    # Before that, it reads a task if there is one: the kernel looks for data before it looks for signals.
    t.wait(lambda: _state(idle) in ("", "Z"), "it has died")
    t.expect(_one(t)[:2] == (DONE, 1), "an idle worker that died has cost an attempt")

    stopped = _worker(t, d)
    os.kill(stopped, signal.SIGSTOP)
    t.wait(lambda: _state(stopped) == "T", "it is stopped")
    t.add(1)
    t.wait(lambda: t.count("status = 3") == 1 and stopped in _workers(d), "it has a task")
    t.sleep(0.3)  # the line is in its pipe
    _kill(t, stopped)
    t.wait_finished()
    t.expect(t.one("SELECT MAX(attempt) FROM dq_task") == 1, "a task that was not read has cost an attempt")

    t.faults.add("kill-kept", lasting=True)  # from here on they kill themselves
    for moment, attempts in (("read", 2), ("work", 2), ("half", 2), ("after", 1)):
        status, attempt, history = _one(t, f"die={moment}")
        t.expect((status, attempt) == (DONE, attempts), f"{moment}: {status} after {attempt} attempts: {history}")
        t.expect(len(history) == 1 if attempts == 2 else not history, f"{moment}: {history}")
        t.expect(attempts == 1 or "signal 9" in (history[0][1] or ""), f"{moment}: {history}")
    _handler(t, keep=1)
    d.send("poller", signal.SIGHUP)
    for _ in range(t.often(30, 300)):  # it may end before the runner has seen that all input is there
        t.expect(_one(t, "die=after")[:2] == (DONE, 1), "an answer was lost with its process")
    d.stop()
    _killed_together(t)
    Oracle(t).check()


@case("kept-killed-under-load", 30)
def kept_killed_under_load(t):
    """Workers, runners and pollers are killed with kill -9 at random, and frozen, under load. No task is lost, and none
    runs twice without a record."""
    kills = 1000 if t.full else 60
    _handler(t, keep=3, retry="[" + ", ".join(["100ms"] * 30) + "]", kill_grace="100ms")
    for _ in range(2):
        t.dqd(keep=True)
    chaos = Chaos(t, (0.5, 2.0), **({"kill": 100, "freeze": 20} if t.full else {"kill": 3, "freeze": 1}))
    done = 0

    def more():
        nonlocal done
        if t.count("status IN (0, 3)") < 60:
            t.add(60, words=f"ms={t.rng.choice((1, 1, 5, 40))}")
        workers = [pid for d in t.dqds for pid in _workers(d)]
        if workers and done < kills:
            _kill(t, t.rng.choice(workers))
            done += 1
            t.sleep(t.rng.uniform(0, 0.1))

    chaos.run(more, timeout=3000 if t.full else 300)
    spend = t.patience(3000 if t.full else 300, "all kills are made")
    while done < kills:
        spend()
        more()
    t.wait_finished(300)
    oracle = Oracle(t)
    oracle.check(overlap_slack_ms=1000 * t.slowness())
    t.expect(all(int(r[2]) == DONE for r in oracle.rows.values()), "not every task is done")
    t.note(f"{done} kills of workers, {t.faults.count('kill') - done} of dqd")


# What a worker does, the outcome of that attempt, and what its record says.
SINS = {
    "work-stop": ("timeout", "timed out"),
    "work-late": ("timeout", "timed out"),
    "work-mute": (None, "it has closed DQ_REPLY_FD"),
    "work-line": (None, "unreadable answer (longer than"),
    "after-deaf": None,
    "after-leak": None,
    "after-stop": None,
}


@case("kept-misbehaves", 25)
def kept_misbehaves(t):
    """Workers that close their descriptors, stop reading, are stopped, answer too late, leak, write a gigabyte without
    a newline or leave daemons behind. One attempt at most fails, and says why; dqd keeps its size, and later tasks are
    done."""
    _handler(t, keep=1, timeout="1s", kill_grace="100ms")
    d = t.dqd()
    t.faults.add("misbehaves", lasting=True)
    _one(t)
    before = len(os.listdir(f"/proc/{d.runner()}/fd"))
    for sin, said in SINS.items():
        status, attempt, history = _one(t, f"die={sin}")
        t.expect((status, attempt) == (DONE, 2 if said else 1), f"{sin}: {status} after {attempt}: {history}")
        if said:
            outcome, text = history[0]
            t.expect(said[0] in (None, outcome) and (text or "").startswith(said[1]), f"{sin}: {history}")
        # one that was stopped while it was idle costs the next task the time of an attempt
        status, attempt, history = _one(t)
        t.expect(status == DONE and attempt <= (2 if sin == "after-stop" else 1), f"after {sin}: {attempt} {history}")
    worker = _worker(t, d)
    for words in ("fork=60000", "setsid=1000"):
        t.expect(_one(t, words)[:2] == (DONE, 1), words)
    t.expect(_one(t, "die=work")[1] == 2, "the worker was not killed")
    t.wait(lambda: not _session(worker), "no process of its session is left")
    t.wait(lambda: len(os.listdir(f"/proc/{d.runner()}/fd")) <= before, "no descriptor is left")
    with open(f"/proc/{d.runner()}/status", encoding="utf-8") as f:
        most = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    t.note(f"most memory of the runner: {most} kB")
    t.expect(most < 30_000, "memory grew")
    Oracle(t).check(explained=False)
    t.expect(t.count(f"status = {FAILED}") == 0, "a task has failed")


def _session(leader):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(pid)) == leader:
                found.append(int(pid))
        except OSError:
            pass
    return found


@case("kept-deployed", 15)
def kept_deployed(t):
    """At full load, a file of restart_on is replaced, and the handlers file is changed, again and again. No attempt
    fails, and no task that is started later has a worker of before."""
    revision = t.dir + "/REVISION"
    rounds = 100 if t.full else 6
    _handler(t, keep=3, words="boot=50", restart_on=f"[{revision}]")
    d = t.dqd()
    for n in range(rounds):
        if t.count("status IN (0, 3)") < 400:
            t.add(400, words="ms=2")
        done = t.count("status = 1")
        t.wait(lambda: t.count("status = 1") > done + 20 and len(_workers(d)) >= 3, "all workers are busy")
        old = set(_workers(d))
        if n % 2:
            _handler(t, keep=3, words="boot=50", restart_on=f"[{revision}]", timeout=f"{30 + n}s")
            d.send("poller", signal.SIGHUP)
        else:
            with open(revision + ".new", "w", encoding="ascii") as f:
                f.write(str(n))
            os.rename(revision + ".new", revision)
        t.wait(lambda: not old & set(_workers(d)), "the workers of before are gone", 10)
        t.expect(t.count("status IN (0, 3)") > 0 or n == 0, "there was no load any more")
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()
    t.expect(t.one("SELECT COUNT(*) FROM dq_attempt") == 0, "an attempt has failed")


FRAMEWORKS = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + "/frameworks"
CONSOLES = {
    "laravel": ["/usr/bin/php", FRAMEWORKS + "/artisan.php", "dq:work"],
    "django": ["/usr/bin/python3", FRAMEWORKS + "/manage.py", "dq_work"],
}


def _console(t, name):
    """Tasks for the sample of this framework, while its workers are killed."""
    least, kills, tasks, (program, script, command) = 10_000 if t.full else 300, 0, 0, CONSOLES[name]
    young = 0.2 * t.pace()
    noted = f"{t.dir}/noted"
    run = json.dumps([program, script, noted, command])
    retry = "[" + ", ".join(["100ms"] * 30) + "]"
    t.handlers({"order.*": {"run": run, "keep": 3, "retry": retry, "kill_grace": "100ms"}})
    d = t.dqd(keep=True)
    since = {}
    spend = t.patience(3000, "no task is left")
    while (left := t.count("status IN (0, 3)")) or tasks < least or kills < least // 20:
        spend()
        if left < 100 and (tasks < least or kills < least // 20):
            t.add_lines([{**t.line("order.note"), "body": str(tasks + n)} for n in range(100)])
            tasks += 100
        now = time.monotonic()
        since = {pid: since.get(pid, now) for pid in d.handlers()}
        # one that dies before it is ready makes the tag rest
        workers = [pid for pid, seen in since.items() if now - seen > young]
        if workers and kills < least // 20:
            _kill(t, t.rng.choice(workers))
            kills += 1
        t.sleep(t.rng.uniform(0, 0.1))
    t.expect(t.count(f"status = {DONE}") == tasks, "not every task is done")
    with open(noted, encoding="ascii") as f:
        runs = Counter(int(line) for line in f)
    records = dict(t.sql("SELECT message_body, COUNT(a.task_id) FROM dq_task t LEFT JOIN dq_attempt a"
                         " ON a.task_id = t.id GROUP BY t.id"))
    t.expect(len(runs) == tasks, f"{tasks - len(runs)} tasks are done and have not run")
    twice = [n for n, times in runs.items() if times > 1 + int(records[str(n)])]
    t.expect(not twice, f"tasks ran again without a record: {twice[:5]}")
    t.expect(t.count("output = 'noted\n'") == tasks, "the output of a task is not its own")
    t.note(f"{tasks} tasks, {kills} kills, {sum(runs.values()) - tasks} repeats")


@case("kept-laravel", 10)
def kept_laravel(t):
    """The sample for Laravel, whose workers are killed with kill -9. Each task is done, and none runs twice without a
    record."""
    _console(t, "laravel")


@case("kept-django", 10)
def kept_django(t):
    """The same for Django."""
    _console(t, "django")
