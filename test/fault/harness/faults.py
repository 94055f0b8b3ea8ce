"""The fault log: what was done to the system, and when, by the steady clock that the handlers' journal also uses."""
import json
import threading
import time


class FaultLog:
    """Appends to a file and to memory; used by several threads."""

    def __init__(self, path):
        self.items = []
        self._file = open(path, "a", buffering=1, encoding="utf-8")  # pylint: disable=consider-using-with
        self._lock = threading.Lock()

    def add(self, kind, **fields):
        """Returns the entry; the caller may set its "until" when the fault is over."""
        entry = {"at": time.monotonic(), "kind": kind, **fields}
        with self._lock:
            self.items.append(entry)
            self._file.write(json.dumps(entry) + "\n")
        return entry

    def count(self, kind=None):
        with self._lock:
            return sum(1 for f in self.items if kind is None or f["kind"].startswith(kind))

    def of(self, *kinds):
        with self._lock:
            return [f for f in self.items if f["kind"] in kinds]
