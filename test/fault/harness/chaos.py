"""Kills and freezes running dqds and the database at random times from a seeded generator."""
import os
import signal
import time


class Chaos:
    """`wants`: how many faults of each kind: kill (randomly the poller, the runner or both), kill-database,
    freeze. They come in random order, `pause` seconds (low, high) apart. Call step() repeatedly until done()
    returns true."""

    def __init__(self, trial, pause, freeze_s=(2.5, 4.0), **wants):
        self.t, self.rng, self.pause, self.freeze_s = trial, trial.rng, pause, freeze_s
        self.left = [kind for kind, n in wants.items() for _ in range(n)]
        self.rng.shuffle(self.left)
        self.wants = wants
        self.next_at = time.monotonic() + pause[1]
        self.thaws = []  # (when, entry)

    def done(self):
        return not self.left and not self.thaws

    def step(self):
        now = time.monotonic()
        for at, entry in [thaw for thaw in self.thaws if thaw[0] <= now]:
            self.thaws.remove((at, entry))
            self._thaw(entry)
        if self.left and now >= self.next_at:
            if self._make(self.left[-1]):
                self.left.pop()
                self.next_at = time.monotonic() + self.rng.uniform(*self.pause)

    def run(self, until=None, timeout=300):
        """Makes all faults, then waits until no task is left. until: called at every step."""
        spend = self.t.patience(timeout, "all faults are made")
        while not self.done():
            spend()
            self.step()
            if until:
                until()
            self.t.sleep(0.01)
        self.t.wait_finished(timeout)

    def verify(self):
        """Fails if fewer faults happened than requested: such a run proves nothing."""
        for kind, n in self.wants.items():
            kinds = ("freeze", "stall") if kind == "freeze" else (kind,)
            made = len(self.t.faults.of(*kinds))
            self.t.expect(made >= n, f"only {made} of {n} faults of kind {kind} were made")

    # ---- one fault

    def _victim(self):
        frozen = {pid for _, entry in self.thaws for pid in entry["pids"]}
        able = [d for d in self.t.dqds if d.keep and d.alive() and d.runner() and not frozen & {d.pid, d.runner()}]
        return self.rng.choice(able) if able else None

    def _make(self, kind):
        if kind == "kill-database":
            return self._kill_database()
        victim = self._victim()
        if not victim:
            return False
        who = self.rng.choice(("poller", "runner", "both"))
        runner = victim.runner()
        if not runner:
            return False
        if kind == "kill":
            self.t.faults.add("kill", who=who, dqd=victim.pid, runners=[runner])
            victim.send(who, signal.SIGKILL)
            return True
        pids = victim.pids(who)
        # Only a stopped runner cannot kill its handlers in time.
        entry = self.t.faults.add("stall" if who == "poller" else "freeze", who=who, pids=pids, runners=[runner])
        victim.send(who, signal.SIGSTOP)
        self.thaws.append((time.monotonic() + self.rng.uniform(*self.freeze_s), entry))
        return True

    def _thaw(self, entry):
        for pid in entry["pids"]:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:  # it was killed because it did not answer
                pass
        entry["until"] = time.monotonic()

    def _kill_database(self):
        entry = self.t.faults.add("kill-database")
        self.t.server.kill()
        self.t.sleep(self.rng.uniform(0, 0.5))
        self.t.server.start()
        entry["until"] = time.monotonic()
        return True
