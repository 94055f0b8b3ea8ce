"""One trial: a database of its own, configuration, handlers, dqd processes, and the faults made."""
import json
import os
import random
import re
import subprocess
import time

from harness import mysql
from harness.dqd import Dqd
from harness.faults import FaultLog
from harness.neighbour import Neighbour
from harness.proxy import Proxy

LIMIT_S = 60  # reached by a hang only
# On the machine on which the limits of time were chosen, with a processor of its own, counting to WORK takes so many
# seconds. A shorter count would hardly notice other processes: the kernel gives one that has slept its first
# milliseconds at once.
WORK, WORK_S = 1_000_000, 0.04
SAMPLE_S = 4.0  # between two measurements while a trial waits
LOG_S = 1.0  # between two looks at the logs of the dqds
WATCH_S = 0.05  # and at their processes

# The audit table: every change of a task, recorded by triggers. A pending task is in state 0 there, whatever its
# priority; in state 9 if that is not its own.
def _state(row):
    own = f"IF({row}.status = IFNULL({row}.priority, 0), 0, 9)"
    return f"IF({row}.status IN (0, 5, 6), {own}, {row}.status)"


AUDIT = f"""
CREATE TABLE dq_audit (
  n bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, at datetime(6) NOT NULL, id bigint unsigned NOT NULL,
  old_version bigint unsigned NOT NULL, version bigint unsigned NOT NULL,
  old_status tinyint NOT NULL, status tinyint NOT NULL,
  old_attempt int NOT NULL, attempt int NOT NULL, old_expected datetime(3) NOT NULL, expected datetime(3) NOT NULL,
  old_token binary(16) NULL, token binary(16) NULL, old_lease datetime(3) NULL, lease datetime(3) NULL) ENGINE=InnoDB;
CREATE TRIGGER dq_audit_update AFTER UPDATE ON dq_task FOR EACH ROW
  INSERT INTO dq_audit (at, id, old_version, version, old_status, status, old_attempt, attempt,
    old_expected, expected, old_token, token, old_lease, lease)
  SELECT UTC_TIMESTAMP(6), NEW.id, OLD.version, NEW.version, {_state("OLD")}, {_state("NEW")},
    OLD.attempt, NEW.attempt,
    OLD.expected_time, NEW.expected_time, OLD.claim_token, NEW.claim_token, OLD.lease_until, NEW.lease_until
  FROM DUAL WHERE NEW.version <> OLD.version OR NEW.status <> OLD.status OR NOT NEW.claim_token <=> OLD.claim_token"""

# If a session is killed while it opens a table, MariaDB keeps what it had read of a trigger, and refuses changes of the
# table with this error until the table is opened anew. A dqd kills the session that it has lost; if the server was
# restarted a moment after it had connected, that may be the new session of another.
BROKEN_TRIGGER = re.compile(rb"error 1064: (Trigger|Unknown trigger) ")


class Failed(Exception):
    """What must hold did not."""


class Late(Failed):
    """Something came later than promised: dq is at fault, or the machine, which had other things to do."""


class Trial:
    """`full`: make the figures rather than a short test."""

    def __init__(self, server, directory, name, seed, full, journal_program, environment):
        self.server, self.dir, self.name, self.seed, self.full = server, directory, name, seed, full
        self.rng = random.Random(f"{name}/{seed}")
        self.program, self.environment = journal_program, environment
        self.bin, self.next = environment["DQ_BIN"], environment.get("DQ_NEXT")
        self.database = "dq_" + name.replace("-", "_")
        self.journal = directory + "/journal"
        self.ini, self.handlers_file = directory + "/dq.ini", directory + "/handlers.yaml"
        self.notes, self.dqds, self.proxies, self.neighbours = [], [], [], []
        self.certificates = None  # the directory of certificates, if the trial connects over TLS
        self.acked, self.added = set(), 0  # keys of acknowledged tasks
        self.direct = None  # a configuration that bypasses the proxies
        self.overdue_ms = (
            0  # the longest time that a row stayed running past its lease while a dqd could take it back
        )
        self._sql, self._sampled_at, self._able_since = None, 0.0, None
        self._slow, self._slowest, self._timed_at, self._read_at, self._watched_at = 1.0, 1.0, 0.0, 0.0, 0.0
        os.makedirs(directory)
        os.chmod(directory, 0o711)
        open(self.journal, "w", encoding="ascii").close()  # pylint: disable=consider-using-with
        self.faults = FaultLog(directory + "/faults")
        self.configure()
        self.handlers({"t": ""})
        self.sql(f"DROP DATABASE IF EXISTS {self.database}", database="mysql")
        self.sql(f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", database="mysql")
        self.dq("init")
        for statement in AUDIT.split(";\n"):
            self.sql(statement)

    # ---- talk

    def note(self, text):
        self.notes.append(text)

    def expect(self, condition, text):
        if not condition:
            raise Failed(text)

    def in_time(self, condition, text):
        """The same of a bound of time that this machine may be too busy to keep."""
        if not condition:
            raise Late(text)

    # ---- files

    def configure(self, mysql_keys=None, path=None, **dqd_keys):
        """Writes dq.ini (or another file). Settings by name; the others have values that suit tests."""
        sections = {
            "mysql": {
                "socket": self.server.socket,
                "user": "dq",
                "database": self.database,
                "tls": "disabled",
                "connect_timeout": "5s",
                "read_timeout": "5s",
                "write_timeout": "5s",
                **(mysql_keys or {}),
            },
            "dqd": {
                "handlers": self.handlers_file,
                "lease": "2s",
                "poll_interval": "50ms" if self.full else "200ms",
                "heartbeat": "1s",
                "steal_after": "200ms",
                "drain_timeout": "5s",
                "slots": 8,
                "log_level": "info",
                **dqd_keys,
            },
            "retention": {"done": "never", "failed": "never", "cancelled": "never"},
            "dq": {"retry_for": "0s"},
        }
        path = path or self.ini
        with open(path, "w", encoding="utf-8") as f:
            for section, keys in sections.items():
                f.write(f"[{section}]\n")
                f.writelines(f"{key} = {value}\n" for key, value in keys.items() if value is not None)
        os.chmod(path, 0o600)
        return path

    def handlers(self, tags, path=None, **defaults):
        """tags: name -> words for the journal handler, or a dict of keys (`words`: as before; `run`:
        another command)."""
        lines = ["defaults:"]
        base = {
            "timeout": "20s",
            "kill_grace": "200ms",
            "retry": "[100ms, 100ms, 100ms, 100ms, 100ms, 100ms, 100ms]",
            "max_running": 8,
        }
        lines += [f"  {key}: {value}" for key, value in {**base, **defaults}.items()]
        lines.append("handlers:")
        for tag, keys in tags.items():
            keys = dict(keys) if isinstance(keys, dict) else {"words": keys}
            words = keys.pop("words", "").split()
            keys.setdefault("run", json.dumps([self.program, self.journal, *words]))
            lines.append(f"  {json.dumps(tag)}:")
            lines += [f"    {key}: {value}" for key, value in keys.items()]
        path = path or self.handlers_file
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        os.chmod(path, 0o644)
        return path

    # ---- the database

    def sql(self, statement, database=None, raw=False):
        """Runs a statement as root, on a connection that is kept and renewed when it has broken."""
        if database:
            client = self.server.client(database)
            try:
                return client.query(statement, raw)
            finally:
                client.close()
        if self._sql is None:
            self._sql = self.server.client(self.database)
        try:
            return self._sql.query(statement, raw)
        except mysql.Error as e:
            if e.number == 0:
                self._sql.close()
                self._sql = None
            raise

    def move(self, server):
        """From now on the trial's own statements and configurations are for this server, on a new connection."""
        if self._sql:
            self._sql.close()
        self._sql, self.server = None, server

    def one(self, statement):
        """The first cell, as a number where it looks like one."""
        rows = self.sql(statement)
        cell = rows[0][0] if rows else None
        return int(cell) if cell is not None and cell.lstrip("-").isdigit() else cell

    def count(self, where="TRUE"):
        return self.one(f"SELECT COUNT(*) FROM dq_task WHERE {where}")

    def proxy(self, tcp=False):
        """A proxy before the server; the configuration has to contain its settings(). add() goes past it."""
        self.direct = self.configure(path=self.dir + "/direct.ini")
        path = None if tcp or self.certificates else f"{self.dir}/proxy{len(self.proxies)}"
        proxy = Proxy(
            self.server.socket,
            self.faults,
            random.Random(self.rng.random()),
            path=path,
            certificates=self.certificates,
        )
        self.proxies.append(proxy)
        return proxy

    def neighbour(self):
        """A client beside dqd from now on."""
        self.neighbours.append(Neighbour(self))
        return self.neighbours[-1]

    def way(self):
        """The keys of [mysql] of a scenario that needs no proxy: only if it runs over TLS there is one."""
        return self.proxy().settings() if self.certificates else {}

    def often(self, short, full=1000):
        """How many faults to make. The short run makes half as many over TLS."""
        return full if self.full else (short + 1) // 2 if self.certificates else short

    # ---- programs

    def dq(self, *arguments, status=(0,), body=None, ini=None, timeout=5 * LIMIT_S, environment=None):
        """Runs dq and returns the finished process. status: the allowed exit statuses; None: any."""
        for _ in range(10):
            done = subprocess.run(
                [self.bin + "/dq", "--config", ini or self.ini, *arguments],
                input=body,
                capture_output=True,
                timeout=timeout,
                check=False,
                env={**self.environment, **(environment or {})},
            )
            if not BROKEN_TRIGGER.search(done.stderr):
                break
            self._mend_trigger()
        if status is not None and done.returncode not in status:
            shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(arguments)[:80])
            raise Failed(f"dq {shown}: status {done.returncode}: {done.stderr.decode(errors='replace')}")
        return done

    def run(self, program, *arguments):
        """A program of the build with just these arguments, until its end."""
        return subprocess.run(
            [f"{self.bin}/{program}", *arguments],
            capture_output=True,
            timeout=5 * LIMIT_S,
            check=False,
            env=self.environment,
            stdin=subprocess.DEVNULL,
        )

    def line(self, tag="t", in_ms=0, words="", key=True, **members):
        """One task for add_lines, with a key of its own."""
        self.added += 1
        task = {"tag": tag, "body": f"@{words}" if words else "", "in": f"{in_ms}ms", **members}
        if key:
            task["key"] = f"k{self.added}"
        return task

    def add_lines(self, tasks, status=(0,), ini=None):
        """dq add --from; notes the acknowledged keys. Returns whether it was acknowledged."""
        body = "".join(json.dumps(task) + "\n" for task in tasks).encode()
        done = self.dq("add", "--from", "-", status=status, body=body, ini=ini)
        if done.returncode == 0:
            self.acked.update(task["key"] for task in tasks if "key" in task)
        return done.returncode == 0

    def add(self, n, tag="t", in_ms=0, words="", **members):
        for at in range(0, n, 1000):
            self.add_lines(
                [self.line(tag, in_ms, words, **members) for _ in range(min(1000, n - at))], ini=self.direct
            )

    def dqd(
        self, *arguments, keep=False, ini=None, environment=None, stderr=None, program=None
    ):  # pylint: disable=too-many-arguments
        """A resident dqd unless the arguments say other."""
        mode = [] if any(a in ("--once", "--for") for a in arguments) else ["--resident"]
        d = Dqd(
            program or self.bin + "/dqd",
            [*mode, "--config", ini or self.ini, *arguments],
            f"{self.dir}/dqd{len(self.dqds)}.log",
            keep,
            {**self.environment, **(environment or {})},
            stderr,
        )
        self.dqds.append(d)
        return d

    # ---- time

    def step(self):
        """Runs while a trial waits: restarts dqds, checks for expired leases, and measures how slow the machine is."""
        if time.monotonic() - self._watched_at > WATCH_S:
            self._watched_at = time.monotonic()
            for d in self.dqds:
                d.watch()
        if time.monotonic() - self._sampled_at > 0.25:
            self._sampled_at = time.monotonic()
            self._look_at_leases()
        if time.monotonic() - self._read_at > LOG_S:
            self._read_at = time.monotonic()
            if any(BROKEN_TRIGGER.search(d.news()) for d in self.dqds):
                self._mend_trigger()
        if time.monotonic() - self._timed_at > SAMPLE_S:
            self._time_work()

    def _mend_trigger(self):
        try:  # on a connection of its own: producers are threads
            self.sql("FLUSH TABLES dq_task", database=self.database)
        except mysql.Error:  # it is away
            pass

    def _look_at_leases(self):
        """Measures from when both the database and some dqd are there to take a task back."""
        able = any(d.alive() for d in self.dqds) and not self.server.frozen
        try:
            late = (
                self.one(
                    "SELECT CAST(COALESCE(MAX(TIMESTAMPDIFF(MICROSECOND, lease_until, UTC_TIMESTAMP(3))), 0) AS SIGNED)"
                    " FROM dq_task WHERE status = 3"
                )
                if able
                else 0
            )
        except mysql.Error:
            able, late = False, 0
        if not able:
            self._able_since = None
            return
        now = time.monotonic()
        self._able_since = self._able_since or now
        self.overdue_ms = max(self.overdue_ms, min((late or 0) / 1000, (now - self._able_since) * 1000))

    def _time_work(self):
        began = time.monotonic()
        for _ in range(WORK):
            pass
        self._timed_at = time.monotonic()
        self._slow = max(1.0, (self._timed_at - began) / WORK_S)
        self._slowest = max(self._slowest, self._slow)

    def slowness(self):
        """How many times longer work has taken, at the worst moment of the trial until now, than on a machine that has
        nothing else to do; at least 1.0. Limits of time are multiplied by it: a slow machine is no fault of dq."""
        self._time_work()
        return self._slowest

    def pace(self):
        """By how many times leases and the like have to be longer here, 1 to 4. They are long enough for a machine that
        is three times slower."""
        for _ in range(3):  # a machine that is given to others now and then seems fast between two of these times
            self._time_work()
            time.sleep(0.05)
        return min(4, max(1, round(self.slowness() / 3)))

    def sleep(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.step()
            time.sleep(min(0.02, max(0, until - time.monotonic())))

    def patience(self, seconds, what):
        """Returns a function, to be called again and again while something is waited for. It fails after so many
        seconds of a machine that has nothing else to do; a slow one gets more."""
        left, before = seconds, time.monotonic()

        def spend():
            nonlocal left, before
            now = time.monotonic()
            left, before = left - (now - before) / self._slow, now
            self.expect(left >= 0, f"still not after {seconds:g} s: {what}")

        return spend

    def wait(self, condition, what, timeout=LIMIT_S, pause=0.04):
        """Waits until condition() is true; an unavailable database counts as false. timeout: see patience."""
        spend = self.patience(timeout, what)
        while True:
            self.step()
            try:
                if condition():
                    return
            except mysql.Error:
                pass
            spend()
            time.sleep(pause)

    def wait_finished(self, timeout=2 * LIMIT_S):
        self.wait(lambda: self.count("status IN (0, 3, 5, 6)") == 0, "no task pending or running", timeout, 0.1)

    def end(self):
        """Stops everything that was started."""
        for d in self.dqds:
            d.stop(timeout=20)
        for p in self.proxies + self.neighbours:
            p.close()
        if self._sql:
            self._sql.close()
