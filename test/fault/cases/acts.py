"""Acts of operators: what they change and what dq_event says of it, and imports."""
import json
import os
import signal

from cases import case
from harness import mysql
from harness.proxy import Rule

CUTS = ("cut-before", "cut-after", "cut-late")
EVENT = r"^INSERT INTO dq_event\b"
CHANGE = r"^(UPDATE|DELETE t FROM) dq_task\b"
SWITCH = r"^(INSERT INTO|UPDATE) dq_limit\b"


def _events(t, verb, tag=None):
    """How many acts of a verb were recorded, and how many tasks they count."""
    where = f"verb = '{verb}'" + (f" AND arguments LIKE '%{tag}%'" if tag else "")
    acts = f"SELECT token FROM dq_event WHERE step = 0 AND {where}"
    rows, tasks = t.sql(
        "SELECT COUNT(DISTINCT token), COALESCE(SUM(tasks), 0) FROM dq_event"
        f" WHERE verb = '{verb}' AND token IN ({acts})"
    )[0]
    return int(rows), int(tasks)


def _fill(t, tag, n, status=0):
    """n tasks of a tag that are due in an hour, added past dq."""
    t.sql(
        "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time)"
        f" SELECT '{tag}', '', {status}, UTC_TIMESTAMP(3) + INTERVAL 1 HOUR, UTC_TIMESTAMP(3)"
        f" FROM {mysql.numbers(n)}"
    )


def _quiet(t):
    """Waits until the server has ended the sessions of the clients that are gone, with their last
    statements."""
    t.wait(
        lambda: t.one("SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'dq'") == 0,
        "no session is left",
    )


@case("cut-acts", 15, tls="full")
def cut_acts(t):
    """The connection is cut within dq cancel, retry, delete, pause and resume: at the change, at its row in
    dq_event, at the COMMIT. Each act that changed something is recorded, and counts each changed task once."""
    proxy = t.proxy()
    t.configure(proxy.settings())
    steps = (("cancel", 4, 0), ("retry", 0, 2), ("delete", None, 1))
    wanted, tasks = t.often(36, 360), 520  # two steps
    for n in range(wanted):
        verb, to, start = steps[n % 3]
        tag = f"a{n}"
        _fill(t, tag, tasks, start)
        proxy.rules = [
            Rule((CHANGE, EVENT, "commit")[n // 3 % 3], CUTS[n // 9 % 3], most=1, skip=n // 27 % 2, seconds=0.1)
        ]
        t.dq(verb, "--tag", tag, "-y")
        left = t.count(f"tag = '{tag}' AND status = {to}") if to is not None else tasks - t.count(f"tag = '{tag}'")
        rows, counted = _events(t, verb, f"--tag {tag}")
        t.expect(left == tasks, f"{verb}: {left} of {tasks} tasks were changed")
        t.expect((rows, counted) == (1, tasks), f"{verb}: {tasks} tasks changed, {rows} events with {counted} tasks")
    for n in range(18):
        verb, tag = ("pause", "resume")[n % 2], f"s{n // 2}"
        proxy.rules = [Rule((SWITCH, EVENT, "commit")[n // 2 % 3], CUTS[n // 6], most=1, seconds=0.1)]
        done = t.dq(verb, tag, status=None)
        proxy.rules = []
        t.wait(lambda: all("over" in f for f in t.faults.of("cut-late")), "statements that are late have arrived")
        paused = t.one(f"SELECT COUNT(*) FROM dq_limit WHERE name = '{tag}' AND paused_until IS NOT NULL")
        rows = t.one(f"SELECT COUNT(*) FROM dq_event WHERE verb = '{verb}' AND tag = '{tag}'")
        done_it = paused if verb == "pause" else not paused
        t.expect(rows == done_it, f"{verb} with status {done.returncode}: done {done_it}, {rows} events")
        t.expect(done_it or done.returncode, f"{verb}: status 0, but it was not done")
        unsure = not done.returncode or b"not known" in done.stderr
        t.expect(unsure or not done_it, f"{verb} was done, but says {done.stderr}")
        if verb == "pause" and not paused:
            t.dq("pause", tag, ini=t.direct)
    made = t.faults.count("cut")
    t.expect(made >= wanted + 18, f"{made} cuts of {wanted + 18}")
    t.note(f"{made} cuts; each act has its event")


def _killed_at(t, call, n, *arguments):
    """Runs dq, which is killed at its nth call. False: it ended before."""
    log = f"{t.dir}/struck"
    if os.path.exists(log):
        os.unlink(log)
    environment = {"LD_PRELOAD": t.preload, "DQ_FAULT": f"dq:{call}:{n}:kill", "DQ_FAULT_LOG": log}
    done = t.dq(*arguments, status=(0, -signal.SIGKILL), environment=environment)
    if os.path.exists(log):
        t.faults.add("kill", call=call, n=n, arguments=arguments[0])
    return done.returncode != 0


def _at_each_call(t, run, apart=3, most=400):
    """Calls run(call, n), which is to return whether the program was killed, for the sends and receives of a
    program: all of them in the full run, else some, up to `apart` of each other."""
    for call in ("send", "recv"):
        n = 1
        while n < most and run(call, n):
            n += 1 if t.full else t.rng.randint(1, apart)


@case("kill-acts", 15)
def kill_acts(t):
    """dq cancel, retry and delete are killed before any statement and before any answer. The event counts the
    tasks that were changed, and there is none if nothing was."""
    tasks, acts = 520, 0  # two steps

    def once(verb, start, where):
        def run(call, n):
            nonlocal acts
            acts += 1
            tag = f"{verb}{acts}"
            _fill(t, tag, tasks, start)
            was_killed = _killed_at(t, call, n, verb, "--tag", tag, "-y")
            _quiet(t)
            changed = tasks - t.count(f"tag = '{tag}' AND NOT ({where})")
            rows, counted = _events(t, verb, f"--tag {tag}")
            t.expect(
                (rows, counted) == (int(changed > 0), changed),
                f"{verb} killed at {call} {n}: {changed} tasks changed, {rows} events with {counted} tasks",
            )
            t.sql(f"DELETE FROM dq_task WHERE tag = '{tag}'")
            return was_killed

        return run

    for verb, start, where in (("cancel", 0, "status = 4"), ("retry", 2, "status = 0"), ("delete", 1, "FALSE")):
        _at_each_call(t, once(verb, start, where))
    made = t.faults.count("kill")
    t.expect(made >= 30, f"only {made} kills")
    t.note(f"{made} kills in {acts} acts")


@case("dqd-events", 15, tls="full")
def dqd_events(t):
    """dqd processes start, end and are killed while the answers to their events are lost. Each start, each end,
    and each loss is in dq_event once, though every other dqd sees the loss."""
    proxies, beat_ms = [], 300 * t.pace()
    for n in range(3):
        proxies.append(t.proxy())
        proxies[-1].rules = [Rule(r"^INSERT IGNORE INTO dq_event", "cut-after", 0.5)]
        t.configure(proxies[-1].settings(), path=f"{t.dir}/dq{n}.ini", heartbeat=f"{beat_ms}ms")
    lost = 12 if t.full else 4
    dqds = [t.dqd(ini=f"{t.dir}/dq{n}.ini") for n in range(3)]
    started = 3

    def of(verb):
        return t.one(f"SELECT COUNT(*) FROM dq_event WHERE verb = '{verb}'")

    for n in range(lost):
        t.wait(lambda: of("dqd-start") == started, "each start is recorded")
        t.wait(
            lambda: t.one(
                "SELECT COUNT(*) FROM dq_poller"
                f" WHERE last_seen > UTC_TIMESTAMP(3) - INTERVAL {2000 * beat_ms} MICROSECOND"
            )
            == 3,
            "all are alive",
        )
        victim = dqds.pop(0)
        t.faults.add("kill", dqd=victim.pid, runners=[victim.runner()])
        victim.send("both", signal.SIGKILL)
        t.wait(lambda n=n: of("dqd-lost") > n, "the loss is recorded")
        dqds.append(t.dqd(ini=f"{t.dir}/dq{n % 3}.ini"))
        started += 1
    t.wait(lambda: of("dqd-start") == started, "each start is recorded")
    for d in dqds:
        t.expect(d.stop() == 0, "dqd ends with status 0")
    t.expect(
        (of("dqd-start"), of("dqd-lost")) == (started, lost), f"{of('dqd-start')} starts, {of('dqd-lost')} losses"
    )
    ends = of("dqd-end")  # the last act of a dqd is tried once
    t.expect(ends <= 3, f"{ends} ends of 3")
    t.expect(t.faults.count("cut") >= lost, "fewer cuts than asked")
    t.note(f"{started} starts, {lost} losses, {ends} of 3 ends recorded; {t.faults.count('cut')} answers lost")


def _to_import(t, tasks):
    """A file as dq export writes it: tasks with bodies of their own, some of them failed, with an attempt. Returns
    its path and the number of the last line of each task."""
    path, lines, last = t.dir + "/tasks.ndjson", [], []
    when = "2026-01-02T03:04:05.678Z"
    for n in range(1, tasks + 1):
        task = {"id": 10 * n, "tag": "i", "key": f"i{n}", "status": "failed" if n % 70 == 0 else "pending"}
        task.update(version=n, attempt=1, delay=0, expected="2031-01-01T00:00:00.000Z", created=when, body=f"b{n}")
        lines.append(task)
        if n % 70 == 0:
            lines.append({"task": 10 * n, "version": 1, "attempt": 1, "finished": when, "outcome": "exit", "exit": 1})
        last.append(len(lines))
    lines.append({"end": True, "tasks": tasks, "attempts": tasks // 70})
    with open(path, "w", encoding="ascii") as f:
        f.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    return path, last


def _imported(t, tasks, keep_ids, what):
    """Each task is there once, with its own id or a new one, its body and its attempt."""
    rows, bodies, ids = map(
        int,
        t.sql(
            "SELECT COUNT(*), COUNT(DISTINCT message_body), COALESCE(SUM(id = 10 * SUBSTRING(message_body, 2)), 0)"
            " FROM dq_task"
        )[0],
    )
    attempts = t.one("SELECT COUNT(*) FROM dq_attempt a JOIN dq_task t ON t.id = a.task_id WHERE t.status = 2")
    t.expect((rows, bodies) == (tasks, tasks), f"{what}: {rows} rows of {bodies} tasks, {tasks} were in the file")
    t.expect(not keep_ids or ids == tasks, f"{what}: {ids} of {tasks} tasks have their id")
    t.expect(attempts == tasks // 70, f"{what}: {attempts} attempts, {tasks // 70} were in the file")
    events, counted = _events(t, "import")
    t.expect(counted == tasks, f"{what}: {events} events with {counted} tasks")


def _empty(t):
    for table in ("dq_task", "dq_attempt", "dq_event"):
        t.sql(f"DELETE FROM {table}")


@case("cut-import", 15, tls="full")
def cut_import(t):
    """The connection is cut within dq import, with old and with new ids: at tasks, attempts, the event, the
    COMMIT. Exit status 0 means that each task of the file is there once. If it cannot look for conflicts, however
    often it tries, the message says how to continue."""
    proxy = t.proxy()
    t.configure(proxy.settings())
    tasks, wanted = 1200 if t.full else 520, t.often(24, 240)  # two steps
    path, _ = _to_import(t, tasks)
    for n in range(wanted):
        keep = ["--keep-ids"] if n % 2 else []
        statement = ("commit", EVENT, r"^REPLACE INTO dq_attempt", "add")[n // 2 % 4]
        cut = CUTS[(n // 2 + n // 8 + 1) % 3]  # at first, only the answer of the COMMIT is lost
        proxy.rules = [Rule(statement, cut, most=1, skip=t.rng.randrange(2), seconds=0.1)]
        t.dq("import", *keep, path)
        proxy.rules = []
        _imported(t, tasks, keep, f"{statement} {cut} {keep}")
        _empty(t)
    for most in (1, None):
        proxy.rules = [Rule(rf"^SELECT .*\b{10 * 501}\b", "cut-before", most=most)]
        said = t.dq("import", "--keep-ids", path, status=(0 if most else 69,)).stderr.decode()
        proxy.rules = []
        if not most:
            t.expect("--skip " in said, f"cut at each look for conflicts: {said}")
            t.dq("import", "--keep-ids", "--skip", said.split("--skip ")[-1].strip(), path)
        _imported(t, tasks, True, f"cut at a look for conflicts: {said}")
        _empty(t)
    made = t.faults.count("cut")
    t.expect(made >= wanted, f"{made} cuts of {wanted}")
    t.note(f"{made} cuts, each time {tasks} tasks imported once")


@case("kill-import", 20)
def kill_import(t):
    """dq import is killed before any statement and before any answer, with old and with new ids. Its event
    counts the tasks that are in, all of them before those that are not, so that it can be continued with
    --skip; then each is there once. To repeat it from the start with --keep-ids is refused, and changes
    nothing."""
    tasks = 1200 if t.full else 520  # two steps
    path, last = _to_import(t, tasks)

    def once(keep):
        def run(call, n):
            was_killed = _killed_at(t, call, n, "import", *keep, path)
            _quiet(t)
            stored, counted = t.count(), _events(t, "import")[1]
            what = f"killed at {call} {n} {keep}"
            t.expect(stored == counted, f"{what}: {stored} tasks are in, the event says {counted}")
            if keep and stored:
                again = t.dq("import", *keep, path, status=(65,))
                t.expect(b"task 10 exists already" in again.stderr, f"{what}: {again.stderr}")
                t.expect(t.count() == stored, f"{what}: the refused import stored tasks")
            if stored < tasks:
                t.dq("import", *keep, "--skip", str(last[stored - 1] if stored else 0), path)
            _imported(t, tasks, keep, what)
            _empty(t)
            return was_killed

        return run

    for keep in ([], ["--keep-ids"]):
        _at_each_call(t, once(keep), apart=6)
    made = t.faults.count("kill")
    t.expect(made >= 20, f"only {made} kills")
    t.note(f"{made} kills")
