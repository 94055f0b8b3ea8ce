"""A proxy between dq and the server that acts at chosen statements: cuts, delays, freezes, injects errors.

It speaks the classic protocol and understands COM_QUERY. It can speak TLS to the client, as a server that offers
it, and breaks such a connection off without a closing alert, half of the time with a reset. To the server it speaks
in the clear. Rules are tried in order; the first that takes a statement acts.
"""
import ctypes
import os
import re
import select
import socket
import ssl
import struct
import threading
import time

from harness import mysql

# Patterns of the store's statements, by purpose.
STATEMENTS = {
    "add": r"^INSERT INTO dq_task ",
    "claim": r"^UPDATE dq_task FORCE INDEX \(PRIMARY\) SET status = 3\b",
    "renew": r"^UPDATE dq_task FORCE INDEX \(PRIMARY\) SET lease_until = ",
    "settle": r"^UPDATE dq_task FORCE INDEX \(PRIMARY\) SET status = (?:[12]|IF.priority [^=]*),.* execution_time = ",
    "cancel": r"^UPDATE dq_task FORCE INDEX \(PRIMARY\) SET status = 4\b",
    "take-back": r"^UPDATE dq_task FORCE INDEX \(PRIMARY\) SET .*the lease ended",
    "commit": r"^COMMIT",
    "any": r"\bdq_(task|attempt|poller|tag)\b|^COMMIT|^START TRANSACTION",
}


CLIENT_SSL, CLIENT_DEPRECATE_EOF, CLIENT_QUERY_ATTRIBUTES = 1 << 11, 1 << 24, 1 << 27
NOT_OFFERED = CLIENT_SSL | CLIENT_DEPRECATE_EOF | CLIENT_QUERY_ATTRIBUTES


class Rule:
    """action: cut-before, cut-after, cut-late (reaches the server `seconds` after the client lost its connection),
    delay (of the statement), hold (of its answer), vanish (the client gets no answer, the server no more statements,
    and neither notices), vanish-before (the same, and the statement is not sent), stop-before, stop-after (the client
    gets no answer, and the connection is closed once the client has gone; the statement is not sent, or has been
    executed), error (`number`, and the statement is not sent), error-after (the same, and it has been executed), lie
    (the statement is sent, and its result replaced as `lie` says). chance: of acting on each statement; most: how often
    to act; skip: how many statements to let pass first; seconds: None stands for until go is set."""

    def __init__(self, statement, action, chance=1.0, most=None, skip=0, number=0, seconds=0.0, lie=None):
        self.statement, self.pattern = statement, re.compile(STATEMENTS.get(statement, statement).encode(), re.S)
        self.action, self.chance, self.most, self.skip = action, chance, most, skip
        self.number, self.seconds, self.lie = number, seconds, lie
        self.refuse = 0  # cut-after: the error number that every later connection gets
        self.hits, self.stopped, self.go = 0, threading.Event(), threading.Event()

    def takes(self, sql, rng):
        if (self.most is not None and self.hits >= self.most) or not self.pattern.search(sql):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if rng.random() >= self.chance:
            return False
        self.hits += 1
        return True


class Proxy:
    """Listens on a unix socket (path) or a TCP port of the loopback (port). certificates: a directory of
    authority.pem, server.pem and server.key: offers TLS."""

    def __init__(self, server, log, rng, path=None, port=None, certificates=None):
        self.server, self.log, self.rng, self.path, self.port = server, log, rng, path, port
        self.certificates, self.tls = certificates, None
        if certificates:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificates + "/server.pem", certificates + "/server.key")
        self.rules, self.refuse = [], 0  # refuse: the error number that every new connection gets
        self.version = None  # of the server, as new connections see it
        self.late = 0  # seconds until a new connection gets the server's greeting
        self.seen = []  # the beginnings of statements, if `record` is on
        self.record = False
        self.left_open = []  # statements sent after an injected 1205 instead of ROLLBACK
        self._lock = threading.Lock()
        self._sessions = set()
        self._gate = threading.Event()
        self._gate.set()
        self._closed = threading.Event()
        self._listener = None
        self.open()

    def settings(self):
        """The keys of [mysql] with which dq connects here."""
        if self.path:
            return {"socket": self.path}
        tls = {"tls": "verify-identity", "tls_ca": self.certificates + "/authority.pem"} if self.tls else {}
        return {"socket": None, "host": f"127.0.0.1:{self.port}", **tls}

    # ---- switches

    def open(self):
        """Listens again after close()."""
        if self.path:
            if os.path.exists(self.path):
                os.unlink(self.path)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(self.path)
            os.chmod(self.path, 0o777)
        else:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self.port or 0))
            self.port = listener.getsockname()[1]
        listener.listen(64)
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def close(self):
        """Refuses connections and cuts all there are."""
        listener, self._listener = self._listener, None
        if listener:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self._gate.set()
        self._closed.set()
        self.cut()

    def cut(self):
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            _shut(session.client, session.upstream)

    def freeze(self):
        """Nothing passes in either direction, and neither side notices."""
        self._gate.clear()

    def swallow(self):
        """What clients send through the connections that exist now is not even acknowledged, as by a firewall that
        has forgotten them. New ones are made."""
        drop_all = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # a filter that returns 0
        program = struct.pack("HL", 1, ctypes.addressof(drop_all))
        with self._lock:
            for session in self._sessions:
                session.client.setsockopt(socket.SOL_SOCKET, 26, program)  # SO_ATTACH_FILTER

    def thaw(self):
        self._gate.set()

    def connections(self):
        with self._lock:
            return len(self._sessions)

    # ---- connections

    def _accept(self, listener):
        while self._listener is listener:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        upstream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        session = _Session(self, client, upstream)
        try:
            if self.refuse:
                client.sendall(mysql.error_packet(0, self.refuse, "refused by the proxy"))
                return
            time.sleep(self.late)
            upstream.connect(self.server)
            with self._lock:
                self._sessions.add(session)
            session.run()
        except OSError:
            pass
        finally:
            with self._lock:
                self._sessions.discard(session)
                reset = self.tls and self.rng.random() < 0.5
            if reset and session.client.fileno() >= 0:  # it is -1 if the client left during the handshake
                session.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            session.client.close()
            upstream.close()

    def wait_gate(self):
        self._gate.wait()

    def wait_closed(self):
        self._closed.wait()

    def choose(self, sql):
        if self.record:
            self.seen.append(sql)
        with self._lock:
            for rule in self.rules:
                if rule.takes(sql, self.rng):
                    return rule
        return None


class _Session:
    """One client's connection."""

    def __init__(self, proxy, client, upstream):
        self.proxy, self.client, self.upstream = proxy, client, upstream
        self.from_client = bytearray()
        self.continued = False
        self.owes_rollback = False

    def run(self):
        if not self._log_in():
            return
        poll = select.poll()
        poll.register(self.client, select.POLLIN)
        poll.register(self.upstream, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                source = self.client if fd == self.client.fileno() else self.upstream
                data = source.recv(1 << 16)
                self.proxy.wait_gate()
                if not data:
                    return
                if source is self.upstream:
                    self.client.sendall(data)
                elif self._from_client(data):
                    return

    # ---- the login, packet by packet: the proxy answers the request for TLS itself, so sequence numbers differ by one

    def _log_in(self):
        """True: commands follow."""
        _, greeting = self._packet(self.upstream)
        if greeting[:1] != b"\x0a":  # a refusal
            self.client.sendall(mysql.packet(0, greeting))
            return False
        self.client.sendall(mysql.packet(0, self._offer(bytearray(greeting))))
        shift = 0
        while True:
            sequence, payload = self._packet(self.client)
            if not shift and len(payload) == 32 and self.proxy.tls:
                self.client, shift = self.proxy.tls.wrap_socket(self.client, server_side=True), 1
                continue
            if sequence == 1 + shift:
                flags = struct.unpack_from("<I", payload)[0] & ~NOT_OFFERED
                payload = struct.pack("<I", flags) + payload[4:]
            self.upstream.sendall(mysql.packet(sequence - shift, payload))
            while True:
                sequence, payload = self._packet(self.upstream)
                self.client.sendall(mysql.packet(sequence + shift, payload))
                if payload[:1] in (b"\0", b"\xff"):
                    return payload[:1] == b"\0"
                if payload != b"\1\3":  # caching_sha2_password: nothing more follows
                    break

    def _offer(self, greeting):
        """What the client may ask for: TLS if that is ours to give, and nothing that changes how a
        statement or a result looks."""
        low = greeting.index(0, 1) + 14
        flags = int.from_bytes(greeting[low : low + 2] + greeting[low + 5 : low + 7], "little")
        flags = (flags & ~NOT_OFFERED) | (CLIENT_SSL if self.proxy.tls else 0)
        greeting[low : low + 2], greeting[low + 5 : low + 7] = struct.pack("<H", flags & 0xFFFF), struct.pack(
            "<H", flags >> 16
        )
        greeting[low + 14 : low + 18] = bytes(4)  # MariaDB: longer descriptions of columns
        if self.proxy.version:
            greeting[1 : greeting.index(0, 1)] = self.proxy.version
        return bytes(greeting)

    def _packet(self, source):
        head = self._exactly(source, 4)
        return head[3], self._exactly(source, int.from_bytes(head[:3], "little"))

    def _exactly(self, source, size):
        data = b""
        while len(data) < size:
            more = source.recv(size - len(data))
            self.proxy.wait_gate()
            if not more:
                raise OSError("it has gone")
            data += more
        return data

    # ---- statements

    def _from_client(self, data):
        """True: the connection was cut."""
        self.from_client += data
        packets, size = mysql.split_packets(self.from_client)
        raw, at = bytes(self.from_client[:size]), 0
        del self.from_client[:size]
        for _, payload in packets:
            whole = raw[at : at + 4 + len(payload)]
            at += 4 + len(payload)
            query = not self.continued and payload[:1] == bytes([mysql.COM_QUERY])
            self.continued = len(payload) == 0xFFFFFF
            if query and self.owes_rollback and payload[1:] != b"ROLLBACK":
                self.proxy.left_open.append(payload[1:80])
            self.owes_rollback = self.owes_rollback and not query
            rule = self.proxy.choose(payload[1:]) if query else None
            if rule and self._act(rule, payload[1:], whole):
                return True
            if not rule:
                self.upstream.sendall(whole)
        return False

    def _act(self, rule, sql, whole):
        """Applies the rule to the statement. True if the connection is gone."""
        entry = self.proxy.log.add(
            rule.action, statement=rule.statement, number=rule.number, sql=sql[:120].decode(errors="replace")
        )
        try:
            return self._carry_out(entry, rule, sql, whole)
        finally:
            entry["over"] = True

    def _carry_out(self, entry, rule, sql, whole):
        if rule.action == "cut-before":
            return True
        if rule.action == "error":
            if rule.number in (1213, 1020):  # these end the transaction
                self._ask(b"ROLLBACK")
            self.owes_rollback = rule.number == 1205
            self.client.sendall(mysql.error_packet(1, rule.number))
            return rule.number == 1040
        if rule.action.startswith("stop"):
            if rule.action == "stop-after":
                self.upstream.sendall(whole)
                self.upstream.recv(1 << 16)  # it has been executed
            rule.stopped.set()
            select.select([self.client], [], [])
            return True
        if rule.action == "lie":
            self.client.sendall(self._lie(rule.lie, sql))
            return False
        if rule.action == "cut-late":
            _shut(self.client)
            time.sleep(rule.seconds)
        elif rule.action == "delay":
            rule.go.wait(rule.seconds)
        if rule.action != "vanish-before":
            self.upstream.sendall(whole)
        if rule.action.startswith("vanish"):
            self.proxy.wait_closed()
            return True
        if rule.action in ("cut-after", "cut-late"):
            answer = self.upstream.recv(1 << 16)  # it has been executed
            entry["answer"] = answer[4:5].hex()
            self.proxy.refuse = rule.refuse or self.proxy.refuse
            return True
        if rule.action == "error-after":
            self.upstream.recv(1 << 16)
            self.client.sendall(mysql.error_packet(1, rule.number))
        if rule.action == "hold":
            rule.go.wait(rule.seconds)
        entry["until"] = time.monotonic()
        return False

    def _lie(self, lie, sql):
        """What the client gets for the server's answer. lie: "fewer" or "more" columns, "none", or bytes or
        None for each cell."""
        self.upstream.sendall(mysql.packet(0, bytes([mysql.COM_QUERY]) + sql))
        _, head = self._packet(self.upstream)
        if head[:1] in (b"\0", b"\xff"):
            return mysql.packet(1, head)
        ends = 0
        while ends < 2:
            _, payload = self._packet(self.upstream)
            if payload[:1] == b"\xff":  # the row that should be returned
                return mysql.packet(1, payload)
            ends += payload[:1] == b"\xfe" and len(payload) < 9
        if lie == "none":
            return mysql.packet(1, b"\0\0\0\2\0\0\0")
        columns = head[0] + {"fewer": -1, "more": 1}.get(lie, 0)
        if not columns:
            return mysql.packet(1, b"\0\0\0\2\0\0\0")
        return mysql.result_packets(columns, [[b"1" if isinstance(lie, str) else lie] * columns] * 3)

    def _ask(self, sql):
        self.upstream.sendall(mysql.packet(0, bytes([mysql.COM_QUERY]) + sql))
        data = bytearray()
        while not mysql.split_packets(data)[0]:
            more = self.upstream.recv(4096)
            if not more:
                raise OSError("the server is gone")
            data += more


def _shut(*socks):
    for sock in socks:
        try:
            socket.socket.shutdown(sock, socket.SHUT_RDWR)
        except OSError:
            pass
