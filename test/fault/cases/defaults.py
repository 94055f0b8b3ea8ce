"""Defaults of servers that people have: dq works with each, or names the setting and the remedy."""
import os
import socket

from cases import case
from cases.settings import TAG, store_and_run
from harness import certificates, mysql
from harness.server import Server

# Variable, value, and if dq cannot work with it the words of the refusal. A server that lacks the variable or the
# value is passed over.
DEFAULTS = [
    ("sql_mode", "'ANSI_QUOTES'", None),
    ("sql_mode", "'NO_BACKSLASH_ESCAPES'", None),
    ("sql_mode", "'ORACLE'", None),
    ("character_set_server", "'utf8mb3'", None),
    ("transaction_isolation", "'SERIALIZABLE'", None),
    ("tx_isolation", "'SERIALIZABLE'", None),
    ("sql_require_primary_key", "1", None),
    ("innodb_force_primary_key", "1", None),
    ("innodb_snapshot_isolation", "1", None),
    ("wait_timeout", "1", None),
    ("max_statement_time", "0.001", None),
    ("max_execution_time", "1", None),
    ("log_bin_trust_function_creators", "0", None),
    ("binlog_format", "'STATEMENT'", (b"binlog_format is STATEMENT", b"set it to ROW or MIXED")),
]


def _server(t, name, *options):
    """A server with TLS on a port of the loopback, for the trial's own statements too."""
    directory = t.dir + "/" + name
    os.mkdir(directory)
    certificates.authority(directory, "authority")
    certificates.certificate(directory, "server", "authority")
    for file in ("server.key", "server.pem", "authority.pem"):
        os.chmod(f"{directory}/{file}", 0o644)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    tls = f"--ssl-ca={directory}/authority.pem --ssl-cert={directory}/server.pem --ssl-key={directory}/server.key"
    server = Server(
        t.server.top,
        f"{t.dir}/{name}-server",
        t.environment,
        f"--skip-networking=0 --bind-address=127.0.0.1 --port={port} {tls} {' '.join(options)}",
    )
    t.move(server)
    return server, {
        "socket": None,
        "host": f"127.0.0.1:{port}",
        "user": "dqtcp",
        "tls_ca": directory + "/authority.pem",
    }


def _tables(t, ini, own):
    """Tables and procedures as dq init makes them now, with an account that has no rights outside the database. own: a
    connection on which the server's settings are as they were."""
    own.query(f"DROP DATABASE IF EXISTS {t.database}")
    said = t.dq("init", ini=ini).stderr
    t.expect(b" created or replaced" in said and b"not " not in said, f"dq init has not created all procedures: {said}")
    t.move(t.server)


def _has(t, name):
    return bool(t.sql(f"SHOW GLOBAL VARIABLES LIKE '{name}'", database="mysql"))


def _refused(t, what, ini, words, programs=("dq add", "dqd")):
    """No program works, and each says why."""
    for program in programs:
        if program == "dqd":
            done = t.run("dqd", "--once", "--config", ini)
        else:
            done = t.dq(*program.split()[1:], TAG, status=None, ini=ini)
        t.expect(done.returncode in (77, 78), f"{what}: {program} ended with {done.returncode}: {done.stderr}")
        for word in words:
            t.expect(word in done.stderr, f"{what}: {program} does not say '{word.decode()}': {done.stderr}")


def _spare_ourselves(t, name, value):
    """The trial's own connection is as it was before."""
    try:
        t.sql(f"SET SESSION {name} = {value}")
    except mysql.Error as e:
        t.expect(e.number in (1228, 1229, 1238), str(e))  # a global variable


def _each_default(t, ini):
    """How many there are on this server."""
    n = 0
    for name, value, words in DEFAULTS:
        if not _has(t, name):
            continue
        what, before = f"{name} = {value}", t.sql(f"SELECT @@global.{name}", database="mysql")[0][0]
        quoted = before if before.replace(".", "").isdigit() else f"'{before}'"
        own = t.server.client("mysql")
        try:
            own.query(f"SET GLOBAL {name} = {value}")
        except mysql.Error as e:
            t.expect(e.number in (1231, 1193, 1238), f"{what}: {e}")
            own.close()
            continue
        try:
            if words:
                _refused(t, what, ini, words)
            else:
                _tables(t, ini, own)
                _spare_ourselves(t, name, quoted)
                store_and_run(t, what, ini)
        finally:
            own.query(f"SET GLOBAL {name} = {quoted}")
            own.close()
        n += 1
    return n


@case("server-defaults", 30)
def server_defaults(t):
    """A server has one of the defaults that people set, or asks for TLS: tables are made, every task runs and ends
    as usual, or the setting is named and what to do about it."""
    t.handlers({TAG: {"run": "'true'"}, "fail": {"run": "exit 64"}})
    server, tcp = _server(t, "tls", "--log-bin=log --server-id=1 --binlog-format=ROW")
    try:
        t.sql("CREATE USER dqtcp@'127.0.0.1', dqtcp@localhost IDENTIFIED BY 's3cret'", database="mysql")
        for host in ("127.0.0.1", "localhost"):
            t.sql(f"ALTER USER dqtcp@'{host}' IDENTIFIED BY 's3cret'", database="mysql")
            t.sql(f"GRANT ALL ON `dq%`.* TO dqtcp@'{host}'", database="mysql")
        with open(t.dir + "/password", "w", encoding="ascii") as f:
            f.write("s3cret\n")
        os.chmod(t.dir + "/password", 0o600)
        tcp["password_file"] = t.dir + "/password"
        local = t.configure({}, path=t.dir + "/local.ini")
        _tables(t, local, t.server.client("mysql"))
        n = _each_default(t, local)
        # With a password of the server's own method, which is caching_sha2_password on MySQL.
        for tls in ("disabled", "required", "verify-identity"):
            store_and_run(t, f"a password, tls = {tls}", t.configure({**tcp, "tls": tls}, path=t.dir + "/tcp.ini"))
        if _has(t, "require_secure_transport"):
            t.sql("SET GLOBAL require_secure_transport = 1", database="mysql")
            words = (b"require_secure_transport", b"tls", b"in [mysql]")
            _refused(
                t, "require_secure_transport", t.configure({**tcp, "tls": "disabled"}, path=t.dir + "/tcp.ini"), words
            )
            store_and_run(
                t, "require_secure_transport", t.configure({**tcp, "tls": "required"}, path=t.dir + "/tcp.ini")
            )
            store_and_run(t, "require_secure_transport, socket", local)
            n += 1
        mariadb = "MariaDB" in t.sql("SELECT VERSION()")[0][0]
    finally:
        server.destroy()
    if mariadb:  # MySQL takes it only when the data directory is made
        server, _ = _server(t, "lower", "--lower-case-table-names=1")
        try:
            ini = t.configure({}, path=t.dir + "/local.ini")
            _tables(t, ini, t.server.client("mysql"))
            store_and_run(t, "lower_case_table_names = 1", ini)
            n += 1
        finally:
            server.destroy()
    t.note(f"{n} defaults")
