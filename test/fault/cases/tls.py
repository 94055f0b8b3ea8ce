"""Who is talked to (scenario 28)."""
import os
import socket
import ssl
import subprocess
import threading

from cases import case
from harness import mysql
from harness.server import Server

CLIENT_SSL = 0x800


def _openssl(directory, *words):
    subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)


def _authority(directory, name):
    _openssl(directory, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key",
             "-out", f"{name}.pem", "-addext", "basicConstraints=critical,CA:TRUE")


def _certificate(directory, name, authority, host="IP:127.0.0.1", end="21000101000000Z"):
    """name.pem and name.key: a server's certificate for that host, valid until then."""
    with open(f"{directory}/{name}.cnf", "w", encoding="ascii") as f:
        f.write(f"[ca]\ndefault_ca = a\n[a]\ndatabase = {name}.index\nnew_certs_dir = .\nrand_serial = yes\ndefault_md = sha256\n"
                "policy = p\nx509_extensions = e\n[p]\ncommonName = supplied\n[e]\nbasicConstraints = CA:FALSE\n"
                f"subjectAltName = {host}\n")
    open(f"{directory}/{name}.index", "w", encoding="ascii").close()  # pylint: disable=consider-using-with
    _openssl(directory, "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=server", "-keyout", f"{name}.key", "-out", f"{name}.csr")
    _openssl(directory, "ca", "-batch", "-notext", "-config", f"{name}.cnf", "-cert", f"{authority}.pem", "-keyfile", f"{authority}.key",
             "-startdate", "20000101000000Z", "-enddate", end, "-in", f"{name}.csr", "-out", f"{name}.pem")


class _Impostor:
    """Takes one connection as a server of MySQL would, with that certificate (None: offers no TLS), keeps what it is sent in the clear
    and under TLS, and denies access."""

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
        return (b"\x0a5.5.5-10.11.0-MariaDB\0" + b"\1\0\0\0" + b"12345678\0" + (flags & 0xffff).to_bytes(2, "little") + b"\x2d\2\0"
                + (flags >> 16).to_bytes(2, "little") + b"\x15" + bytes(10) + b"123456789012\0mysql_native_password\0")

    def _serve(self):
        client, _ = self.listener.accept()
        client.settimeout(20)
        try:
            client.sendall(mysql.packet(0, self._greeting()))
            first = client.recv(36)
            if self.context and first[:4] == b"\x20\0\0\1":  # a request for TLS: no name, no password
                client = self.context.wrap_socket(client, server_side=True)
                self.secret = client.recv(4096)
            else:
                self.clear = first + (client.recv(4096) if first else b"")
            client.sendall(mysql.error_packet(3 if self.secret else 2, 1045, "denied by the impostor"))
        except (OSError, ssl.SSLError):
            pass
        finally:
            client.close()
            self.listener.close()


@case("tls", 28, 15)
def tls(t):
    """A server with a certificate of another authority, for another host, or expired, or without TLS: refused where the settings ask
    for it, and nothing is sent."""
    os.mkdir(t.dir + "/tls")
    directory = t.dir + "/tls"
    for name in ("authority", "other"):
        _authority(directory, name)
    _certificate(directory, "good", "authority")
    _certificate(directory, "wrong-authority", "other")
    _certificate(directory, "wrong-host", "authority", host="IP:127.0.0.2,DNS:db.example")
    _certificate(directory, "expired", "authority", end="20200101000000Z")
    with open(t.dir + "/password", "w", encoding="ascii") as f:
        f.write("s3cret\n")
    os.chmod(t.dir + "/password", 0o600)

    def configure(port, mode, user="dqtls"):
        verify = {"tls_ca": directory + "/authority.pem"} if mode.startswith("verify") else {}
        return t.configure({"socket": None, "host": f"127.0.0.1:{port}", "user": user, "password_file": t.dir + "/password",
                            "tls": mode, **verify}, path=t.dir + "/tls.ini")

    def attempt(certificate, mode):
        impostor = _Impostor(directory, certificate)
        done = t.dq("list", ini=configure(impostor.port, mode), status=None)
        impostor.thread.join(30)
        t.faults.add("impostor", certificate=certificate, mode=mode)
        return done, impostor

    for certificate, modes in (("wrong-authority", ("verify-ca", "verify-identity")), ("expired", ("verify-ca", "verify-identity")),
                               ("wrong-host", ("verify-identity",)), (None, ("required", "verify-ca", "verify-identity"))):
        for mode in modes:
            done, impostor = attempt(certificate, mode)
            what = f"{certificate or 'no TLS'}, {mode}"
            t.expect(done.returncode == 78, f"{what}: status {done.returncode}: {done.stderr}")
            t.expect(b"s3cret" not in done.stderr, f"{what}: the password is shown")
            t.expect(not impostor.clear and not impostor.secret, f"{what}: was sent {impostor.clear or impostor.secret}")
    for certificate, mode in (("good", "verify-identity"), ("wrong-host", "verify-ca"), ("expired", "required")):
        done, impostor = attempt(certificate, mode)
        t.expect(done.returncode == 77, f"{certificate}, {mode}: status {done.returncode}: {done.stderr}")
        t.expect(b"dqtls" in impostor.secret and not impostor.clear, f"{certificate}, {mode}: no log-in under TLS")

    for name in ("good.key", "good.pem", "authority.pem"):
        os.chmod(f"{directory}/{name}", 0o644)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Server(t.server.top, t.dir + "/server", t.environment,
                    f"--skip-networking=0 --bind-address=127.0.0.1 --port={port} --ssl-ca={directory}/authority.pem"
                    f" --ssl-cert={directory}/good.pem --ssl-key={directory}/good.key")
    try:
        root = server.client("mysql")
        root.query("CREATE USER dqtls@'127.0.0.1' IDENTIFIED BY 's3cret' REQUIRE SSL")
        root.query(f"GRANT ALL ON {t.database}.* TO dqtls@'127.0.0.1'")
        for mode in ("required", "verify-ca", "verify-identity"):
            t.dq("init", ini=configure(port, mode))
            t.dq("add", "t", ini=configure(port, mode))
        t.run("dqd", "--config", configure(port, "verify-identity"))
        t.expect(root.query(f"SELECT COUNT(*) FROM {t.database}.dq_task WHERE status = 1") == [("3",)], "dqd does not work under TLS")
        t.dq("list", ini=configure(port, "disabled"), status=(77, 78))
        begun = root.query("SHOW GLOBAL STATUS LIKE 'Ssl_accepts'")
        t.dq("list", ini=t.configure({"socket": server.socket, "tls": "preferred"}, path=t.dir + "/local.ini"))
        t.expect(root.query("SHOW GLOBAL STATUS LIKE 'Ssl_accepts'") == begun, "TLS over a local socket, where nobody asks for it")
    finally:
        server.destroy()
