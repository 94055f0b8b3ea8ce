"""A private MariaDB of bin/dq-sandbox that can be killed, frozen and started again, and that goes when this process
goes."""
import os
import signal
import subprocess
import time

from harness import mysql


class Server:
    """Lives in `directory`, which it creates and which is deleted with it."""

    def __init__(self, top, directory, environment, options=""):
        self.top, self.script = top, os.path.join(top, "bin", "dq-sandbox")
        self.directory, self.environment, self.options = directory, environment, options
        self.pid, self.frozen = None, False
        os.makedirs(directory)
        os.chmod(directory, 0o711)  # the server's account needs to pass
        # However this process ends, the other end of this pipe closes, and then the guard cleans up.
        self.guard = subprocess.Popen(  # pylint: disable=consider-using-with
            [
                "/bin/sh",
                "-c",
                'trap "" INT TERM HUP; cat >/dev/null; "$0" destroy --force "$1/db" 2>/dev/null; rm -rf "$1"',
                self.script,
                directory,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.start()
        self.client("mysql").query("SET GLOBAL max_connections = 400")

    def start(self):
        command = [
            self.script,
            "start",
            "--no-schema",
            "--options",
            "--max-connections=400 " + self.options,
            self.directory + "/db",
        ]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise RuntimeError(f"dq-sandbox start: {done.stderr}")
        with open(self.directory + "/db/server/pid", encoding="ascii") as f:
            self.pid = int(f.read())

    @property
    def socket(self):
        return os.path.realpath(self.directory + "/db/server") + "/mysql.sock"

    def client(self, database=None, timeout=300.0, user="root"):
        return mysql.Client(self.socket, user=user, database=database, timeout=timeout)

    def kill(self):
        """kill -9, and until it is gone. start() brings it back on the same data."""
        os.kill(self.pid, signal.SIGKILL)
        while os.path.exists(f"/proc/{self.pid}/cwd"):
            time.sleep(0.005)

    def freeze(self):
        self.frozen = True
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self):
        os.kill(self.pid, signal.SIGCONT)
        self.frozen = False

    def destroy(self):
        try:
            self.thaw()
        except (OSError, TypeError):
            pass
        self.guard.stdin.close()
        self.guard.wait()
