"""A plain client beside dqd: how late the same machine and server let it be."""
import subprocess
import threading
import time

from harness import mysql

EVERY_S = 0.1
TIMES = 3  # a start by dqd waits for the server and the processor about as often as this client does three times


class Neighbour(threading.Thread):
    """Every tenth of a second it changes a row of a table of its own, and starts a program. While the disk, the server
    or the processor is busy with others it is late, and dqd may be, too."""

    def __init__(self, t):
        super().__init__(daemon=True)
        self._table = "neighbour_" + str(id(self))
        t.sql(f"CREATE TABLE {self._table} (n bigint NOT NULL) ENGINE=InnoDB")
        t.sql(f"INSERT INTO {self._table} VALUES (0)")
        self._client, self._end, self._late = t.server.client(t.database), threading.Event(), []
        self.start()

    def close(self):
        self._end.set()
        self.join()
        self._client.close()

    def run(self):
        due = time.monotonic() + EVERY_S
        try:
            while not self._end.wait(due - time.monotonic()):
                self._client.query(f"UPDATE {self._table} SET n = n + 1")
                subprocess.run(["/bin/sh", "-c", ":"], check=False)
                self._late.append((time.monotonic() - due) * 1000)
                due = max(due + EVERY_S, time.monotonic())
        except mysql.Error:  # the server has been stopped: the trial says why
            pass

    def allows_ms(self, part, bound):
        """By how much more than this bound so many of the starts by dqd, from the earliest, may have been late since
        this was last asked: by the bound once more, at most, as dqd itself may be what keeps the server busy."""
        late, self._late = sorted(self._late) or [0.0], []
        return min(bound, TIMES * late[min(len(late) - 1, int(len(late) * part))])
