"""Keys that are added again while their tasks run: --key-conflict again."""
import random
import threading
import time
from collections import defaultdict

from cases import case
from harness import mysql
from harness.chaos import Chaos
from harness.oracle import DONE, SECOND, Oracle

KEYS, PRODUCERS = 50, 8


class Producer(threading.Thread):
    """Adds events, each for a key of all producers: by dq add, or by the procedure. An event that is not acknowledged
    is added again, as a caller would."""

    def __init__(self, t, number, total, seconds, by_procedure):
        super().__init__(daemon=True)
        self.t, self.number, self.total, self.by_procedure = t, number, total, by_procedure
        self.period = seconds / total
        self.rng = random.Random(t.rng.random())
        self.events, self.refused, self.failure = [], 0, None  # (key, bytes of the body, when it began, when it was in)
        self.start()

    def run(self):
        client = self.t.server.client(self.t.database) if self.by_procedure else None
        try:
            for n in range(self.total):
                key = f"k{self.rng.randrange(KEYS)}"
                # no other event has a body of this length
                body = f"@ms={self.rng.randrange(1, 60)}".ljust(20 + self.number + PRODUCERS * n)
                at = time.time()
                while not self._add(client, key, body):
                    self.refused += 1
                self.events.append((key, len(body), at * SECOND, time.time() * SECOND))
                time.sleep(self.rng.uniform(0, 2 * self.period))
        except Exception as e:  # pylint: disable=broad-except
            self.failure = e
        finally:
            if client:
                client.close()

    def _add(self, client, key, body):
        if not client:
            words = ("add", "t", "-", "--key", key, "--key-conflict", "again")
            return self.t.dq(*words, status=(0, 69, 75), body=body.encode()).returncode == 0
        try:
            client.query(f"CALL dq_add_again('t', '{key}', '{body}', 0, @id)")
        except mysql.Error as e:
            if e.number not in (1020, 1205, 1213):
                raise
            return False
        return True


def _judge(t, events):
    """By key: no two runs at once, though it may be several tasks, and the last one began after the last event, with
    the body of an event than which none is certainly later."""
    oracle = Oracle(t)
    oracle.versions_grow()
    oracle.results_are_owned()
    oracle.nothing_early()
    oracle.no_overlap(0)
    runs = defaultdict(list)
    for task, attempts in oracle.attempts.items():
        runs[oracle.rows[task][1]] += attempts
    waits = []
    for key, added in events.items():
        mine = sorted(runs[key], key=lambda a: a.start)
        for a, b in zip(mine, mine[1:]):
            t.expect(a.alive <= b.start, f"{key}: task {a.id} lived {a.alive - b.start} us into task {b.id}")
        last = max(begun for _, begun, _ in added)
        t.expect(mine and mine[-1].wall >= last, f"{key}: its last run began before its last event")
        ended = {size: end for size, _, end in added}
        t.expect(ended[mine[-1].size] >= last, f"{key}: its last run has the body of an earlier event")
        for _, begun, _ in added:
            waits.append(min(a.wall for a in mine if a.wall >= begun) - begun)
    t.expect(all(int(r[2]) == DONE for r in oracle.rows.values()), "not every task is done")
    rests = t.count("again_time IS NOT NULL OR again_body IS NOT NULL OR live IS NOT NULL")
    t.expect(rests == 0, f"{rests} finished tasks have something left of a mark")
    waits.sort()
    t.note(
        f"{len(waits)} events on {len(events)} keys, {oracle.starts} runs of {len(oracle.rows)} tasks; from an event to"
        f" the next run p50 {waits[len(waits) // 2] / 1000:.0f} ms, most {waits[-1] / 1000:.0f} ms"
    )


@case("add-again", 20)
def add_again(t):
    """Eight producers add events with 50 keys while dqds are killed, by --key-conflict again. The last run of each key
    begins after its last event, and no two runs of a key overlap."""
    total, kills, seconds = (10_000, 1000, 420) if t.full else (400, 14, 6)
    t.configure(lease="3s", slots=16, poll_interval="100ms")
    # at every second attempt or so something is killed: none may be given up for it
    t.handlers({"t": "fail=1"}, max_running=16, retry="[" + ", ".join(["20ms"] * 60) + "]")
    for _ in range(3):
        t.dqd(keep=True)
    producers = [Producer(t, n, total // PRODUCERS, seconds, n % 2 == 1) for n in range(PRODUCERS)]
    chaos = Chaos(t, (0.1, 0.6), kill=kills)
    chaos.run(timeout=3600 if t.full else 300)
    spend = t.patience(3600 if t.full else 300, "all events are added")
    while any(p.is_alive() for p in producers):
        spend()
        t.sleep(0.05)
    for p in producers:
        if p.failure:
            raise p.failure
    t.wait_finished(600 if t.full else 120)
    chaos.verify()
    events = defaultdict(list)
    for p in producers:
        for key, *event in p.events:
            events[key].append(event)
    _judge(t, events)
    t.note(f"{len(t.faults.of('kill'))} kills; {sum(p.refused for p in producers)} adds were repeated")
