"""Schedules: slots are decided once, by any dqd, with their tasks."""
import os

from cases import case
from harness.chaos import Chaos
from harness.mysql import numbers
from harness.oracle import CANCELLED, DONE, Oracle
from harness.proxy import Rule

EVERY, ALLOW, REPLACE = 1, 2, 3


def waited_s(*pids):
    """How long the threads of processes were ready to run without a processor."""
    paths = [f"/proc/{pid}/task/{task}/schedstat" for pid in pids for task in os.listdir(f"/proc/{pid}/task")]
    waited = 0
    for path in paths:
        try:
            with open(path, encoding="ascii") as f:
                waited += int(f.read().split()[1]) / 1e9
        except OSError:  # the thread has ended
            pass
    return waited


def schedules(t, count, overlap=ALLOW, words="ms=5"):
    """So many schedules, each of which runs every second."""
    t.sql(
        "INSERT INTO dq_schedule (name, tag, message_body, kind, expression, overlap, catch_up, next_slot, create_time,"
        f" update_time, actor) SELECT CONCAT('s', id), 't', '@{words}', {EVERY}, '1s', {overlap}, 2, UTC_TIMESTAMP(0),"
        " UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 'a' FROM ("
        + " UNION ALL ".join(f"SELECT {n} AS id" for n in range(count))
        + ") n"
    )


def stop_schedules(t):
    """There are no slots from now on; those before are decided, and their tasks run."""
    t.sql("UPDATE dq_schedule SET to_time = UTC_TIMESTAMP(3), version = version + 1")
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_schedule WHERE next_slot IS NOT NULL") == 0, "all slots are decided")
    t.wait_finished()


def judge(t, count):
    """Each slot, from the first of a schedule on, has one decision, and each that ran one task: all but those that
    `replace` left out because the next one was due, too, when they were decided. Returns how many ran."""
    rows = t.sql("SELECT name, SUM(slots), TIMESTAMPDIFF(SECOND, MIN(slot), MAX(slot)) FROM dq_slot GROUP BY name")
    t.expect(len(rows) == count, f"{len(rows)} of {count} schedules have slots")
    for name, slots, seconds in rows:
        t.expect(int(slots) == int(seconds) + 1, f"{name}: {slots} slots in {seconds} s")
    other = t.sql(
        "SELECT s.name, s.slot, s.decision, s.decide_time FROM dq_slot s LEFT JOIN dq_slot n ON n.name = s.name"
        " AND n.slot = s.slot + INTERVAL s.slots SECOND AND n.decision = 0 AND n.decide_time = s.decide_time"
        " AND n.slot <= n.decide_time JOIN dq_schedule c ON c.name = s.name"
        f" WHERE s.decision > 1 AND NOT (s.decision = 2 AND c.overlap = {REPLACE} AND n.name IS NOT NULL) LIMIT 3"
    )
    t.expect(not other, f"slots did not run: {other}")
    key = "CONCAT(s.name, '@', DATE_FORMAT(s.slot, '%Y-%m-%dT%H:%i:%sZ'))"
    lone = t.one(
        f"SELECT COUNT(*) FROM dq_slot s LEFT JOIN dq_task t ON t.task_key = {key}"
        " WHERE s.decision < 2 AND t.id IS NULL"
    )
    t.expect(lone == 0, f"{lone} slots that ran have no task")
    twice = t.one("SELECT COUNT(*) - COUNT(DISTINCT task_key) FROM dq_task")
    t.expect(twice == 0, f"{twice} tasks are a second one of their slot")
    slots = t.one("SELECT COUNT(*) FROM dq_slot WHERE decision < 2")
    t.expect(t.count() == slots, f"{t.count()} tasks of {slots} slots that ran")
    return slots


@case("decided-ahead", 20)
def decided_ahead(t):
    """Slots were decided, and a limit was held, while the server's clock was a year ahead. Connections are cut while
    that is corrected. The schedules go on, each slot once, and what was held starts."""
    rules = [
        Rule(statement, action, 1, most=1)
        for statement in (r"^UPDATE dq_schedule c ", r"^UPDATE dq_slot FORCE", r"^UPDATE dq_limit SET .*hold_time")
        for action in ("cut-before", "cut-after")
    ]
    t.handlers({"t": "", "held": ""})
    schedules(t, 3)
    for n in range(2):
        proxy = t.proxy()
        proxy.rules = rules
        t.dqd(ini=t.configure(proxy.settings(), path=f"{t.dir}/dq{n}.ini", heartbeat="500ms"))
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_slot") > 9, "slots are decided")
    t.faults.add("clock", by=-365 * 86400)
    t.sql("UPDATE dq_slot SET decide_time = decide_time + INTERVAL 1 YEAR")
    t.sql("UPDATE dq_schedule SET next_slot = next_slot + INTERVAL 1 YEAR, version = version + 1")
    at = "UTC_TIMESTAMP(3) + INTERVAL 1 YEAR"
    t.sql(f"INSERT INTO dq_limit (name, held_until, hold_time, update_time) VALUES ('held', {at}, {at}, {at})")
    slots = t.one("SELECT COUNT(*) FROM dq_slot")
    t.add(1, "held", words="ms=5")
    t.wait(lambda: t.count("tag = 'held' AND status = 1") == 1, "what was held starts")
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_slot") > slots + 9, "schedules go on")
    stop_schedules(t)
    keys = t.one("SELECT COUNT(DISTINCT task_key) FROM dq_task")
    t.expect(keys == t.count(), f"{t.count()} tasks, {keys} keys")
    t.expect(sum(r.hits for r in rules) == len(rules), "the correction was not cut everywhere")


@case("schedule-kill", 30)
def schedule_kill(t):
    """dqds are killed, and their connections cut in the transaction that decides slots, while schedules run each
    second. Each slot is decided once, and has one task."""
    dqds, kills, cuts, count = (8, 1000, 300, 40) if t.full else (4, 20, 12, 10)
    rules = [
        Rule(statement, action, 0.5, most=cuts // 6)
        for statement in (r"^UPDATE dq_schedule", r"^INSERT INTO dq_task", r"^INSERT INTO dq_slot .*VALUES")
        for action in ("cut-before", "cut-after")
    ]
    schedules(t, count)
    for n in range(dqds):
        proxy = t.proxy()
        proxy.rules = rules
        t.dqd(keep=True, ini=t.configure(proxy.settings(), path=f"{t.dir}/dq{n}.ini", lease="3s", slots=16))
    chaos = Chaos(t, (0.1, 0.6), kill=kills)
    spend = t.patience(3600 if t.full else 120, "all faults are made")
    while not chaos.done() or sum(r.hits for r in rules) < cuts // 2:
        spend()
        chaos.step()
        t.sleep(0.02)
    stop_schedules(t)
    chaos.verify()
    oracle = Oracle(t)
    oracle.check()
    slots = judge(t, count)
    t.note(f"{slots} slots of {count} schedules; {kills} kills, {sum(r.hits for r in rules)} cuts")


@case("schedule-herd", 15)
def schedule_herd(t):
    """10,000 schedules (in the short run 4,000) have one slot, and another one later. Their tasks are stored together,
    within a second of it, at one of four tries, though the server, which was started anew, has only the statistics of
    empty tables."""
    count, late_s, tries, most_s = 10_000 if t.full else 4_000, [], 0, 0
    t.dq("pause", "t")
    for table in ("dq_schedule", "dq_slot", "dq_task"):
        t.sql(f"ALTER TABLE {table} STATS_AUTO_RECALC = 0")
        t.sql(f"ANALYZE TABLE {table}")
    t.sql(
        "INSERT INTO dq_schedule (name, tag, message_body, kind, expression, overlap, next_slot, create_time,"
        f" update_time, actor) SELECT CONCAT('s', seq), 't', '', {EVERY}, '1h', {ALLOW}, '2099-01-01',"
        f" UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 'a' FROM {numbers(count)}"
    )
    t.dqd()
    t.wait(lambda: t.one("SELECT COUNT(*) FROM dq_poller") == 1, "dqd is there")
    while tries < 2 or (late_s[-1] > most_s and tries < 5):
        if tries:  # now the schedules have last runs
            t.server.kill()
            t.server.start()
            t.wait(lambda: t.count() == count * tries, "the server is back")
        tries += 1
        pids = t.server.pid, t.dqds[0].process.pid
        t.sql("UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(0) + INTERVAL 4 SECOND, version = version + 1")
        waited = waited_s(*pids)
        t.wait(lambda: t.count() == count * tries, "all tasks are stored", pause=0.2)
        slot, last = "(SELECT MAX(slot) FROM dq_slot)", "MAX(create_time)"
        late_s.append(t.one(f"SELECT TIMESTAMPDIFF(MICROSECOND, {slot}, {last}) FROM dq_task") / 1e6)
        most_s = t.slowness() + waited_s(*pids) - waited
    t.in_time(late_s[-1] <= most_s, f"the last task was stored {late_s[-1]:.1f} s after its slot")
    t.note(f"the last of {count} tasks was stored so many seconds after their slot: {late_s}")


@case("schedule-replace", 15)
def schedule_replace(t):
    """Runs that last about as long as a period are replaced by the next one, or have just ended. Each is done or
    cancelled, never both, and each slot has its task."""
    seconds, count = (300, 40) if t.full else (8, 10)
    schedules(t, count, REPLACE, "ms=980")
    t.handlers({"t": ""}, max_running=64)
    for _ in range(3):
        t.dqd(ini=t.configure(slots=64))
    t.sleep(seconds)
    stop_schedules(t)
    oracle = Oracle(t)
    oracle.versions_grow()
    oracle.results_are_owned()
    oracle.nothing_early()
    slots = judge(t, count)
    ends = [int(r[2]) for r in oracle.rows.values()]
    t.expect(set(ends) <= {DONE, CANCELLED}, f"tasks ended as {set(ends)}")
    changed = t.one("SELECT COUNT(*) FROM dq_audit WHERE old_status IN (1, 2, 4)")
    t.expect(changed == 0, f"{changed} tasks were changed after their end")
    t.expect(DONE in ends and CANCELLED in ends, "nothing was replaced, or everything")
    t.note(f"{slots} slots: {ends.count(DONE)} done, {ends.count(CANCELLED)} replaced")
