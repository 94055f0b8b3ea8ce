"""The network between dq and the server: cuts, delays, injected errors, failover, refused connections."""
import re
import subprocess
import threading
import time

from cases import case
from harness.haproxy import HAPROXY, HAProxy
from harness.oracle import CANCELLED, DONE, Oracle
from harness.proxy import Rule
from harness.server import Server
from harness.trial import Failed

CUTS = ("cut-before", "cut-after", "cut-late")


def cut_rules(statement, n, chance=1.0):
    """n cuts at a statement: a third before it is sent, a third after it was executed, a third so that it arrives
    long after the client has continued."""
    return [Rule(statement, action, chance, most=(n + 2 - i) // 3, seconds=0.15) for i, action in enumerate(CUTS)]


class Mixed:  # pylint: disable=too-few-public-methods
    """Rules in random order. `spare`: one in `spare` statements passes, and those in between are treated alike."""

    def __init__(self, rules, spare=0):
        self.rules, self.spare, self.seen, self.row = rules, spare, 0, None

    def takes(self, sql, rng):
        if not any(rule.pattern.search(sql) for rule in self.rules):
            return False
        self.seen += 1
        if self.spare and self.seen % self.spare == 0:
            self.row = None
            return False
        for rule in [self.row] if self.row else rng.sample(self.rules, len(self.rules)):
            if rule.takes(sql, rng):
                self.row = rule if self.spare else None
                self.action, self.number, self.seconds, self.statement, self.refuse = (
                    rule.action,
                    rule.number,
                    rule.seconds,
                    rule.statement,
                    rule.refuse,
                )
                return True
        return False


def _cut_daemon(
    t, statement, wanted, more, spare=0, chance=0.4, pause=0.02, **settings
):  # pylint: disable=too-many-arguments
    """Cuts each dqd's connection at a statement until that has happened often enough; more() adds tasks, looked at once
    in `pause` seconds. No task may be repeated."""
    dqds = 6 if t.full else 2
    rules = cut_rules(statement, wanted, chance)
    for n in range(dqds):
        proxy = t.proxy()
        proxy.rules = [Mixed(rules, spare)]
        t.dqd(ini=t.configure(proxy.settings(), path=f"{t.dir}/dq{n}.ini", **settings))
    spend = t.patience(3600 if t.full else 60, f"{wanted} cuts are made")
    while sum(r.hits for r in rules) < wanted:
        spend()
        if t.count("status IN (0, 3)") < 20 * dqds:
            more()
        t.sleep(pause)
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    t.note(f"{statement}: {', '.join(f'{r.hits} {r.action}' for r in rules)}")
    t.expect(t.faults.count("cut") >= wanted, "fewer cuts than asked")
    oracle.no_repeats()
    t.expect(all(int(r[2]) == DONE for r in oracle.rows.values()), "not every task is done")
    burned = [r for r in oracle.rows.values() if int(r[4]) != 1]
    t.expect(not burned, f"{len(burned)} tasks used up more than one attempt")


@case("cut-claim", 12, tls="short")
def cut_claim(t):
    """The connection is cut at claims. Each task has one owner, no attempt is used up, and no task waits for a
    lease to end."""
    _cut_daemon(t, "claim", t.often(12), lambda: t.add(20, words="ms=5"), lease="10s", claim_batch=5)
    t.expect(t.overdue_ms == 0, "a task was found only when its lease had ended")
    logs = "".join(d.log() for d in t.dqds)
    counts = re.findall(r"recovered tasks of a claim.* tasks=(\d+)", logs)
    t.expect(counts and "0" not in counts, f"the log says that claims had {counts} tasks")


@case("cut-settle", 12, tls="short")
def cut_settle(t):
    """The connection is cut at settlements. Each result is applied once."""
    _cut_daemon(t, "settle", t.often(12), lambda: t.add(20, words="ms=5"), lease="10s", claim_batch=5)


@case("cut-settle-failures", 12, tls="full")
def cut_settle_failures(t):
    """The connection is cut at settlements of failures, which record attempts in a transaction: at the UPDATE
    and at the COMMIT."""
    wanted = t.often(12)
    proxy = t.proxy()
    t.configure(proxy.settings(), lease="10s", claim_batch=5)
    rules = cut_rules("settle", wanted // 2, 0.2) + cut_rules("commit", wanted - wanted // 2, 0.2)
    proxy.rules = [Mixed(rules)]
    for _ in range(6 if t.full else 2):
        t.dqd()
    spend = t.patience(3600 if t.full else 60, f"{wanted} cuts are made")
    while sum(r.hits for r in rules) < wanted:
        spend()
        if t.count("status IN (0, 3)") < 40:
            t.add(20, words="ms=5 fail=2")
        t.sleep(0.02)
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    for task, attempts in oracle.attempts.items():
        t.expect(
            [a.status for a in attempts] == [1, 1, 0],
            f"task {task}: attempts ended with {[a.status for a in attempts]}",
        )
        t.expect(
            all(oracle.history[task, a.token][0] == "exit" for a in attempts[:2]), f"task {task}: history is wrong"
        )


@case("cut-every-settlement", 15, tls="full")
def cut_every_settlement(t):
    """The connection breaks at every settlement for several leases. Leases of running and finished tasks are
    renewed meanwhile, and the results are recorded in the end."""
    proxy, lease = t.proxy(), 2 * t.pace()
    t.configure(proxy.settings(), lease=f"{lease}s", slots=8)
    t.handlers({"t": ""}, max_running=8, timeout="2m")
    proxy.rules = [Rule("settle", "cut-before")]
    t.dqd()
    t.add(3, words=f"ms={4500 * lease}")
    t.add(3, words="ms=5")
    t.wait(lambda: t.faults.count("cut-before") > 0, "results are cut off")
    t.sleep(3.5 * lease)
    t.expect(t.faults.count("cut-before") > 7, "results were not tried again")
    t.expect(t.count("status = 3 AND lease_until > UTC_TIMESTAMP(3)") == 6, "a lease was lost")
    proxy.rules = []
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    t.note(f"{t.faults.count('cut-before')} settlements were cut off")
    oracle.no_repeats()


@case("cut-renew", 40, tls="full")
def cut_renew(t):
    """The connection is cut at renewals, three times in a row. Leases are kept, and no handler is killed."""
    # enough that one dqd meets three in a row before the statement is sent, however they are distributed
    cuts, lease = t.often(18), 6 * t.pace()
    t.handlers({"t": ""}, timeout="2m")
    _cut_daemon(
        t,
        "renew",
        cuts,
        lambda: t.add(8, words=f"ms={1500 * lease}"),
        spare=4,
        chance=1.0,
        pause=0.5,
        lease=f"{lease}s",
        poll_interval="1s",
    )
    t.expect(t.one("SELECT COUNT(*) FROM dq_attempt WHERE outcome <> 'released'") == 0, "an attempt was lost")
    t.expect(t.overdue_ms == 0, f"a lease had ended for {t.overdue_ms:.0f} ms")


@case("cut-add", 10, tls="short")
def cut_add(t):
    """The connection is cut at dq add, single and bulk. Exit status 0 means stored once, and the outcome is
    always found out."""
    proxy = t.proxy()
    t.configure(proxy.settings())
    rng, bodies = t.rng, set()
    wanted = t.often(18)
    for n in range(wanted):
        statement = "add" if n % 2 == 0 else rng.choice(("add", "commit"))
        proxy.rules = [Rule(statement, CUTS[n % 3], most=1, seconds=0.1)]
        # No keys: they would hide a second insert.
        if n % 2:
            tasks = [t.line(in_ms=3_600_000, key=False, body=f"{n}.{i}") for i in range(5)]
            t.add_lines(tasks)
            bodies.update(task["body"] for task in tasks)
        else:
            done = t.dq("add", "t", f"{n}", "--in", "1h")
            bodies.add(f"{n}")
            stored = t.one(f"SELECT id FROM dq_task WHERE message_body = '{n}'")
            t.expect(int(done.stdout) == stored, f"dq add printed {done.stdout}, stored are {stored}")
    proxy.rules = []
    made = t.faults.count("cut")
    rows = t.sql("SELECT message_body, COUNT(*) FROM dq_task GROUP BY message_body")
    t.expect(made >= wanted, f"{made} cuts of {wanted}")
    t.expect(
        {body for body, _ in rows} == bodies and all(n == "1" for _, n in rows),
        "not every task is stored exactly once",
    )
    t.note(f"{made} cuts, {len(bodies)} tasks acknowledged, all stored once")


@case("add-trigger", 10)
def add_trigger(t):
    """A trigger on dq_task keeps dq add, single and bulk, waiting for longer than read_timeout. Meanwhile the
    connection that was given up is the definer's to the server, and dq may not kill it. Each task is stored once."""
    t.configure({"read_timeout": "1s"})
    gate = t.server.client("dq")
    t.sql(
        "CREATE TRIGGER slow BEFORE INSERT ON dq_task FOR EACH ROW"
        " WHILE IS_USED_LOCK('gate') IS NOT NULL DO DO SLEEP(0.01); END WHILE"
    )

    def sessions(user):
        return t.one(f"SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{user}'")

    idle = sessions("root")

    def open_gate():
        t.wait(lambda: sessions("root") > idle + (sessions("dq") == 0), "dq has a new connection")
        t.sleep(0.3)
        gate.query("DO RELEASE_LOCK('gate')")

    for n in range(2):
        gate.query("DO GET_LOCK('gate', 0)")
        opener = threading.Thread(target=open_gate)
        opener.start()
        if n == 0:
            t.dq("add", "t", "single", "--in", "1h")
        else:
            t.add_lines([t.line(in_ms=3_600_000, key=False, body=f"{i}") for i in range(5)])
        opener.join()
    gate.close()
    t.sql("DROP TRIGGER slow")  # waits for statements that are in it
    t.expect(t.one("SELECT COUNT(DISTINCT message_body) FROM dq_task") == t.count() == 6, "not all are stored once")


@case("add-error-after", 5)
def add_error_after(t):
    """dq add, single and bulk, gets an error of the commit (Group Replication: 3100) after it has taken place. The
    outcome is looked up, and each task is stored once."""
    proxy = t.proxy()
    t.configure(proxy.settings())
    for n, number in enumerate((3100, 1180)):
        proxy.rules = [Rule("add", "error-after", most=1, number=number)]
        t.dq("add", "t", f"{n}", "--in", "1h")
        proxy.rules = [Rule("commit", "error-after", most=1, number=number)]
        t.add_lines([t.line(in_ms=3_600_000, key=False, body=f"{n}.{i}") for i in range(5)])
        t.expect(proxy.rules[0].hits == 1, "the COMMIT got no error")
    t.expect(t.one("SELECT COUNT(DISTINCT message_body) FROM dq_task") == t.count() == 12, "not all are stored once")


@case("look-up-elsewhere", 10)
def look_up_elsewhere(t):
    """The answer of dq add is lost together with its server, and the other one is read-only, as in a group without its
    primary. The task is found there. If it is not, dq does not know whether it is stored, and says so."""
    first, second = t.proxy(tcp=True), t.proxy(tcp=True)
    t.configure({"socket": None, "host": f"127.0.0.1:{first.port}, 127.0.0.1:{second.port}"})
    for cut, status in (("cut-after", 0), ("cut-before", 69)):
        first.rules = [Rule("add", cut, most=1), Rule("global.read_only", "cut-before", skip=1)]
        second.rules = [Rule("global.read_only", "lie", lie=b"1")]
        done = t.dq("add", "t", cut, "--in", "1h", status=(status,))
        stored = t.count(f"message_body = '{cut}'")
        t.expect(stored == (status == 0), f"{cut}: status {status}, and the task is stored {stored} times")
        t.expect(
            status == 0 or (b"not known" in done.stderr and b"is read-only" in done.stderr),
            f"{cut}: dq add does not say what it does not know: {done.stderr}",
        )


@case("another-server", 20, options="--skip-slave-start")
def another_server(t):
    """Behind HAProxy, the connection of dq add leads to another server after it broke. The connection that has the
    same id there is somebody else's, and is not killed. The task is found once it is there; if it is not, dq does not
    know whether it is stored, and says so."""
    if not HAPROXY:
        t.note("SKIP haproxy is not installed")
        return
    other = Server(t.server.top, t.dir + "/other", t.server.environment)
    here = t.proxy()
    way = HAProxy(t.dir, here=here.path, there=other.socket)
    there = other.client()
    try:
        there.query(f"CREATE DATABASE {t.database} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        t.dq("init", ini=t.configure({"socket": other.socket}, path=t.dir + "/there.ini"))
        t.configure({"socket": way.socket})

        def add(body, action, meanwhile):
            rule = Rule("add", action, most=1, seconds=None)
            here.rules, done = [rule], []
            way.lead("here")
            adder = threading.Thread(
                target=lambda: done.append(t.dq("add", "t", body, "--in", "1h", status=None)), daemon=True
            )
            adder.start()
            t.wait(lambda: rule.hits, "the task is on its way")
            meanwhile()
            adder.join()
            rule.go.set()
            return done[0]

        def meet_a_stranger():
            sessions = "SELECT MAX(id) FROM information_schema.processlist WHERE user = 'dq'"
            same = int(t.one(sessions))
            while (stranger := other.client(user="dq")).thread_id < same:
                stranger.close()
            t.expect(stranger.thread_id == same, f"connection {same} of the other server is in the past")
            strangers.append(stranger)
            stranger.send("SELECT SLEEP(600)")
            t.wait(lambda: there.query(running), "the stranger's statement runs")
            way.lead("there")

        strangers = []  # MySQL ends a statement whose connection is closed
        running = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP(%'"
        done = add("unknown", "delay", meet_a_stranger)
        t.expect(there.query(running), "somebody else's connection was killed")
        t.wait(lambda: t.count() == 1, "the first server stores the task")
        stored = there.query(f"SELECT COUNT(*) FROM {t.database}.dq_task")[0][0]
        t.expect(
            (done.returncode, stored) == (69, "0") and b"not known" in done.stderr,
            f"status {done.returncode}, {stored} stored on the other server as well: {done.stderr}",
        )

        def replicate():
            t.wait(lambda: t.count() == 2, "the first server stores the task")
            way.lead("there")
            t.sleep(1)
            columns = "id, tag, message_body, add_token, expected_time, create_time"
            row = t.sql(f"SELECT {columns} FROM dq_task ORDER BY id DESC LIMIT 1", raw=True)[0]
            cells = ", ".join("X'" + cell.hex() + "'" for cell in row[1:])
            there.query(f"INSERT INTO {t.database}.dq_task ({columns}) VALUES ({int(row[0])}, {cells})")

        done = add("found", "hold", replicate)
        t.expect(
            done.returncode == 0 and int(done.stdout) == t.one("SELECT MAX(id) FROM dq_task"),
            f"status {done.returncode}: {done.stdout} {done.stderr}",
        )
    finally:
        way.stop()
        there.close()
        other.destroy()


@case("outage-beneath-adds", 20)
def outage_beneath_adds(t):
    """The server dies beneath eight loops of dq add, single and from a file, and of dq cancel, and is back after some
    seconds (20 in the long run). With --retry-for, none of them fails, and each task is stored, or cancelled, once."""
    again, counts, failures, end = ("--retry-for", "2m"), [0] * 8, [], threading.Event()

    def loop(n):
        try:
            while not end.is_set() and not failures:
                body = f"{n}.{counts[n]}"
                lines = "".join(f'{{"tag": "t", "in": "1h", "body": "{body}.{i}"}}\n' for i in range(5)).encode()
                if n < 6:
                    task = t.dq("add", "t", body, "--in", "1h", *again).stdout.decode().strip()
                else:
                    t.dq("add", "--from", "-", *again, body=lines)
                if n < 2:
                    t.dq("cancel", task, *again)
                counts[n] += 1
        except Failed as e:
            failures.append(str(e))

    loops = [threading.Thread(target=loop, args=(n,)) for n in range(8)]
    for thread in loops:
        thread.start()
    try:
        for _ in range(2):
            before = list(counts)
            t.wait(lambda: failures or all(c > b + 1 for c, b in zip(counts, before)), "each loop adds")
            entry = t.faults.add("kill-database")
            t.server.kill()
            t.sleep(20 if t.full else 2)
            t.server.start()
            entry["until"] = time.monotonic()
            t.wait(lambda: t.one("SELECT 1"), "the server is back")
        before = list(counts)
        t.wait(lambda: failures or all(c > b for c, b in zip(counts, before)), "each loop adds again")
    finally:
        end.set()
        for thread in loops:
            thread.join()
    t.expect(not failures, "; ".join(failures))
    rows = t.one("SELECT COUNT(DISTINCT message_body) FROM dq_task")
    wanted = sum(counts[:6]) + 5 * sum(counts[6:])
    t.expect(rows == t.count() == wanted, f"{t.count()} rows of {rows} tasks are stored, {wanted} were acknowledged")
    cancelled = t.count(f"status = {CANCELLED} AND version = 1")
    t.expect(cancelled == sum(counts[:2]), f"{cancelled} of {sum(counts[:2])} are cancelled once")
    t.note(f"{wanted} tasks in {sum(counts)} rounds")


@case("cut-add-import", 10, tls="full")
def cut_add_import(t):
    """The answer of dq add is lost while an import adds rows with last year's dates. The stored task is found
    among them, once."""
    proxy = t.proxy()
    t.configure(proxy.settings())
    wanted, end = t.often(40), threading.Event()

    def bring_in(client):
        while not end.wait(0.001):
            client.query(
                "INSERT INTO dq_task (tag, message_body, expected_time, create_time) VALUES "
                + ", ".join(["('old', '', '2031-01-01', '2025-01-01')"] * 10)
            )

    importer = threading.Thread(target=bring_in, args=(t.server.client(t.database),))
    importer.start()
    try:
        for n in range(wanted):
            proxy.rules = [Rule("add", "cut-after", most=1, seconds=0.1)]
            done = t.dq("add", "t", f"{n}", "--in", "1h")
            stored = t.one(f"SELECT GROUP_CONCAT(id) FROM dq_task WHERE tag = 't' AND message_body = '{n}'")
            t.expect(int(done.stdout) == stored, f"dq add printed {done.stdout}, stored are {stored}")
    finally:
        end.set()
        importer.join()
    made, old = t.faults.count("cut"), t.count("tag = 'old'")
    t.expect(made >= wanted, f"{made} cuts of {wanted}")
    t.expect(old >= 10 * wanted, f"only {old} rows came in meanwhile")
    t.note(f"{made} cuts, each task stored once, among {old} others")


@case("cut-cancel", 10, tls="short")
def cut_cancel(t):
    """The connection is cut at dq cancel, at the change or at the COMMIT. Exit status 0 means cancelled, and the
    outcome is always found out."""
    proxy = t.proxy()
    t.configure(proxy.settings())
    wanted = t.often(12)
    t.add(wanted, in_ms=3_600_000)
    for n, (task,) in enumerate(t.sql("SELECT id FROM dq_task ORDER BY id")):
        proxy.rules = [Rule(("cancel", "commit")[n // 3 % 2], CUTS[n % 3], most=1, seconds=0.1)]
        t.dq("cancel", task, "-y")
        t.expect(
            t.count(f"id = {task} AND status = {CANCELLED} AND version = 1") == 1,
            f"task {task} is not cancelled once",
        )
    t.expect(t.faults.count("cut") >= wanted, "fewer cuts than asked")
    Oracle(t).check()


@case("injected-errors", 15)
def injected_errors(t):
    """One in twenty statements fails with error 1213, 1205 or 1020. Nothing is lost or repeated, and no
    transaction is left open."""
    proxy = t.proxy()
    t.configure(proxy.settings(), lease="10s")
    proxy.rules = [Rule("any", "error", 0.017, number=n) for n in (1213, 1205, 1020)]
    for _ in range(3):
        t.dqd()
    for _ in range(600 if t.full else 45):
        t.add(10, words=f"ms={t.rng.randrange(1, 30)} fail={t.rng.randrange(0, 2)}")
    t.wait_finished(120)
    proxy.rules = []
    t.expect(not proxy.left_open, f"no ROLLBACK after an error, but {proxy.left_open[:3]}")
    t.wait(lambda: t.one("SELECT COUNT(*) FROM information_schema.innodb_trx") == 0, "no transaction is open")
    oracle = Oracle(t)
    oracle.check()
    made = t.faults.count("error")
    t.expect(made >= 20, f"only {made} errors were injected")
    for task, attempts in oracle.attempts.items():
        t.expect(
            len(attempts) == 1 + sum(a.status == 1 for a in attempts),
            f"task {task} was repeated without having failed",
        )
    t.expect(
        t.one("SELECT COUNT(*) FROM dq_attempt WHERE outcome NOT IN ('exit', 'released')") == 0, "an attempt was lost"
    )


@case("claim-error-after-update", 5)
def claim_error_after_update(t):
    """A claim loses a row to another session, and the query for what it won fails. What it won is found at
    once, not when a lease ends."""
    proxy = t.proxy()
    t.configure({**proxy.settings(), "read_timeout": "10m"}, lease="10m")
    t.add(5)
    proxy.rules = [
        Rule("claim", "delay", most=1, seconds=None),
        Rule(
            r"^SELECT id, version FROM dq_task FORCE INDEX \(PRIMARY\) WHERE status = 3", "error", most=1, number=1205
        ),
    ]
    t.dqd()
    t.wait(lambda: t.faults.count("delay") == 1, "a claim is under way")
    t.dq("cancel", "1", "-y", ini=t.direct)
    proxy.rules[0].go.set()
    t.wait(lambda: t.count("status = 1") == 4, "the other four are done")
    t.expect(t.faults.count("error") == 1, "the error was not injected")
    t.expect(t.one("SELECT MAX(attempt) FROM dq_task") == 1, "an attempt was used up")
    Oracle(t).check()


@case("injected-errors-add", 5)
def injected_errors_add(t):
    """dq add meets errors 1213, 1205 and 1020. A chunk is refused with a message or stored, never half of it. A
    single task whose INSERT was rolled back is stored after all."""
    proxy = t.proxy()
    t.configure(proxy.settings())
    tried = 60
    for n in range(tried):
        proxy.rules = [Rule(("add", "commit")[n % 2], "error", most=1, number=(1213, 1205, 1020)[n // 2 % 3])]
        t.add_lines([t.line(in_ms=3_600_000) for _ in range(3)], status=(0, 75))
    proxy.rules = []
    keys = {r[0] for r in t.sql("SELECT task_key FROM dq_task")}
    t.expect(t.faults.count("error") >= tried, "fewer errors than asked")
    t.expect(keys == t.acked, f"{len(keys)} stored, {len(t.acked)} acknowledged")
    t.note(f"{tried} errors; {len(t.acked)} of {3 * tried} tasks acknowledged")
    for number in (1213, 1020):
        proxy.rules = [Rule("add", "error", most=2, number=number)]
        t.dq("add", "t", f"rolled back {number}", "--in", "1h")
        t.expect(t.count(f"message_body = 'rolled back {number}'") == 1, f"it is not stored once, after {number}")


@case("failover", 15)
def failover(t):
    """The first server turns read-only, then goes away. The next one in the list is used within 5 s, and no
    attempt is used up."""
    first, second = t.proxy(tcp=True), t.proxy(tcp=True)
    t.configure({"socket": None, "host": f"127.0.0.1:{first.port}, 127.0.0.1:{second.port}"}, lease="10s")
    t.dqd()

    def drains(what, seconds=5.0):
        began = time.monotonic()
        t.add(20, words="ms=10")
        t.wait(lambda: t.count("status IN (0, 3)") == 0, f"tasks are done again after {what}")
        took = time.monotonic() - began
        t.note(f"{what}: {took * 1000:.0f} ms until 20 tasks were done")
        t.in_time(took < seconds * t.slowness(), f"{what}: {took:.1f} s")

    drains("nothing")
    t.expect(first.connections() > 0 and second.connections() == 0, "the first host is preferred")
    t.faults.add("read-only")
    read_only = [Rule("any", "error", number=1290), Rule("global.read_only", "error", number=1290)]
    first.rules = read_only
    drains("read-only answers")
    blanks = t.configure(
        {"socket": None, "host": f"127.0.0.1:{first.port} 127.0.0.1:{second.port}"}, path=t.dir + "/blanks.ini"
    )
    for rules in (read_only, [Rule("global.read_only", "cut-before")]):
        first.rules, second.record, second.seen = rules, True, []
        t.dq("tags", ini=blanks)
        t.expect(
            any(b"dq_task" in sql for sql in second.seen), "another list of the same hosts: the second host is used"
        )
    first.rules, second.record = read_only, False
    t.expect(second.connections() > 0, "the second host is used")
    t.faults.add("gone")
    first.rules = []
    second.close()
    drains("the server has gone")
    t.faults.add("all-gone")
    first.close()
    t.sleep(2)
    second.open()
    drains("all servers away for 2 s")
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()
    t.expect(all(int(r[4]) == 1 for r in oracle.rows.values()), "an attempt was used up")


@case("only-a-replica", 5)
def only_a_replica(t):
    """Of two hosts, one is down and one is read-only. Commands that only read use it and say so; others name
    each host with its reason."""
    first, second = t.proxy(tcp=True), t.proxy(tcp=True)
    t.configure({"socket": None, "host": f"127.0.0.1:{first.port}, 127.0.0.1:{second.port}"})
    t.add(3, in_ms=3_600_000)
    t.dq("list")
    t.faults.add("replica")
    t.sql("SET GLOBAL read_only = 1")
    try:
        for down in (False, True):
            if down:
                first.close()
            for verb in ("list", "tags", "stats", "pollers"):
                done = t.dq(verb)
                t.expect(b" is read-only" in done.stderr, f"dq {verb}: {done.stderr}")
            task = t.one("SELECT MAX(id) FROM dq_task")
            t.expect(b"is read-only" in t.dq("show", str(task)).stderr, "dq show does not say whom it asks")
            done = t.dq("add", "t", status=(69,))
            for proxy, why in ((first, b"connect" if down else b"read-only"), (second, b"read-only")):
                said = [part for part in done.stderr.split(b"; ") if b"127.0.0.1:%d" % proxy.port in part]
                t.expect(said and why in said[0], f"dq add does not say what is wrong with each host: {done.stderr}")
    finally:
        t.sql("SET GLOBAL read_only = 0")


@case("back-to-the-primary", 35)
def back_to_the_primary(t):
    """The first host goes away, and the second one is read-only and behind: a task that has been begun again is still
    done there. dq wait and dq logs -f ask it nothing. dq events -f and dq list --watch say that it is read-only, and go
    back to the first one."""
    first, second = t.proxy(tcp=True), t.proxy(tcp=True)
    t.configure({"socket": None, "host": f"127.0.0.1:{first.port}, 127.0.0.1:{second.port}"})
    second.rules, second.record = [Rule("global.read_only", "lie", lie=b"1")], True
    t.add(1, in_ms=3_600_000)
    dq, followers = f"exec {t.bin}/dq --config {t.ini}", {}
    for name, command in {
        "wait": f"{dq} wait 1",
        "logs": f"{dq} logs -f 1",
        "events": f"{dq} events -f -e pause",
        "list": f"exec script -qfc '{dq} list --watch 1s' /dev/null",
    }.items():
        with open(f"{t.dir}/{name}", "wb") as said:
            followers[name] = subprocess.Popen(  # pylint: disable=consider-using-with
                ["/bin/sh", "-c", command],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
                env={**t.environment, "TERM": "vt100"},
            )

    def has_said(name, text):
        with open(f"{t.dir}/{name}", encoding="utf-8") as f:
            return text in f.read()

    try:
        t.wait(lambda: first.connections() == 4 and has_said("logs", "waiting until"), "all have begun")
        t.faults.add("replica")
        t.sql("UPDATE dq_task SET status = 1")  # as the second one still has it
        first.close()
        for name in ("wait", "logs"):
            t.wait(lambda name=name: has_said(name, "; still "), f"dq {name} goes on")
        t.wait(lambda: has_said("events", "what it shows may be old"), "dq events says that it may be old")
        t.wait(lambda: has_said("list", "(read-only)"), "dq list --watch says that it is read-only")
        t.sleep(2)
        t.expect(all(f.poll() is None for f in followers.values()), "a follower has believed the read-only server")
        t.sql("UPDATE dq_task SET status = 0")
        first.open()
        t.wait(lambda: first.connections() == 4 and not second.connections(), "all have gone back", 40)
        t.dq("pause", "other")
        t.wait(lambda: has_said("events", "other"), "dq events goes on")
        t.sql("UPDATE dq_task SET status = 1")
        t.wait(lambda: followers["wait"].poll() == 0, "dq wait ends")
    finally:
        for follower in followers.values():
            follower.kill()
            follower.wait()


@case("host-without-cluster", 5)
def host_without_cluster(t):
    """The first host is a Galera node that has lost its cluster: it accepts connections and settings but no
    access to tables. dq and dqd use the next host."""
    first, second = t.proxy(tcp=True), t.proxy(tcp=True)
    t.configure({"socket": None, "host": f"127.0.0.1:{first.port}, 127.0.0.1:{second.port}"})
    first.rules = [Rule(r"\bFROM\b|^INSERT|^UPDATE|^DELETE|^COMMIT", "error", number=1047)]
    t.dq("add", "t")
    t.dqd()
    t.wait_finished()
    t.expect(t.count("status = 1 AND attempt = 1") == 1, "the task is not done")
    Oracle(t).check()
    second.close()
    said = t.dq("list", status=(69,)).stderr
    t.expect(
        all(b"127.0.0.1:%d" % proxy.port in said for proxy in (first, second)), f"not each host is named: {said}"
    )


@case("other-servers", 5)
def other_servers(t):
    """A server that only speaks the protocol is refused by name, whether its version or only its comment says so."""
    proxy = t.proxy()
    t.configure(proxy.settings())
    for name, version in ((b"TiDB", b"8.0.11-TiDB-v7.5.0"), (b"Dolt", None)):
        proxy.version = version
        if not version:
            proxy.rules = [Rule("^SET NAMES", "error", number=1193), Rule("version_comment", "lie", lie=b"Dolt SQL")]
        done = t.dq("add", "t", status=(78,))
        t.expect(b"this is " + name in done.stderr and b"doc/servers" in done.stderr, f"{name}: {done.stderr}")


@case("clocks-of-hosts", 5)
def clocks_of_hosts(t):
    """The clock of the second host of the list is another one: dq doctor says so."""
    first, second = t.proxy(tcp=True), t.proxy(tcp=True)
    t.configure({"socket": None, "host": f"127.0.0.1:{first.port}, 127.0.0.1:{second.port}"})
    t.expect(b"the clock of" not in t.dq("doctor", status=None).stdout, "the clocks are the same")
    second.rules = [Rule("^SELECT UTC_TIMESTAMP", "lie", lie=b"2021-01-01 00:00:00.000")]
    said = t.dq("doctor", status=None).stdout
    t.expect(f"the clock of 127.0.0.1:{second.port} is".encode() in said, f"dq doctor does not name it: {said}")


@case("host-refuses", 5)
def host_refuses(t):
    """The first host does not know the account, or the database, as after a reinstallation. dq and dqd use the next
    host. If there is none, the exit status says whether a later try may succeed."""
    first, second = t.proxy(tcp=True), t.proxy(tcp=True)
    ini = t.configure({"socket": None, "host": f"127.0.0.1:{first.port}, 127.0.0.1:{second.port}"})
    for number in (1045, 1049):
        first.refuse = number
        t.faults.add("refused", number=number)
        t.dq("add", "t", ini=ini)
        t.dqd("--once", ini=ini).process.wait(60)
    t.expect(t.count("status = 1 AND attempt = 1") == 2, "the tasks are not done")
    for number, status in ((1045, 77), (1049, 77), (1040, 69)):
        second.refuse = number
        first.refuse = 1045
        done = t.dq("add", "t", ini=ini, status=(status,))
        t.expect(
            all(b"127.0.0.1:%d" % proxy.port in done.stderr for proxy in (first, second)),
            f"not each host is named: {done.stderr}",
        )


@case("stalled-primary", 15)
def stalled_primary(t):
    """The first host accepts connections and answers queries, but writes hang, as in a group without a
    majority. After one timeout the next host is used."""
    first, second = t.proxy(tcp=True), t.proxy(tcp=True)
    t.configure({"socket": None, "host": f"127.0.0.1:{first.port}, 127.0.0.1:{second.port}", "read_timeout": "2s"})
    first.rules = [Rule("add", "delay", seconds=20.0)]
    for n in range(2):
        t.dq("add", "t", f"{n}", "--in", "1h")
        t.expect(
            t.faults.count("delay") == n + 1, f"dq add waited for the first host {t.faults.count('delay')} times"
        )
    t.expect(
        t.one("SELECT COUNT(DISTINCT message_body) FROM dq_task") == t.count() == 2, "not every task is stored once"
    )


@case("connections-refused", 15)
def connections_refused(t):
    """The server has too many connections for a while. dqd retries with growing, jittered pauses, and running
    handlers continue."""
    proxy = t.proxy()
    t.configure(proxy.settings(), lease="30s")
    dqds = [t.dqd() for _ in range(10)]
    t.add(30, words="ms=1500")
    t.wait(lambda: t.count("status = 3") > 10, "handlers run")
    t.faults.add("refused", number=1040)
    times = []
    serve = proxy._serve  # pylint: disable=protected-access

    def counted(client):
        times.append(time.monotonic())
        serve(client)

    proxy._serve = counted  # pylint: disable=protected-access
    proxy.refuse = 1040
    began = time.monotonic()
    proxy.cut()
    t.sleep(8)
    proxy.refuse = 0
    early = sum(at - began < 2 for at in times)
    late = sum(at - began >= 4 for at in times)
    t.note(f"10 dqds: {early} tries in the first 2 s, {late} in the last 4 s")
    t.expect(10 <= len(times), "dqd does not retry")
    t.expect(late <= 10 * 4, "retries do not become rarer")
    spread = sorted(at - began for at in times if at - began >= 2)
    most = max((sum(a <= b < a + 0.1 for b in spread) for a in spread), default=0)
    t.expect(most <= 5 * t.slowness(), f"{most} of 10 dqds tried within the same 100 ms")
    t.wait_finished()
    t.expect(all(d.alive() for d in dqds), "a dqd has exited")
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()


@case("late-greeting", 8)
def late_greeting(t):
    """Between one and two connect_timeouts pass until the server greets, as when it was frozen. dqd does not take that
    for a wrong setting: it tries until the server greets in time."""
    proxy = t.proxy(tcp=True)
    proxy.late = 1.5
    d = t.dqd(ini=t.configure({**proxy.settings(), "tls": "preferred", "connect_timeout": "1s"}))
    t.add(10)
    t.wait(lambda: "no answer within" in d.log() or not d.alive(), "dqd has given up a connection")
    t.faults.add("late greeting")
    proxy.late = 0
    t.wait(lambda: t.count("status = 1") == 10 or not d.alive(), "the tasks are done")
    t.expect(d.alive(), f"dqd has ended with {d.process.poll()}: {d.log()}")
    Oracle(t).no_repeats()


@case("black-hole", 25)
def black_hole(t):
    """A firewall forgets the connections of dqd, and drops what is sent through them. New ones are made within a lease:
    no handler is killed, and tasks begin again long before read_timeout has passed."""
    proxy, lease = t.proxy(tcp=True), 6 * t.pace()
    t.configure({**proxy.settings(), "read_timeout": "10m"}, lease=f"{lease}s")
    t.handlers({"t": ""}, timeout="5m")
    d = t.dqd()
    t.add(2, words=f"until={t.dir}/end")
    t.wait(lambda: t.count("status = 3") == 2, "they run")
    t.faults.add("swallow")
    proxy.swallow()
    began = time.monotonic()
    t.add(1)
    t.wait(lambda: t.count("status = 1") == 1, "a task begins and ends", 10 * lease)
    t.note(f"the next task was done {time.monotonic() - began:.1f} s later, with a lease of {lease} s")
    t.sleep(2 * lease)
    open(t.dir + "/end", "w", encoding="ascii").close()  # pylint: disable=consider-using-with
    t.wait_finished()
    t.expect(d.alive(), "dqd has ended")
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()


@case("idle-connection", 8)
def idle_connection(t):
    """The server closes idle connections. No task is delayed, and no attempt is used up."""
    t.configure(poll_interval="3s", heartbeat="30s", lease="90s")
    d = t.dqd()
    idle = (
        "SELECT id FROM information_schema.processlist"
        f" WHERE user = 'dq' AND db = '{t.database}' AND command = 'Sleep'"
    )
    for _ in range(2):
        t.wait(lambda: t.sql(idle), "dqd's connection is idle")
        for row in t.sql(idle):
            t.sql(f"KILL {row[0]}")
        t.add(5)
        t.wait_finished()
    t.faults.add("idle")
    Oracle(t).check()
    t.expect(all(r[0] == "1" for r in t.sql("SELECT attempt FROM dq_task")), "an attempt was used up")
    t.expect(d.alive(), "dqd has exited")


@case("long-outage", 15)
def long_outage(t):
    """The database is away for a long time while results wait. They are kept and settled, and dqd resumes at
    once."""
    proxy = t.proxy()
    t.configure(proxy.settings(), lease="60s")
    d = t.dqd()
    t.add(20, words="ms=1000")
    t.wait(lambda: t.count("status = 3") == 8, "handlers run")
    t.faults.add("outage")
    proxy.close()
    t.sleep(10)
    t.expect(d.alive(), "dqd has exited")
    proxy.open()
    began = time.monotonic()
    t.wait(lambda: t.count("status = 1") >= 8, "results are settled")
    t.note(f"settled {1000 * (time.monotonic() - began):.0f} ms after the server was back")
    t.wait_finished()
    oracle = Oracle(t)
    oracle.check()
    oracle.no_repeats()


VERBS = [
    ("list",),
    ("list", "--status", "all", "--sort", "id", "-o", "json"),
    ("list", "--key", "k1", "-o", "tsv"),
    ("show", "1", "2"),
    ("tags",),
    ("stats",),
    ("stats", "-o", "json"),
    ("pollers",),
    ("cancel", "--tag", "t", "-y"),
    ("retry", "--tag", "t", "-y"),
    ("reschedule", "1", "--in", "1h", "-y"),
    ("delete", "--tag", "t", "-y"),
    ("purge", "--older-than", "1d"),
    ("add", "t", "x"),
    ("add", "t", "x", "--key", "k1"),
    ("wait", "1", "--timeout", "10ms"),
    ("pause", "t*"),
    ("resume", "t*"),
    ("run-now", "--tag", "t", "-y"),
    ("why", "1"),
    ("why", "--tag", "t"),
    ("logs", "1"),
    ("events",),
    ("errors",),
    ("errors", "--exact", "-o", "json"),
    ("forecast",),
    ("forecast", "--by", "minute", "-o", "json"),
    ("stats", "--by", "minute", "--exact"),
    ("check",),
    ("doctor",),
    ("export",),
    ("import", "-"),
    ("import", "--keep-ids", "--dry-run", "-"),
    ("completion", "words", "show", ""),
]
LIES = [
    "fewer",
    "more",
    "none",
    None,
    b"",
    b"1",
    b"5",
    b"99999999999",
    b"-1",
    b"18446744073709551616",
    b"t" * 70000,
    b"\0\xff'\\",
    b"0000-00-00",
]


@case("lying-server", 20)
def lying_server(t):
    """A server answers with wrong columns, NULLs, and values out of range. dq and dqd refuse them or continue,
    and use no value as an index unchecked."""
    proxy = t.proxy()
    ini = t.configure(proxy.settings())
    t.handlers({"t": ""})
    for lie in LIES:
        t.add(3, in_ms=3_600_000)
        proxy.rules = [Rule("^SELECT|^SHOW|RETURNING", "lie", lie=lie)]
        for verb in VERBS + [("init",)] * isinstance(lie, str):  # init waits a minute for a lock that it does not get
            done = t.dq(*verb, ini=ini, status=None)
            shown = lie if isinstance(lie, str) or lie is None else lie[:20]
            words = f"dq {' '.join(verb)} on {shown}: status {done.returncode}"
            t.expect(
                done.returncode >= 0 and b"Sanitizer" not in done.stderr,
                f"{words}: {done.stderr.decode(errors='replace')[-300:]}",
            )
            t.expect(not isinstance(lie, str) or done.returncode, f"{words}: the lie was accepted")
        done = t.run("dqd", "--config", ini, "--for", "300ms")
        t.expect(done.returncode >= 0, f"dqd on {lie}: status {done.returncode}: {done.stderr[-300:]}")
        proxy.rules = []
    t.note(f"{t.faults.count('lie')} lies")
