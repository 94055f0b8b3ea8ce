"""Upgrades: two releases at work on one database, and the migration between them (scenario 43)."""
import signal
import subprocess
import threading
import time

from cases import case
from harness.chaos import Chaos
from harness.oracle import DONE, Oracle, percentile
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
                self.stopped.wait(0.01)
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
        timeout=60,
        check=False,
        env=t.environment,
    )


def _migrate(t, directory):
    """dq init, killed a few times on its way. When it began and ended."""
    command = [directory + "/dq", "--config", t.ini, "init"]
    began = time.monotonic()
    for _ in range(5):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            t.sleep(t.rng.uniform(0, 0.03))
            process.send_signal(signal.SIGKILL)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        t.wait(lambda: process.poll() is not None, "dq init ends", 300)
        t.expect(process.returncode == 0, f"dq init: status {process.returncode}: {process.stdout.read()}")
    return began, time.monotonic()


def _fill(t, rows):
    """Finished tasks that the migration has to carry."""
    columns = "tag, message_body, body_size, status, version, expected_time, create_time, finish_time"
    t.sql(f"INSERT INTO dq_task ({columns}) VALUES ('t', REPEAT('x', 200), 200, 4, 1, {', '.join(['NOW()'] * 3)})")
    have = 1
    while have < rows:
        more = min(have, rows - have, 10_000)
        t.sql(f"INSERT INTO dq_task ({columns}) SELECT {columns} FROM dq_task LIMIT {more}")
        have += more


def _kill_some(t, kills):
    chaos = Chaos(t, (0.2, 0.8), kill=kills)
    while not chaos.done():
        chaos.step()
        t.sleep(0.01)


@case("mixed-versions", 43, 30)
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
    began, ended = _migrate(t, new)
    producers += [Producer(t, new, f"new{i}") for i in range(2)]
    for _ in range(2):
        t.dqd(keep=True, program=new + "/dqd")
    _kill_some(t, kills - kills // 3)
    for p in producers:
        p.end()
    t.wait_finished(60)
    late = _dq(t, old, "init")
    t.expect(late.returncode == 0, f"old dq init, new schema: {late.stderr}")
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
