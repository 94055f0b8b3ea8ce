"""Servers that listen on the loopback, and clusters of three of them: Galera, and MySQL's Group Replication."""
import glob
import os
import random
import socket
import subprocess
import threading
import time

from harness import mysql
from harness.server import Server
from harness.trial import Failed

LOOPBACK = "127.0.0.1"


def find_library(root, library):
    """The path of a library of the root, or None."""
    return next(iter(glob.glob(f"{root}/root/usr/lib/**/{library}", recursive=True)), None)


def free_ports(count):
    """Not in the range from which the kernel picks ports for clients, so that they stay free."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        low = int(f.read().split()[0])
    found = []
    while len(found) < count:
        port = random.randrange(10000, low)
        with socket.socket() as s:
            try:
                s.bind((LOOPBACK, port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


def wait_for(condition, what, seconds=120):
    """Until it is true; a server that does not answer is one more reason to wait."""
    end_at = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except (OSError, mysql.Error):
            pass
        if time.monotonic() > end_at:
            raise Failed(f"still not after {seconds} s: {what}")
        time.sleep(0.1)


class Node(Server):
    """A server that also listens on a TCP port of the loopback."""

    def __init__(self, work, name, port, options=""):
        self.port = port
        super().__init__(
            work.top,
            f"{work.directory}/{name}",
            work.environment,
            f"--skip-networking=0 --bind-address={LOOPBACK} --port={port} {options}",
        )

    def open_account(self):
        root = self.client("mysql")
        root.query(f"CREATE USER IF NOT EXISTS dq@'{LOOPBACK}'")
        root.query(f"GRANT ALL ON `dq%`.* TO dq@'{LOOPBACK}'")
        root.close()

    def ask(self, statement, database=None):
        client = self.client(database)
        try:
            return client.query(statement)
        finally:
            client.close()

    def status(self, name):
        return self.ask(f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1]


def connected(node):
    return int(node.ask("SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'dq'")[0][0])


def can_write(node):
    try:
        node.ask("CREATE DATABASE IF NOT EXISTS dq")
        return True
    except mysql.Error:
        return False


class Galera:
    """Three nodes on the loopback."""

    library = "libgalera_smm.so"

    def __init__(self, work):
        provider, ports = find_library(work.root, self.library), free_ports(12)
        members = ",".join(f"{LOOPBACK}:{port}" for port in ports[3:6])
        self.nodes = []
        try:
            for n in range(3):
                options = (
                    f"--binlog-format=ROW --innodb-autoinc-lock-mode=2 --wsrep-on=ON --wsrep-provider={provider}"
                    f" --wsrep-cluster-address=gcomm://{members} --wsrep-sst-method=rsync --wsrep-node-name=n{n + 1}"
                    f" --wsrep-node-address={LOOPBACK} --wsrep-sst-receive-address={LOOPBACK}:{ports[6 + n]}"
                    f" --wsrep-provider-options=gmcast.listen_addr=tcp://{LOOPBACK}:{ports[3 + n]};"
                    f"ist.recv_addr={LOOPBACK}:{ports[9 + n]};gcache.size=16M"
                )
                self.nodes.append(
                    Node(work, f"g{work.started}n{n + 1}", ports[n], options + ("" if n else " --wsrep-new-cluster"))
                )
                self.nodes[n].options = self.nodes[n].options.replace(" --wsrep-new-cluster", "")
                self.nodes[n].open_account()
            self.wait_whole()
        except BaseException:
            self.destroy()
            raise

    def in_order(self):
        return self.nodes

    def writer_without(self, node):
        """The node that is written when this one has gone."""
        return self.nodes[self.nodes[0] is node]

    def again(self, left):
        """Nodes that were killed begin again, with the one that is left, which has lost its majority."""
        left.ask("SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")

    def back(self, node):
        """A node that was frozen finds its way back."""

    def wait_whole(self):
        wait_for(
            lambda: all(
                node.status("wsrep_cluster_size") == str(len(self.nodes))
                and node.status("wsrep_local_state_comment") == "Synced"
                for node in self.nodes
            ),
            "all nodes are in the cluster",
        )

    def conflicts(self):
        """How many transactions lost against one of another node."""
        return sum(
            int(node.status(name))
            for node in self.nodes
            for name in ("wsrep_local_cert_failures", "wsrep_local_bf_aborts")
        )

    def destroy(self):
        for node in reversed(self.nodes):
            node.destroy()


class Member(Node):
    """A member of a group. It is not started again by dq-sandbox, which would write to it outside of the group, but as
    its servers should be: read-only until it has joined the group."""

    def start(self):
        if not self.pid:
            super().start()
            with open(f"/proc/{self.pid}/cmdline", encoding="utf-8") as f:
                self.command = f.read().split("\0")[:-1]
            owner = os.stat(f"/proc/{self.pid}")
            self.account = {"user": owner.st_uid, "group": owner.st_gid} if os.geteuid() == 0 else {}
            return
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [*self.command, "--super-read-only=ON", "--loose-group-replication-start-on-boot=ON"],
            cwd=os.path.realpath(self.directory + "/db/server"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            **self.account,
        )
        threading.Thread(target=process.wait, daemon=True).start()  # a zombie looks as if it had not ended
        self.pid = process.pid
        wait_for(lambda: self.ask("SELECT 1"), "the server answers")


class Group:
    """Three members on the loopback."""

    library = "group_replication.so"
    # majority-timeout: without it, writes to a member that has lost its majority wait for ever.
    options = (
        "--performance-schema=ON --gtid-mode=ON --enforce-gtid-consistency=ON --log-bin=log"
        " --plugin-load-add=group_replication.so --loose-group-replication-start-on-boot=OFF"
        " --loose-group-replication-group-name=6e9a3c8e-0000-4000-8000-000000000001"
        " --loose-group-replication-recovery-get-public-key=ON --loose-group-replication-message-cache-size=134217728"
        " --loose-group-replication-unreachable-majority-timeout=5"
    )

    def __init__(self, work):
        plugins, ports = os.path.dirname(find_library(work.root, self.library)), free_ports(6)
        seeds = ",".join(f"{LOOPBACK}:{port}" for port in ports[3:])
        self.nodes = []
        try:
            for n in range(3):
                self.nodes.append(
                    Member(
                        work,
                        f"r{work.started}n{n + 1}",
                        ports[n],
                        f"{self.options} --plugin-dir={plugins} --server-id={n + 1} --report-host={LOOPBACK}"
                        f" --loose-group-replication-local-address={LOOPBACK}:{ports[3 + n]}"
                        f" --loose-group-replication-group-seeds={seeds}",
                    )
                )
            for node in self.nodes:
                node.ask("RESET BINARY LOGS AND GTIDS")  # what dq-sandbox has written is of this node alone
                channel = "FOR CHANNEL 'group_replication_recovery'"
                node.ask("CHANGE REPLICATION SOURCE TO SOURCE_USER = 'replica' " + channel)
            self.begin(self.nodes[0])
            self.nodes[0].open_account()
            self.nodes[0].ask(f"CREATE USER replica@'{LOOPBACK}'")
            self.nodes[0].ask(f"GRANT REPLICATION SLAVE ON *.* TO replica@'{LOOPBACK}'")
            for node in self.nodes[1:]:
                node.ask("START GROUP_REPLICATION")
            self.wait_whole()
        except BaseException:
            self.destroy()
            raise

    @staticmethod
    def begin(node):
        """The first member of a new group."""
        node.ask("SET GLOBAL group_replication_bootstrap_group = ON")
        node.ask("START GROUP_REPLICATION")
        node.ask("SET GLOBAL group_replication_bootstrap_group = OFF")

    def in_order(self):
        return sorted(self.nodes, key=lambda node: node.ask("SELECT @@global.read_only") != [("0",)])

    def writer_without(self, node):
        found = []
        others = [other for other in self.nodes if other is not node]
        wait_for(
            lambda: found.extend(n for n in others if n.ask("SELECT @@global.read_only") == [("0",)]) or found,
            "another member is the primary",
        )
        return found[0]

    def again(self, left):
        left.ask("STOP GROUP_REPLICATION")
        self.begin(left)

    def back(self, node):
        node.ask("STOP GROUP_REPLICATION")
        node.ask("START GROUP_REPLICATION")

    def wait_whole(self):
        members = "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_state = 'ONLINE'"
        wait_for(
            lambda: all(node.ask(members) == [(str(len(self.nodes)),)] for node in self.nodes),
            "all members are in the group",
        )

    def destroy(self):
        for node in reversed(self.nodes):
            node.destroy()
