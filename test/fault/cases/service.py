"""Tags that must not delay others, configuration that must not be trusted, and accounts."""
import os
import re

from cases import case
from harness import mysql
from harness.mysql import numbers
from harness.oracle import DONE, Oracle


def _lateness(t, tag="t"):
    """p90 and maximum of start lateness in ms."""
    rows = t.sql(
        f"SELECT TIMESTAMPDIFF(MICROSECOND, expected_time, execution_time) DIV 1000 FROM dq_task WHERE tag = '{tag}'"
        f" AND status = {DONE}"
    )
    late = sorted(int(r[0]) for r in rows)
    return late[int(len(late) * 0.9) - 1], late[-1]


@case("other-tags", 25)
def other_tags(t):
    """A tag with very many due tasks is paused, at its limit, or without a handler. Other tags start as
    promptly as without it."""
    n = 1_000_000 if t.full else 10_000
    t.configure(slots=8)
    t.handlers(
        {
            "t": "",
            "paused": "",
            "full": {"words": "ms=3600000", "max_running": 2},
            "limited": {"words": "ms=3600000", "global_max_running": 2},
        },
        timeout="2h",
    )
    t.dqd()
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_poller") == 1, "dqd is there")
    neighbour = t.neighbour()

    def measure():
        t.sql("DELETE FROM dq_task WHERE tag = 't'")
        for _ in range(5):
            t.add_lines([t.line(in_ms=200 + 20 * i) for i in range(20)])
            t.sleep(0.7)
        t.wait(lambda: t.count("tag = 't' AND status <> 1") == 0, "the tag is done")
        return _lateness(t)

    alone = measure()
    t.dq("pause", "paused")
    for tag in ("paused", "full", "limited", "unhandled"):
        t.sql(
            "INSERT INTO dq_task (tag, message_body, body_size, expected_time, create_time) SELECT "
            f"'{tag}', '', 0, UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, UTC_TIMESTAMP(3) FROM {numbers(n)}"
        )
    t.wait(
        lambda: t.count("tag = 'full' AND status = 3") >= 2 and t.count("tag = 'limited' AND status = 3") == 2,
        "limits are reached",
    )
    neighbour.allows_ms(1, 0)
    beside = measure()
    t.note(f"start lateness p90, most: alone {alone} ms, beside 4 tags with {n} due tasks each {beside} ms")
    t.expect(t.count("tag = 'limited' AND status = 3") <= 2, "the limit was broken")
    t.expect(
        t.count("tag IN ('paused', 'unhandled') AND status <> 0") == 0,
        "a task of a paused or unhandled tag was started",
    )
    most = alone[0] + 250 * t.slowness() + neighbour.allows_ms(0.9, 250)
    t.in_time(beside[0] <= most, f"other tags started {beside[0]} ms late, {alone[0]} ms without")
    if t.full:
        t.sql("DELETE FROM dq_task WHERE status = 0")


@case("untrusted-files", 10)
def untrusted_files(t):
    """Configuration that others can write or own is refused, through whatever link it is reached."""

    def refused(path, what, status=78):
        for program in (["dq", "list"], ["dqd", "--check-config"]):
            done = t.run(program[0], "--config", path, *program[1:])
            t.expect(
                done.returncode == status and done.stderr,
                f"{what}: {program[0]} exited with {done.returncode}: {done.stderr}",
            )

    for mode in (0o602, 0o620, 0o666):
        path = t.configure(path=t.dir + "/open.ini")
        os.chmod(path, mode)
        refused(path, f"mode {mode:o}")
    foreign = t.configure(path=t.dir + "/foreign.ini")
    link = t.dir + "/link.ini"
    if os.geteuid() == 0:
        os.chown(foreign, 65534, -1)
        refused(foreign, "foreign owner")
        os.symlink(foreign, link)
        refused(link, "a link to a foreign file")
    os.mkfifo(t.dir + "/fifo.ini", 0o600)
    refused(t.dir + "/fifo.ini", "a fifo")
    refused(t.dir, "a directory")
    os.chmod(t.handlers_file, 0o666)
    done = t.run("dqd", "--config", t.ini, "--check-config")
    t.expect(done.returncode == 78, f"a handlers file that others can write: {done.returncode}")
    os.chmod(t.handlers_file, 0o644)


@case("secrets", 8)
def secrets(t):
    """The password appears in no command line, no environment of a handler, no log and no message. A password
    file that others can read is refused."""
    secret = "s3cret-" + str(t.rng.randrange(1 << 40))
    t.sql("DROP USER IF EXISTS dqsecret@localhost")
    t.sql(f"CREATE USER dqsecret@localhost IDENTIFIED BY '{secret}'")
    t.sql(f"GRANT ALL ON {t.database}.* TO dqsecret@localhost")
    path = t.dir + "/password"
    with open(path, "w", encoding="ascii") as f:
        f.write(secret + "\n")
    os.chmod(path, 0o600)
    t.configure({"user": "dqsecret", "password_file": path}, log_level="debug")
    script = "env; cat /proc/$PPID/cmdline /proc/$PPID/environ; ls -l /proc/self/fd"
    t.handlers({"t": {"run": f"'{script}; until test -e {t.dir}/seen; do sleep 0.05; done'"}})
    d = t.dqd()
    t.dq("add", "t", "x")
    t.wait(lambda: d.handlers(), "the handler runs")
    seen = b""
    for pid in (d.pid, d.runner(), *d.handlers()):
        for name in ("cmdline", "environ"):
            with open(f"/proc/{pid}/{name}", "rb") as f:
                seen += f.read()
    # The runner was forked before the password was read, so its memory does not contain it either.
    t.expect(not _in_memory(d.runner(), secret), "the password is in the runner's memory")
    open(t.dir + "/seen", "w", encoding="ascii").close()  # pylint: disable=consider-using-with
    t.wait_finished()
    output = t.sql("SELECT output FROM dq_task", raw=True)[0][0]
    t.sql(f"ALTER USER dqsecret@localhost IDENTIFIED BY 'other'")
    wrong = t.dq("list", status=(77,))
    for where, text in (
        ("a command line or environment", seen),
        ("the handler's output", output),
        ("the log", d.log().encode()),
        ("a message", wrong.stderr),
    ):
        t.expect(secret.encode() not in text, f"the password is in {where}")
    os.chmod(path, 0o644)
    done = t.dq("list", status=(78,))
    t.expect(b"password" in done.stderr, "refused without giving a reason")
    t.sql("DROP USER dqsecret@localhost")


def _in_memory(pid, text):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            span, rights = line.split()[:2]
            if "w" not in rights or "[vv" in line:
                continue
            low, high = (int(x, 16) for x in span.split("-"))
            try:
                memory.seek(low)
                if text.encode() in memory.read(high - low):
                    return True
            except (OSError, ValueError, OverflowError):
                pass
    return False


ACCOUNTS = ("owner", "worker", "producer", "application", "inserter", "operator", "monitor")
DENIED = (1044, 1142, 1143)  # on a database, a table, a column
MAY_NOT = {
    "producer": (
        "UPDATE dq_task SET status = 3",
        "SELECT message_body FROM dq_task",
        "SELECT * FROM dq_attempt",
        "DELETE FROM dq_task",
        "INSERT INTO dq_task (tag, status) VALUES ('t', 1)",
        "INSERT INTO dq_poller (host) VALUES ('h')",
        "DROP TABLE dq_task",
    ),
    "worker": (
        "CREATE TABLE dq_other (a INT)",
        "ALTER TABLE dq_task ADD a INT",
        "DROP TABLE dq_task",
        "TRUNCATE dq_task",
        "CREATE INDEX a ON dq_task (tag)",
        "INSERT INTO dq_task (tag, status) VALUES ('t', 1)",
        "UPDATE dq_meta SET value = 0",
    ),
    "owner": ("DROP TABLE dq_task", "DROP TABLE dq_attempt"),
    "application": ("SELECT id FROM dq_task", "INSERT INTO dq_task (tag) VALUES ('t')", "SELECT name FROM dq_meta"),
    "inserter": (
        "SELECT id FROM dq_task",
        "UPDATE dq_task SET live = live",
        "SELECT message_body FROM dq_task",
        "DELETE FROM dq_task",
        "DROP TABLE dq_task",
    ),
    "operator": (
        "DROP TABLE dq_task",
        "ALTER TABLE dq_task ADD a INT",
        "UPDATE dq_meta SET value = 0",
        "DELETE FROM dq_poller",
        "UPDATE dq_event SET tasks = 0",
        "DELETE FROM dq_event",
    ),
    "monitor": (
        "SELECT message_body FROM dq_task",
        "SELECT output FROM dq_task",
        "SELECT output FROM dq_attempt",
        "UPDATE dq_task SET live = live",
        "UPDATE dq_limit SET paused_until = NULL",
    ),
}


@case("grants", 8)
def grants(t):
    """The accounts of sql/grants.sql.example can add and run tasks. A producer can neither claim nor read, a
    worker cannot change the schema."""
    with open(t.server.top + "/sql/grants.sql.example", encoding="utf-8") as f:
        text = re.sub(r"^--.*$| IDENTIFIED BY '[^']*'", "", f.read(), flags=re.M)
    text = re.sub(r" ON (PROCEDURE )?dq\.", rf" ON \1{t.database}.", text.replace("'%'", "'localhost'"))
    for statement in text.split(";\n"):
        if statement.strip():
            t.sql(statement)
    inis = {account: t.configure({"user": "dq_" + account}, path=f"{t.dir}/{account}.ini") for account in ACCOUNTS}
    t.add_lines([t.line(key=False) for _ in range(20)], ini=inis["producer"])
    for account, statements in MAY_NOT.items():
        client = mysql.Client(t.server.socket, user="dq_" + account, database=t.database)
        for statement in statements:
            try:
                client.query(statement)
            except mysql.Error as e:
                t.expect(e.number in DENIED, f"{account}: {statement}: {e}")
            else:
                t.expect(False, f"{account} is allowed to run: {statement}")
        client.close()
    for verb in (("show", "1"), ("cancel", "1", "-y")):
        t.dq(*verb, ini=inis["producer"], status=(77,))
    done = t.run("dqd", "--once", "--config", inis["producer"])
    t.expect(
        done.returncode == 77 and t.count("status = 0") == 20, f"dqd as producer: {done.returncode} {done.stderr}"
    )
    t.handlers({"t": "", "fails": {"run": "exit 65", "on_failed": "t"}})
    t.add_lines([t.line("fails", key=False)], ini=inis["producer"])
    t.dqd(ini=inis["worker"])
    t.wait_finished()
    Oracle(t).check()
    t.expect(t.count("task_key LIKE 'failed-%' AND status = 1") == 1, "no task of on_failed was done")
    for account in ACCOUNTS:
        t.sql(f"DROP USER dq_{account}@localhost")
