"""HAProxy on a unix socket, before several servers of which it leads to one at a time."""
import os
import shutil
import socket
import subprocess
import time

HAPROXY = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")


class HAProxy:
    """servers: the unix socket of each, by name."""

    def __init__(self, directory, **servers):
        self.names, self.socket, self.control = list(servers), directory + "/haproxy", directory + "/haproxy.control"
        lines = ["global", f"  stats socket {self.control} level admin", "  stats timeout 1h", "defaults", "  mode tcp"]
        lines += [f"  timeout {kind} 1h" for kind in ("connect", "client", "server")]
        lines += ["listen db", f"  bind unix@{self.socket} mode 777"]
        lines += [f"  server {name} unix@{path}" for name, path in servers.items()]
        with open(directory + "/haproxy.cfg", "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")
        with open(directory + "/haproxy.log", "wb") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [HAPROXY, "-db", "-f", directory + "/haproxy.cfg"], stdout=log, stderr=log
            )
        while not os.path.exists(self.control) and self.process.poll() is None:
            time.sleep(0.01)

    def _tell(self, command):
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(self.control)
            control.sendall(command.encode() + b"\n")
            return control.recv(1 << 16)

    def lead(self, to):
        """New connections lead to this server; those to others are cut."""
        self._tell(f"set server db/{to} state ready")
        for name in set(self.names) - {to}:
            self._tell(f"set server db/{name} state maint")
            self._tell(f"shutdown sessions server db/{name}")

    def stop(self):
        self.process.kill()
        self.process.wait()
