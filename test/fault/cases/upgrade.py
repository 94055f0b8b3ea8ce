"""Upgrades: two releases at work on one database, and the migration between them."""
import signal
import subprocess
import threading
import time

from cases import case
from harness.chaos import Chaos
from harness.oracle import DONE, Oracle, percentile
from harness.proxy import Rule
from harness.trial import Failed


class Producer(threading.Thread):
    """Adds tasks one by one with the dq of one release until it is stopped. Every add must succeed."""

    def __init__(self, t, directory, name):
        super().__init__(daemon=True)
        self.t, self.directory, self.name = t, directory, name
        self.stopped = threading.Event()
        self.adds, self.failure = [], None  # adds: (when it ended, ms)
        self.start()

    def run(self):
        try:
            while not self.stopped.is_set():
                began = time.monotonic()
                key = f"{self.name}-{len(self.adds)}"
                done = _dq(self.t, self.directory, "-q", "add", "t", "-", "--key", key, "--in", "100ms")
                if done.returncode != 0:
                    raise Failed(f"{self.directory}/dq add: status {done.returncode}: {done.stderr}")
                self.adds.append((time.monotonic(), (time.monotonic() - began) * 1000))
                self.t.acked.add(key)
                self.stopped.wait(0.01 if self.t.full else 0.02)
        except Exception as e:  # pylint: disable=broad-except
            self.failure = e

    def end(self):
        self.stopped.set()
        self.join()
        if self.failure:
            raise self.failure


def _dq(t, directory, *arguments):
    return subprocess.run(
        [directory + "/dq", "--config", t.ini, *arguments],
        input="@ms=5",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=t.environment,
    )


def migrate(t, directory, kills):
    """dq init, killed that often on its way; when it began and ended."""
    command = [directory + "/dq", "--config", t.ini, "init"]
    began = time.monotonic()
    for _ in range(kills):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            t.sleep(t.rng.uniform(0, 0.03))
            process.send_signal(signal.SIGKILL)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        t.wait(lambda: process.poll() is not None, "dq init ends", 300)
        t.expect(process.returncode == 0, f"dq init: status {process.returncode}: {process.stdout.read()}")
    return began, time.monotonic()


def _fill(t, rows):
    """Finished tasks, with an attempt each, that the migration has to carry."""
    columns = "tag, message_body, body_size, status, version, expected_time, create_time, finish_time"
    t.sql(f"INSERT INTO dq_task ({columns}) VALUES ('t', REPEAT('x', 200), 200, 4, 1, {', '.join(['NOW()'] * 3)})")
    have = 1
    while have < rows:
        more = min(have, rows - have, 10_000)
        t.sql(f"INSERT INTO dq_task ({columns}) SELECT {columns} FROM dq_task LIMIT {more}")
        have += more
    at = 0
    while at < t.one("SELECT MAX(id) FROM dq_task"):
        t.sql(
            "INSERT INTO dq_attempt (task_id, version, attempt, finish_time, outcome)"
            f" SELECT id, version, 1, finish_time, 'filled' FROM dq_task WHERE id > {at} AND id <= {at + 10_000}"
        )
        at += 10_000


def _forget_filled(t):
    while t.sql("DELETE FROM dq_attempt WHERE outcome = 'filled' LIMIT 10000"):
        pass


def _kill_some(t, kills):
    chaos = Chaos(t, (0.2, 0.8), kill=kills)
    while not chaos.done():
        chaos.step()
        t.sleep(0.01)


@case("mixed-versions", 30)
def mixed_versions(t):
    """dq and dqd of two releases use one database while processes are killed and dq init migrates it. No add fails, no
    task is lost, and none is repeated without a fault."""
    old, new, kills, rows = t.bin, t.next, 120 if t.full else 24, 1_000_000 if t.full else 1000
    t.configure(lease="3s", slots=16, poll_interval="100ms")
    t.handlers({"t": ""}, max_running=16)
    _fill(t, rows)
    for _ in range(2):
        t.dqd(keep=True, program=old + "/dqd")
    producers = [Producer(t, old, f"old{i}") for i in range(2)]
    _kill_some(t, kills // 3)
    early = _dq(t, new, "list")
    t.expect(early.returncode == 78 and "run dq init" in early.stderr, f"new dq, old schema: {early.stderr}")
    began, ended = migrate(t, new, 5)
    producers += [Producer(t, new, f"new{i}") for i in range(2)]
    for _ in range(2):
        t.dqd(keep=True, program=new + "/dqd")
    _kill_some(t, kills - kills // 3)
    for p in producers:
        p.end()
    t.wait_finished()
    late = _dq(t, old, "init")
    t.expect(late.returncode == 0, f"old dq init, new schema: {late.stderr}")
    _forget_filled(t)
    oracle = Oracle(t)
    oracle.check()
    oracle.repeats_by_cause()
    t.expect(all(int(r[2]) == DONE for r in oracle.rows.values() if r[1]), "not every task is done")
    took = sorted(ms for p in producers for _, ms in p.adds)
    meanwhile = sorted(ms for p in producers for at, ms in p.adds if at > began and at - ms / 1000 < ended)
    t.note(
        f"{rows} rows; dq init, killed 5 times, took {ended - began:.1f} s; {len(took)} adds, none failed:"
        f" p50 {percentile(took, .5):.0f} ms, most {took[-1]:.0f} ms; the {len(meanwhile)} during dq init:"
        f" p50 {percentile(meanwhile, .5):.0f} ms, most {percentile(meanwhile, 1):.0f} ms"
    )


class EachWrite(Rule):
    """Stops at each statement that writes, before the server gets it and then after it has executed it, one a run.
    A statement is known by the one before it as well, as some have the same text."""

    def __init__(self):
        super().__init__(r"^(CREATE|ALTER|DROP|INSERT|UPDATE|REPLACE|DELETE)\b", "stop-before")
        self.times, self.previous = {}, None

    def rewind(self):
        self.previous, self.hits = None, 0
        self.stopped.clear()

    def takes(self, sql, rng):
        if self.hits or not self.pattern.search(sql):
            return False
        here, self.previous = (self.previous, sql), sql
        self.times[here] = self.times.get(here, 0) + 1
        if self.times[here] > 2:
            return False
        self.action = "stop-before" if self.times[here] == 1 else "stop-after"
        self.hits = 1
        return True


def _init_killed(t, directory, proxy, ini):
    """Runs dq init until one run gets through: each of the others is killed a statement further. How many were."""
    rule, kills = EachWrite(), 0
    proxy.rules = [rule]
    while True:
        rule.rewind()
        with subprocess.Popen(
            [directory + "/dq", "--config", ini, "init"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            t.wait(lambda: rule.stopped.is_set() or process.poll() is not None, "dq init gets on", pause=0.002)
            if not rule.stopped.is_set():
                said = process.stdout.read()
                t.expect(process.returncode == 0, f"dq init after {kills} kills: status {process.returncode}: {said}")
                return kills
            process.kill()
        kills += 1


def _shape(t, database):
    """What dq init makes: tables, procedures, and what dq_meta says."""
    name = f"_schema = '{database}'"
    return {
        "column": t.sql(
            "SELECT table_name, column_name, column_type, is_nullable, column_default, extra FROM"
            f" information_schema.columns WHERE table{name} AND table_name <> 'dq_audit' ORDER BY 1, 2"
        ),
        "index": t.sql(
            "SELECT table_name, index_name, seq_in_index, column_name, non_unique FROM"
            f" information_schema.statistics WHERE table{name} AND table_name <> 'dq_audit' ORDER BY 1, 2, 3"
        ),
        "procedure": t.sql(
            "SELECT routine_name, routine_definition, routine_comment, security_type FROM"
            f" information_schema.routines WHERE routine{name} ORDER BY 1"
        ),
        "number": t.sql(f"SELECT name, value FROM {database}.dq_meta ORDER BY 1"),
    }


def _expect_whole(t, what, wanted, database):
    have = _shape(t, database)
    for kind, rows in wanted.items():
        differ = set(rows) ^ set(have[kind])
        t.expect(not differ, f"{what}: {kind} {sorted(differ, key=str)[0] if differ else ''} differs")


@case("init-killed", 15)
def init_killed(t):
    """dq init is killed at each statement with which it creates, upgrades and replaces tables and procedures. The next
    one always takes up the work, and the result is as if none had been killed."""
    database = t.database + "_again"
    proxy = t.proxy()
    ini = t.configure({**proxy.settings(), "database": database}, path=t.dir + "/again.ini")
    t.sql(f"DROP DATABASE IF EXISTS {database}")
    kills = [_init_killed(t, t.bin, proxy, ini)]
    whole = _shape(t, t.database)
    _expect_whole(t, "created", whole, database)
    t.dq("add", "t", "body", "--key", "k", ini=ini)
    for procedure in ("dq_add", "dq_cancel_key"):
        t.sql(f"ALTER PROCEDURE {database}.{procedure} SQL SECURITY INVOKER")
    kills.append(_init_killed(t, t.bin, proxy, ini))
    _expect_whole(t, "replaced", whole, database)
    kills.append(_init_killed(t, t.next, proxy, ini))
    t.expect(_dq(t, t.next, "init").returncode == 0, "the next dq init on tables of this one")
    _expect_whole(t, "upgraded", _shape(t, t.database), database)
    t.sql(f"CALL {database}.dq_add('t', 'k', 'another', 0, @id)")
    t.expect(t.sql(f"SELECT message_body FROM {database}.dq_task") == [("body",)], "the task or its key was lost")
    t.expect(min(kills) > 0 and sum(kills) > 60, f"{kills} kills: too few")
    t.note(f"{kills[0]} kills while it created, {kills[1]} while it replaced, {kills[2]} while it upgraded")
