"""The oracle: reads the handlers' journal, the tables, the audit table and the fault log, and checks the promises."""
import bisect
import re
from collections import defaultdict

from harness.owners import SECOND, Owners, utc_us
from harness.trial import Failed

PENDING, DONE, FAILED, RUNNING, CANCELLED = range(5)
LEGAL = {
    (PENDING, RUNNING),
    (PENDING, CANCELLED),
    (PENDING, PENDING),
    (RUNNING, DONE),
    (RUNNING, PENDING),
    (RUNNING, FAILED),
    (RUNNING, CANCELLED),
    (DONE, PENDING),
    (FAILED, PENDING),
    (CANCELLED, PENDING),
}


class Attempt:
    """One start of a handler for a task; times in microseconds on the steady clock."""

    __slots__ = ("id", "attempt", "token", "pid", "runner", "start", "wall", "size", "hash", "alive", "end", "status")

    def __init__(self, words):
        self.id, self.attempt, self.token, self.pid, self.runner, self.start, self.wall, self.size = map(
            int, words[1:9]
        )
        self.hash = words[9]
        self.alive = self.start  # the last sign of life
        self.end = self.status = None


def read_journal(path):
    """Attempts by task, in the order of their starts. Signs of life of background processes ("G") belong to the
    attempt."""
    by_token, tasks = {}, defaultdict(list)
    with open(path, encoding="ascii") as f:
        for line in f:
            # one that is killed as it writes across the end of a page leaves a part, which has no end
            words = line[max((m.start() for m in re.finditer("[A-Z] ", line)), default=0) :].split()
            if words[0] == "S":
                a = Attempt(words)
                if (a.id, a.token) in by_token:
                    raise Failed(f"task {a.id}: token {a.token} was given to two processes")
                by_token[a.id, a.token] = a
                tasks[a.id].append(a)
                continue
            a = by_token[int(words[1]), int(words[2])]
            a.alive = max(a.alive, int(words[4]))
            if words[0] == "E":
                a.end, a.status = int(words[4]), int(words[5])
    for attempts in tasks.values():
        attempts.sort(key=lambda a: a.start)
    return tasks


class Oracle:
    """Reads everything at once; `check` raises Failed at the first broken promise, then notes the counts."""

    def __init__(self, trial):
        self.t = trial
        self.attempts = read_journal(trial.journal)
        self.rows = {int(r[0]): r for r in trial.sql("SELECT id, task_key, status, version, attempt FROM dq_task")}
        self.history = {
            (int(r[0]), int(r[1])): r[2:]
            for r in trial.sql("SELECT task_id, version, outcome, start_time, pid, error_stack FROM dq_attempt")
        }
        self.audit = trial.sql(
            "SELECT id, old_version, version, old_status, status, old_expected, old_attempt, attempt"
            " FROM dq_audit ORDER BY id, old_version"  # nodes of a cluster number its rows apart
        )
        first = next((a[0] for a in self.attempts.values()), None)
        self.owners = Owners(trial, self.history, first.wall - first.start if first else 0)
        self.faults = sorted(trial.faults.items, key=lambda f: f["at"])
        self.starts = sum(map(len, self.attempts.values()))
        self.repeats = sum(len(a) - 1 for a in self.attempts.values())

    def check(self, overlap_slack_ms=0, lease_slack_ms=10_000, explained=True):
        """overlap_slack_ms: how long after a logged freeze has ended a stale handler may still live."""
        self.finished()
        self.versions_grow()
        self.results_are_owned()
        self.nothing_early()
        self.no_overlap(overlap_slack_ms)
        if explained:
            self.repeats_are_explained()
        if self.t.overdue_ms > lease_slack_ms * self.t.slowness():
            raise Failed(f"a row stayed running for {self.t.overdue_ms:.0f} ms past its lease")
        self.t.note(
            f"{len(self.rows)} tasks, {self.starts} starts, {self.repeats} repeats, {len(self.faults)} faults,"
            f" longest past its lease {self.t.overdue_ms:.0f} ms"
        )

    def finished(self):
        """Every acknowledged task is stored once and has finished; no other is left either."""
        keys = defaultdict(int)
        for task, key, status, *_ in self.rows.values():
            keys[key] += 1
            if int(status) not in (DONE, FAILED, CANCELLED):
                raise Failed(f"task {task} is left in state {status}")
        for key in self.t.acked:
            if keys.get(key, 0) != 1:
                raise Failed(f"the acknowledged task with key {key} is stored {keys.get(key, 0)} times")
        twice = [key for key, n in keys.items() if key is not None and n > 1]
        if twice:
            raise Failed(f"added once, stored twice: {twice[:5]}")

    def versions_grow(self):
        """Versions grow by one at every transition, and every transition is in the transition table."""
        last = {}
        for task, old, new, old_status, status, *_ in self.audit:
            if int(new) != int(old) + 1:
                raise Failed(f"task {task}: version went from {old} to {new}")
            if int(old) != last.get(task, int(old)):
                raise Failed(f"task {task}: version {old} changed after {last[task]}")
            if (int(old_status), int(status)) not in LEGAL:
                raise Failed(f"task {task}: state went from {old_status} to {status}")
            last[task] = int(new)

    def results_are_owned(self):
        """A done task was finished by the attempt that owned it last, and that attempt succeeded."""
        for task, _, status, version, _ in self.rows.values():
            if int(status) != DONE:
                continue
            mine = [a for a in self.attempts[int(task)] if a.token == int(version) - 1]
            if not mine or mine[0].status != 0:
                raise Failed(
                    f"task {task} is done at version {version} without a successful attempt of version"
                    f" {int(version) - 1}"
                )

    def nothing_early(self):
        """No start before the expected time at its claim, by the database's clock (which is this host's)."""
        due = {(int(r[0]), int(r[2])): r[5] for r in self.audit if (r[3], r[4]) == ("0", "3")}
        for attempts in self.attempts.values():
            for a in attempts:
                if (a.id, a.token) not in due:
                    raise Failed(f"task {a.id}: a handler was started with token {a.token}, which no claim gave")
                early = utc_us(due[a.id, a.token]) - a.wall
                if early > 0:
                    raise Failed(f"task {a.id} was started {early} us before its time")

    def no_overlap(self, slack_ms):
        """No two attempts of a task overlap, except across a logged freeze of the processes that watch them."""
        for attempts in self.attempts.values():
            for a, b in zip(attempts, attempts[1:]):
                if a.alive > b.start and not self._excused(a, b, slack_ms):
                    raise Failed(
                        f"task {a.id}: attempt {a.attempt} lived {a.alive - b.start} us into attempt {b.attempt}"
                    )
                if b.token <= a.token:
                    raise Failed(f"task {a.id}: token {b.token} came after {a.token}")

    def _excused(self, a, b, slack_ms):
        return any(
            f["kind"] == "freeze"
            and a.runner in f["pids"]
            and f["at"] * SECOND <= b.start
            and a.alive <= (f.get("until", f["at"]) * 1000 + slack_ms) * 1000
            for f in self.faults
        )

    def repeats_are_explained(self):
        """Every start that did not finish its task has a row in dq_attempt, which records a failure or
        follows a fault."""
        fault_times = [f["at"] * SECOND for f in self.faults]
        for attempts in self.attempts.values():
            for a, b in zip(attempts, attempts[1:]):
                row = self.history.get((a.id, a.token))
                if row is None:
                    raise Failed(
                        f"task {a.id}: attempt {a.attempt} (version {a.token}) has no row of history, but was repeated"
                    )
                outcome = row[0]
                if outcome == "released":
                    raise Failed(
                        f"task {a.id}: attempt {a.attempt} had been started, but its history says it was given"
                        " back unstarted"
                    )
                at = bisect.bisect_left(fault_times, b.start)
                if (
                    outcome in ("lease-expired", "runner-died", "killed")
                    and not self.owners.stalled(a)
                    and not any(
                        f.get("lasting") or f["at"] * SECOND >= a.start - 5 * SECOND for f in self.faults[:at]
                    )
                ):
                    raise Failed(
                        "\n".join(
                            [
                                f"task {a.id}: attempt {a.attempt} ended as {outcome}, and no fault explains it",
                                *self.evidence(),
                            ]
                        )
                    )

    def repeats_by_cause(self):
        """How many attempts were repeated because their dqd was killed while they were in flight, and how many because
        their owner was stalled by lack of processor time or of a database. Raises Failed if neither explains one."""
        kills, killed, stalled = defaultdict(list), 0, 0
        for f in (f for f in self.faults if f["kind"] == "kill"):
            for runner in f["runners"]:
                kills[runner].append(f["at"] * SECOND)
        for attempts in self.attempts.values():
            for a in attempts[:-1]:
                if any(self.owners.in_flight(a, at) for at in kills[a.runner]):
                    killed += 1
                elif self.owners.stalled(a, min(kills[a.runner], default=None)):
                    stalled += 1
                else:
                    raise Failed(
                        f"task {a.id}: attempt {a.attempt} ({self.history[a.id, a.token][0]}) was repeated, though"
                        " no kill met it"
                        " and its owner was at work"
                    )
        return killed, stalled

    def no_repeats(self):
        """For a trial in which nothing is a reason to repeat a task."""
        if self.repeats:
            raise Failed("\n".join([f"{self.repeats} repeats, though nothing is a reason for one", *self.evidence()]))

    def evidence(self, most=3):
        """What is known of the first repeated tasks: their attempts, their owners, and what the logs say of both."""
        for task in [task for task, attempts in self.attempts.items() if len(attempts) > 1][:most]:
            for a in self.attempts[task]:
                outcome, _, pid, error = self.history.get((a.id, a.token), ("not in dq_attempt", "", "", ""))
                yield f"task {task}: {self.owners.life(a)}: {outcome} {error or ''}"
                yield from (f"  {line}" for d in self.t.dqds for line in d.log_of(pid, f" id={task} ")[-20:])

    def rerun_ms(self):
        """The times from a kill to the next start, for every repeat after a kill, sorted."""
        waits = []
        for f in (f for f in self.faults if f["kind"] == "kill"):
            at = f["at"] * SECOND
            for attempts in self.attempts.values():
                for a, b in zip(attempts, attempts[1:]):
                    if (
                        a.runner in f["runners"]
                        and a.start <= at < b.start
                        and (a.end is None or a.end >= at - SECOND)
                    ):
                        waits.append((b.start - at) / 1000)
        return sorted(waits)


def percentile(values, share):
    """0 if there are no values."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0
