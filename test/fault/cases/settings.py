"""Unusual settings of servers and sessions: exit status 0 is true, or dq names the setting that
prevents it."""
import json

from cases import case
from harness import mysql
from harness.oracle import Oracle
from harness.proxy import Rule

# By effect on a session; each is used as init_connect of the server and as init_command in dq.ini.
SESSIONS = {
    "autocommit off": "SET autocommit = 0",
    "a transaction left open": "START TRANSACTION",
    "chained transactions": "SET completion_type = 1",
    "gbk": "SET NAMES gbk",
    "latin1": "SET NAMES latin1",
    "no backslashes": "SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'",
    "safe updates": "SET sql_safe_updates = 1",
    "small results": "SET sql_select_limit = 1, max_join_size = 1, sql_big_selects = 0",
    "a stopped clock": "SET timestamp = 1000000000",
    "serializable": "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "read only": "SET SESSION TRANSACTION READ ONLY",
    "last id for NULL": "SET sql_auto_is_null = 1",
    "short waits": "SET wait_timeout = 1, net_read_timeout = 1, net_write_timeout = 1, innodb_lock_wait_timeout = 1",
}
# These affect all sessions of a server.
SERVERS = {
    "autocommit off": "SET GLOBAL autocommit = 0",
    "Oracle's mode": "SET GLOBAL sql_mode = 'ORACLE'",
    "no mode": "SET GLOBAL sql_mode = ''",
    "another language": "SET GLOBAL lc_messages = 'de_DE'",
    "small packets": "SET GLOBAL max_allowed_packet = 1048576",
    "no prepared statements": "SET GLOBAL max_prepared_stmt_count = 0",
}
LONG = 60000
BODIES = [b"", b"\xbf'", b"\xbf', '1'); -- ", b"\\", "ünï".encode(), bytes(LONG), b"\xbf'" * (LONG // 2)]
TAG = "größe"
MANY = 500


def _stored(t, task):
    return t.sql(
        f"SELECT message_body FROM dq_task WHERE id = {int(task)} AND HEX(tag) = '{TAG.encode().hex().upper()}'",
        raw=True,
    )


def store_and_run(t, what, ini):
    """Stores tasks in every way and takes them through every state; leaves empty tables."""
    for body in BODIES:
        task = t.dq("add", TAG, "-", body=body, ini=ini).stdout
        t.expect(
            _stored(t, task) == [(body,)],
            f"{what}: dq add said {task}, of {body[:20]} is stored {str(_stored(t, task))[:80]}",
        )
    lines = [
        {"tag": TAG, "body": text, "key": key}
        for text, key in (("'\\\u00e9", "ä"), ("x" * LONG, "b"), ("again", "ä"))
    ]
    said = t.dq("add", "--from", "-", body="".join(json.dumps(line) + "\n" for line in lines).encode(), ini=ini)
    t.expect(b"2 added, 1 kept" in said.stdout, f"{what}: {said.stdout}")
    task = t.dq("add", TAG, "-", "--key", "ä", "--key-conflict", "replace", body=BODIES[2], ini=ini).stdout
    t.expect(_stored(t, task) == [(BODIES[2],)], f"{what}: not replaced")
    t.dq("add", "fail", "-", body=b"", ini=ini)
    # A task of a dqd that no longer exists.
    task = int(t.dq("add", TAG, "-", body=b"", ini=ini).stdout)
    t.sql(
        "UPDATE dq_task SET status = 3, version = 1, attempt = 1, host = 'gone', pid = 1, claim_token ="
        " REPEAT('x', 16),"
        f" lease_until = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND WHERE id = {task}"
    )
    d = t.dqd(ini=ini)
    t.wait(
        lambda: t.count("status = 1") == len(BODIES) + 3 and t.count("status = 2") == 1,
        f"{what}: all tasks have been run",
    )
    t.expect(d.stop() == 0, f"{what}: dqd did not exit with 0")
    attempts = t.sql("SELECT outcome, COUNT(*) FROM dq_attempt GROUP BY outcome ORDER BY outcome")
    t.expect(attempts == [("exit", "1"), ("lease-expired", "1")], f"{what}: {attempts}")
    t.dq("retry", "--status", "failed", "-y", ini=ini)
    t.expect(t.count("status = 0 AND attempt = 0") == 1, f"{what}: nothing was retried")
    t.dq("cancel", "--tag", "fail", "-y", ini=ini)
    listed = json.loads(t.dq("list", "-o", "json", "--status", "all", ini=ini).stdout)
    t.expect(len(listed) == len(BODIES) + 4, f"{what}: dq list shows {len(listed)} tasks")
    # Statements that take long.
    many = b'{"tag": "later", "in": "1h"}\n' * MANY
    said = t.dq("add", "--from", "-", body=many, ini=ini)
    t.expect(f"{MANY} added".encode() in said.stdout, f"{what}: {said.stdout}")
    t.dq("cancel", "--tag", "later", "-y", ini=ini)
    t.dq("delete", "--status", "done,cancelled", "-y", ini=ini)
    t.expect(t.count() == 0 and t.one("SELECT COUNT(*) FROM dq_attempt") == 0, f"{what}: something was not deleted")


def _ways(t):
    """Socket, TCP; or TLS."""
    if t.certificates:
        return [t.way()]
    return [{}, t.proxy(tcp=True).settings()]


@case(
    "server-settings",
    34,
    30,
    options="--loose-skip-character-set-client-handshake --character-set-server=latin1",
    tls="full",
)
def server_settings(t):
    """Servers and sessions have unusual settings, such as a forced latin1. Exit status 0 means stored as
    given, and every task runs, fails, is taken back, retried and deleted as usual."""
    t.handlers({TAG: {"run": "'true'"}, "fail": {"run": "exit 64"}})
    ways = _ways(t)
    n = 0
    for what, statement in SESSIONS.items():
        for place in ("init_command", "init_connect"):
            way = ways[n % len(ways)]
            n += 1
            if place == "init_connect":
                t.sql("SET GLOBAL init_connect = " + json.dumps(statement))
            ini = t.configure({**way, "init_command": statement if place == "init_command" else None})
            try:
                store_and_run(t, f"{what}, {place}", ini)
            finally:
                t.sql("SET GLOBAL init_connect = ''")
    ini = t.configure(ways[-1])
    for what, statement in SERVERS.items():
        name = statement.split()[2]
        before = t.one(f"SELECT @@global.{name}")
        try:
            t.sql(statement)
        except mysql.Error as e:
            t.expect(e.number == 1231, str(e))  # not every server has German messages
            continue
        try:
            store_and_run(t, what, ini)
        finally:
            t.sql(f"SET GLOBAL {name} = {before if isinstance(before, int) else json.dumps(before)}")
        n += 1
    t.note(f"{n} settings")


@case("settings-refused", 8, options="--loose-secure-timestamp=YES")
def settings_refused(t):
    """A server that does not let sessions set the clock works. Any other refused setting, a packet limit that
    is too small, or an offline server is named before anything is done."""
    t.handlers({TAG: {"run": "'true'"}, "fail": {"run": "exit 64"}})
    store_and_run(t, "secure_timestamp", t.ini)
    proxy = t.proxy()
    through = t.configure(proxy.settings(), path=t.dir + "/through.ini")
    proxy.rules = [Rule("^SET (NAMES .*|SESSION )sql_select_limit", "error", number=1227)]
    done = t.dq("add", TAG, "x", status=(78,), ini=through)
    t.expect(b"sql_select_limit" in done.stderr, f"the setting is not named: {done.stderr}")
    done = t.run("dqd", "--once", "--config", through)
    t.expect(done.returncode == 78 and b"sql_select_limit" in done.stderr, f"dqd: {done.returncode} {done.stderr}")
    proxy.rules = []
    t.sql("SET GLOBAL max_allowed_packet = 65536")
    done = t.run("dqd", "--once", "--config", t.ini)
    t.expect(
        done.returncode == 78 and b"max_allowed_packet" in done.stderr,
        f"small packets: {done.returncode} {done.stderr}",
    )
    t.sql("SET GLOBAL max_allowed_packet = 16777216")
    if t.sql("SHOW GLOBAL VARIABLES LIKE 'offline_mode'"):
        t.sql("SET GLOBAL offline_mode = 1")
        done = t.dq("add", TAG, "x", status=(69,))
        t.sql("SET GLOBAL offline_mode = 0")
        t.expect(b"offline" in done.stderr, f"offline: {done.stderr}")
    t.expect(t.count() == 0, "something was stored")


@case("small-packets", 5)
def small_packets(t):
    """Outputs reach output_limit while packets are no larger. Each result is recorded at once, with as much of
    the end of its output as fits, and no connection breaks."""
    with open(t.dir + "/output", "wb") as f:
        f.write(t.rng.randbytes(1 << 20))
    t.handlers({"t": "", "long": {"run": f"'cat {t.dir}/output; exit 1'", "output_limit": "1m", "retry": "[]"}})
    t.configure(lease="30s")
    for limit in (2 << 20, 1 << 20, 512 << 10):
        t.sql(f"SET GLOBAL max_allowed_packet = {limit}")
        try:
            d = t.dqd()
            t.add(20, tag="long", key=False)
            t.add(50)
            t.wait_finished()
            t.expect(d.stop() == 0, "dqd did not exit with 0")
        finally:
            t.sql("SET GLOBAL max_allowed_packet = 16777216")
        t.expect("the database" not in d.log(), f"max_allowed_packet {limit}: a connection broke: {d.log()[-500:]}")
        least = min(1 << 20, limit - 8192)
        lengths = t.sql(
            "SELECT MIN(LENGTH(t.output)), MAX(LENGTH(t.output)), COUNT(*) FROM dq_task t JOIN dq_attempt a ON"
            " a.task_id = t.id"
            " AND a.output = t.output WHERE t.tag = 'long' AND t.status = 2"
        )[0]
        t.expect(
            int(lengths[0]) >= least and int(lengths[1]) <= limit and lengths[2] == "20",
            f"max_allowed_packet {limit}: {lengths}",
        )
        cut = t.count(
            "tag = 'long' AND output LIKE '[dq: truncated from 1048576 bytes to the last %max_allowed_packet%'"
        )
        t.expect(
            cut == (0 if limit > 1 << 20 else 20), f"max_allowed_packet {limit}: {cut} outputs say that they were cut"
        )
        t.dq("delete", "--tag", "long", "--status", "failed", "-y")
    Oracle(t).check()
