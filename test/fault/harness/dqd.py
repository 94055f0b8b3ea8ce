"""dqd processes: started, killed or frozen, and restarted as systemd would."""
import ctypes
import os
import signal
import subprocess
import time

_prctl = ctypes.CDLL(None).prctl
RESTART_S = 0.1


def _die_with_us():
    _prctl(1, signal.SIGKILL)


def children_of(pid):
    """The children of all its threads: a handler is a child of the thread that started it."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as f:
                found += [int(word) for word in f.read().split()]
    except OSError:
        pass
    return found


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return ""


class Dqd:
    """One instance. `keep`: it is restarted when it has exited. `stderr`: a descriptor, instead of the log. Start it
    from the main thread only: the kernel kills it when the thread that started it ends."""

    def __init__(
        self, program, arguments, log_path, keep=True, environment=None, stderr=None
    ):  # pylint: disable=too-many-arguments
        self.arguments = [program, *arguments]
        self.log_path, self.keep, self.stderr = log_path, keep, stderr
        self.environment = {**os.environ, **(environment or {})}
        self.starts, self.ended_at, self.process = 0, 0.0, None
        self._read = 0  # bytes of the log
        self.runners = set()  # every runner it was seen to have
        self.start()

    def start(self):
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                self.arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log if self.stderr is None else self.stderr,
                env=self.environment,
                preexec_fn=_die_with_us,
            )  # pylint: disable=subprocess-popen-preexec-fn
        self.starts += 1
        self.ended_at = 0.0

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process.poll() is None

    def runner(self):
        """The runner's pid, or None."""
        for pid in children_of(self.pid):
            if name_of(pid) == "dqd-runner":
                self.runners.add(pid)
                return pid
        return None

    def handlers(self):
        """Pids of its running handlers."""
        runner = self.runner()
        return children_of(runner) if runner else []

    def watch(self):
        """Restarts it if that is due."""
        self.runner()
        if self.alive() or not self.keep:
            return
        if not self.ended_at:
            self.ended_at = time.monotonic()
        elif time.monotonic() - self.ended_at > RESTART_S:
            self.start()

    def pids(self, who):
        runner = self.runner()
        pids = {"poller": [self.pid], "runner": [runner], "both": [self.pid, runner]}[who]
        return [pid for pid in pids if pid]

    def send(self, who, number):
        """Sends a signal to "poller", "runner" or "both". Returns the pids that got it."""
        pids = self.pids(who) if self.alive() else []
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        return pids

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def news(self):
        """The whole lines that were logged since the last call."""
        with open(self.log_path, "rb") as f:
            f.seek(self._read)
            lines, newline, _ = f.read().rpartition(b"\n")
        self._read += len(lines + newline)
        return lines

    def log_of(self, pid, task):
        """The lines of its log about a task and, if that is its process id, those of warnings and errors."""
        own = str(self.pid) == pid
        return [
            line
            for line in self.log().splitlines()
            if task in line or (own and line.split()[1:2] in (["warn"], ["error"]))
        ]

    def stop(self, number=signal.SIGTERM, timeout=120.0):
        """Stops it and returns its exit status; None if it had to be killed."""
        self.keep = False
        self.send("both", signal.SIGCONT)
        if self.alive():
            self.process.send_signal(number)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.send("both", signal.SIGKILL)
            self.process.wait()
            return None
