"""TLS: the identity of the server, and the secrecy of the password."""
import concurrent.futures
import os
import re
import socket
import ssl
import struct
import subprocess
import threading
import time

from cases import case
from harness import certificates, mysql
from harness.server import Server

CLIENT_SSL = 0x800


class _Impostor:
    """Accepts one connection as a MySQL server would, with this certificate (None: offers no TLS), keeps what it
    receives in the clear and under TLS, and denies access."""

    plugin = b"mysql_native_password"

    def __init__(self, directory, certificate):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.clear, self.secret = b"", b""
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(f"{directory}/{certificate}.pem", f"{directory}/{certificate}.key")
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _greeting(self):
        flags = 0x1 | 0x2 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x80000 | (CLIENT_SSL if self.context else 0)
        return (
            b"\x0a5.5.5-10.11.0-MariaDB\0"
            + b"\1\0\0\0"
            + b"12345678\0"
            + (flags & 0xFFFF).to_bytes(2, "little")
            + b"\x2d\2\0"
            + (flags >> 16).to_bytes(2, "little")
            + b"\x15"
            + bytes(10)
            + b"123456789012\0"
            + self.plugin
            + b"\0"
        )

    def _serve(self):
        client, _ = self.listener.accept()
        client.settimeout(20)
        try:
            client.sendall(mysql.packet(0, self._greeting()))
            client = self._log_in(client)
        except (OSError, ssl.SSLError):
            pass
        finally:
            client.close()
            self.listener.close()

    def _log_in(self, client):
        first = client.recv(36)
        if self.context and first[:4] == b"\x20\0\0\1":  # a request for TLS: no name, no password
            client = self.context.wrap_socket(client, server_side=True)
            self.secret = client.recv(4096)
        else:
            self.clear = first + (client.recv(4096) if first else b"")
        self._deny(client, 3 if self.secret else 2)
        return client

    @staticmethod
    def _deny(client, sequence):
        client.sendall(mysql.error_packet(sequence, 1045, "denied by the impostor"))


class _Listener(_Impostor):
    """Offers no TLS and asks for the password: as caching_sha2_password does for an account it does not remember, or
    in the clear with `ask`."""

    plugin = b"caching_sha2_password"

    def __init__(self, directory, ask):
        self.ask = ask
        with open(directory + "/good.public", "rb") as f:
            self.key = f.read()
        super().__init__(directory, None)

    def _hear(self, client):
        data = client.recv(4096)
        self.clear += data
        return data

    def _log_in(self, client):
        login = self._hear(client)
        if not login:
            return client
        client.sendall(mysql.packet(2, self.ask or b"\1\4"))
        data = self._hear(client)
        if data[4:] == b"\2":  # asks for the public key of the server
            client.sendall(mysql.packet(4, b"\1" + self.key))
            self._hear(client)
        if data:
            self._deny(client, data[3] + 1 if data[4:] != b"\2" else 6)
        return client


class _Quitter(_Impostor):
    """Takes part in a login up to a step, and then ends the connection, resets it, or falls silent until the client
    leaves. Steps with tls offer it."""

    # What the server has sent and received by then.
    steps = ("accepted", "late", "half a greeting", "greeted", "login", "key wanted", "other method", "logged in")
    tls_steps = ("tls asked", "tls hello", "tls half", "tls certificate", "tls made", "tls login", "tls logged in")
    plugin = b"caching_sha2_password"
    patience = 60  # longer than any client waits

    def __init__(self, directory, step, how):
        self.directory, self.step, self.how, self.kept = directory, step, how, False
        super().__init__(directory, "good" if step.startswith("tls") else None)

    def _serve(self):
        client, _ = self.listener.accept()
        client.settimeout(self.patience)
        try:
            client = self._talk(client)
        except (OSError, ssl.SSLError):
            pass
        try:
            if self.how == "reset":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            while self.how == "silence" and client.recv(4096):
                pass
        except TimeoutError:
            self.kept = True
        except (OSError, ssl.SSLError):
            pass
        finally:
            client.close()
            self.listener.close()

    def _talk(self, client):
        greeting = mysql.packet(0, self._greeting())
        if self.step == "accepted":
            return client
        if self.step == "late":
            time.sleep(1.5)  # connect_timeouts
        if self.step == "half a greeting":
            greeting = greeting[:20]  # not yet what it offers
        client.sendall(greeting)
        if self.step in ("late", "half a greeting", "greeted"):
            return client
        if self.context:
            client.recv(36)
            if self.step == "tls asked":
                return client
            if self.step in ("tls hello", "tls half", "tls certificate"):
                self._shake(client)
                return client
            client = self.context.wrap_socket(client, server_side=True)
            if self.step == "tls made":
                return client
        client.recv(4096)
        sequence = 3 if self.context else 2
        if self.step == "key wanted":
            client.sendall(mysql.packet(sequence, b"\1\4"))
            client.recv(4096)
        elif self.step == "other method":
            client.sendall(mysql.packet(sequence, b"\xfecaching_sha2_password\0" + b"1234567890" * 2 + b"\0"))
        elif self.step.endswith("logged in"):
            client.sendall(mysql.packet(sequence, b"\1\3") + mysql.packet(sequence + 1, b"\0\0\0\2\0\0\0"))
        return client

    def _shake(self, client):
        """The beginning of the handshake: nothing, half of what the server says first, or all of it, with the
        certificate, in TLS 1.2, where the client cannot be done without more."""
        heard, said = ssl.MemoryBIO(), ssl.MemoryBIO()
        if self.step == "tls certificate":
            self.context.maximum_version = ssl.TLSVersion.TLSv1_2
        server = self.context.wrap_bio(heard, said, server_side=True)
        heard.write(client.recv(4096))
        try:
            server.do_handshake()
        except ssl.SSLWantReadError:
            pass
        flight = said.read()
        if self.step == "tls hello":
            return
        client.sendall(flight if self.step == "tls certificate" else flight[: len(flight) // 2])
        if self.step == "tls certificate":
            client.recv(4096)


def _certificates(t):
    """The directory of the certificates. The file password beside it contains s3cret."""
    directory = t.dir + "/tls"
    os.mkdir(directory)
    for name in ("authority", "other"):
        certificates.authority(directory, name)
    certificates.certificate(directory, "good", "authority", rsa=True)
    with open(t.dir + "/password", "w", encoding="ascii") as f:
        f.write("s3cret\n")
    os.chmod(t.dir + "/password", 0o600)
    return directory


def _configure(t, host, mode, name="tls", **keys):
    if isinstance(host, int):
        host = f"127.0.0.1:{host}"
    verify = {"tls_ca": t.dir + "/tls/authority.pem"} if mode.startswith("verify") else {}
    return t.configure(
        {
            "socket": None,
            "host": host,
            "user": "dqtls",
            "password_file": t.dir + "/password",
            "tls": mode,
            **verify,
            **keys,
        },
        path=f"{t.dir}/{name}.ini",
    )


def _client(t):
    """Name and version of the client library that dq was built with."""
    return re.search(rb"^client +(.*?) (\d+)\.(\d+)", t.dq("version").stdout, re.M).groups()


def _trusts_loopback(t):
    """MariaDB's library does not check the host's name on loopback addresses since 3.4; before 3.3 it reports the
    version of the server as its own."""
    name, major, minor = _client(t)
    return name.startswith(b"MariaDB") and (3, 4) <= (int(major), int(minor)) < (10, 0)


def _offers_tls(t):
    """Whether the server has a certificate: MariaDB has a variable for that, MySQL shows when it expires."""
    have = t.sql("SHOW VARIABLES LIKE 'have_ssl'") or t.sql("SHOW STATUS LIKE 'Ssl_server_not_after'")
    return have[0][1] not in ("", "NO", "DISABLED")


@case("tls", 15)
def tls(t):
    """A server has a certificate of another authority, for another host, or an expired one, or offers no TLS.
    It is refused if the settings ask for it, and nothing is sent."""
    directory = _certificates(t)
    certificates.certificate(directory, "wrong-authority", "other")
    certificates.certificate(directory, "wrong-host", "authority", host="IP:127.0.0.2,DNS:db.example")
    certificates.certificate(directory, "expired", "authority", end="20200101000000Z")

    def attempt(certificate, mode):
        impostor = _Impostor(directory, certificate)
        done = t.dq("list", ini=_configure(t, impostor.port, mode), status=None)
        impostor.thread.join(30)
        t.faults.add("impostor", certificate=certificate, mode=mode)
        return done, impostor

    for certificate, modes in (
        ("wrong-authority", ("verify-ca", "verify-identity")),
        ("expired", ("verify-ca", "verify-identity")),
        ("wrong-host", ("verify-identity",)),
        (None, ("required", "verify-ca", "verify-identity")),
    ):
        for mode in modes:
            if (certificate, mode) == ("wrong-host", "verify-identity") and _trusts_loopback(t):
                continue
            done, impostor = attempt(certificate, mode)
            what = f"{certificate or 'no TLS'}, {mode}"
            t.expect(done.returncode == 78, f"{what}: status {done.returncode}: {done.stderr}")
            t.expect(b"s3cret" not in done.stderr, f"{what}: the password is shown")
            t.expect((certificate == "expired") == (b"has expired: renew it" in done.stderr), f"{what}: {done.stderr}")
            t.expect(
                not impostor.clear and not impostor.secret, f"{what}: was sent {impostor.clear or impostor.secret}"
            )
    for certificate, mode in (("good", "verify-identity"), ("wrong-host", "verify-ca"), ("expired", "required")):
        done, impostor = attempt(certificate, mode)
        t.expect(done.returncode == 77, f"{certificate}, {mode}: status {done.returncode}: {done.stderr}")
        t.expect(b"dqtls" in impostor.secret and not impostor.clear, f"{certificate}, {mode}: no login under TLS")

    if not _offers_tls(t):
        for mode in ("required", "verify-ca", "verify-identity"):
            t.dq(
                "list",
                ini=t.configure({"tls": mode, "tls_ca": directory + "/authority.pem"}, path=t.dir + "/local.ini"),
            )

    for name in ("good.key", "good.pem", "authority.pem"):
        os.chmod(f"{directory}/{name}", 0o644)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Server(
        t.server.top,
        t.dir + "/server",
        t.environment,
        f"--skip-networking=0 --bind-address=127.0.0.1 --port={port} --ssl-ca={directory}/authority.pem"
        f" --ssl-cert={directory}/good.pem --ssl-key={directory}/good.key",
    )
    try:
        root = server.client("mysql")
        root.query("CREATE USER dqtls@'127.0.0.1' IDENTIFIED BY 's3cret' REQUIRE SSL")
        root.query(f"GRANT ALL ON {t.database}.* TO dqtls@'127.0.0.1'")
        for mode in ("required", "verify-ca", "verify-identity"):
            t.dq("init", ini=_configure(t, port, mode))
            t.dq("add", "t", ini=_configure(t, port, mode))
        t.run("dqd", "--config", _configure(t, port, "verify-identity"))
        t.expect(
            root.query(f"SELECT COUNT(*) FROM {t.database}.dq_task WHERE status = 1") == [("3",)],
            "dqd does not work under TLS",
        )
        t.dq("list", ini=_configure(t, port, "disabled"), status=(77, 78))
        begun = root.query("SHOW GLOBAL STATUS LIKE 'Ssl_accepts'")
        t.dq("list", ini=t.configure({"socket": server.socket, "tls": "preferred"}, path=t.dir + "/local.ini"))
        t.expect(
            root.query("SHOW GLOBAL STATUS LIKE 'Ssl_accepts'") == begun,
            "TLS is used over a local socket although it is not required",
        )
    finally:
        server.destroy()


@case("tls-password", 5)
def tls_password(t):
    """A server that offers no TLS asks for the password. It is never sent in the clear, whatever tls and an
    option file say."""
    directory = _certificates(t)
    subprocess.run(
        ["openssl", "pkey", "-in", "good.key", "-pubout", "-out", "good.public"], cwd=directory, check=True
    )
    options = t.dir + "/options"
    with open(options, "w", encoding="ascii") as f:
        f.write(f"[client]\nssl-ca={directory}/authority.pem\n")
    switch = b"\xfemysql_clear_password\0"
    name, major, _ = _client(t)
    refuses = (
        not name.startswith(b"MariaDB") or int(major) < 10
    )  # before 3.3 it cannot, and reports the version of the server as its own
    for ask, status in ((None, 77), (switch, 78)) if refuses else ((None, 77),):
        for mode, keys in (("preferred", {}), ("disabled", {}), ("disabled", {"defaults_file": options})):
            listener = _Listener(directory, ask)
            done = t.dq("list", ini=_configure(t, listener.port, mode, **keys), status=None)
            listener.thread.join(30)
            t.faults.add("listener", mode=mode)
            what = f"tls = {mode} {keys}, {ask or 'caching_sha2_password'}"
            t.expect(b"dqtls" in listener.clear, f"{what}: no login: {done.stderr}")
            t.expect(b"s3cret" not in listener.clear, f"{what}: the password was sent in the clear: {listener.clear}")
            t.expect(done.returncode == status, f"{what}: status {done.returncode}: {done.stderr}")


@case("login-breaks", 20)
def login_breaks(t):
    """The first host ends the connection, resets it or falls silent at a step of the login, or greets too late.
    The next host is tried, and the exit status is 69, whatever tls is."""
    directory = _certificates(t)

    def attempt(step, how, mode):
        first, second = _Quitter(directory, step, how), _Impostor(directory, "good")
        ini = _configure(
            t,
            f"127.0.0.1:{first.port}, 127.0.0.1:{second.port}",
            mode,
            name=f"{step} {how} {mode}",
            connect_timeout="1s",
            read_timeout="1s",
        )
        done = t.dq("list", ini=ini, status=None)
        t.faults.add("broken login", step=step, how=how, mode=mode)
        what = f"{step}, {how}, tls = {mode}"
        t.expect(b"denied by the impostor" in done.stderr, f"{what}: the second host was not tried: {done.stderr}")
        t.expect(done.returncode == 69, f"{what}: status {done.returncode}: {done.stderr}")
        t.expect(not first.kept, f"{what}: dq waited for longer than {first.patience} s")

    plain = [(step, mode) for step in _Quitter.steps for mode in ("preferred", "disabled")]
    wanted = ("preferred", "required", "verify-identity")
    early = [(step, mode) for step in ("accepted", "late", "half a greeting") for mode in wanted[1:]]
    under = [(step, mode) for step in _Quitter.tls_steps for mode in wanted]
    attempts = [
        (step, how, mode)
        for step, mode in plain + early + under
        for how in ("end", "reset", "silence")
        if step != "late" or how == "end"
    ]
    if not t.full:  # each step in each way, with one of the settings, unless the certificate matters
        t.rng.shuffle(attempts)
        attempts = list({a if a[0] == "tls certificate" else a[:2]: a for a in attempts}.values())
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(attempt, *a) for a in attempts]:
            done.result()
    t.note(f"{len(attempts)} logins")
