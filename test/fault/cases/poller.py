"""What could stop the poller although nothing is wrong with tasks or database (scenario 40), and a
database that is there but takes no writes (scenario 17)."""
import fcntl
import os
import select
import signal
import subprocess

from cases import case
from harness.oracle import Oracle


def _full_pipe():
    """Both ends of a pipe that takes no more. Its descriptors block, as a service manager's or a shell's do."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"#")
    except BlockingIOError:
        os.set_blocking(writer, True)
    return reader, writer


@case("log-unread", 40, 20)
def log_unread(t):
    """Nobody reads the log and its pipe is full: tasks go on and keep their leases; lines that were lost are counted and reported as soon
    as the log is read. If that poller dies, its runner kills its handlers before their lease ends."""
    reader, writer = _full_pipe()
    d = t.dqd("--log-level", "debug", stderr=writer)
    t.add(200)
    t.add(4, words="ms=5000")  # more than two leases
    t.wait_finished(40)
    t.expect(not select.select([], [writer], [], 0)[1], "the pipe was not full any more: nothing was shown")
    text = bytearray()
    os.set_blocking(reader, False)

    def said():
        try:
            text.extend(os.read(reader, 65536))
        except BlockingIOError:
            pass
        return b"log lines were lost because nobody read them" in text and text.endswith(b"\n")

    t.wait(said, "the log reports lost lines", 20)
    oracle = Oracle(t)
    oracle.check()
    t.expect(oracle.repeats == 0, f"{oracle.repeats} repeats without a fault")
    t.add(4, words="ms=60000")
    t.wait(lambda: len(d.handlers()) == 4, "its handlers run", 20)
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"#")
    except BlockingIOError:
        os.set_blocking(writer, True)
    t.faults.add("kill", who="poller", dqd=d.pid, runners=[d.runner()])
    d.send("poller", signal.SIGKILL)
    other = t.dqd()
    t.wait(lambda: len(other.handlers()) == 4, "another dqd has them", 20)
    t.sleep(1)
    t.sql("UPDATE dq_task SET status = 4, version = version + 1 WHERE status = 3")
    t.wait(lambda: not other.handlers(), "the handlers have ended", 20)
    Oracle(t).check()
    os.close(reader)
    os.close(writer)


@case("read-only", 17, 25, options="--skip-slave-start")
def read_only(t):
    """The only server is read-only. A pass and a --for end with 69 and say why; a dqd that stays reports it once, tries again with growing
    pauses, keeps its results, and calls the database back when a write has succeeded."""
    t.configure(lease="3s", heartbeat="200ms")
    d = t.dqd()
    t.add(6, words="ms=1500")
    t.wait(lambda: len(d.handlers()) == 6, "handlers run", 20)
    t.sql("SET GLOBAL read_only = 1")
    t.faults.add("read-only", lasting=True)
    try:
        for mode in (["--once"], ["--for", "3s"]):
            done = subprocess.run([t.bin + "/dqd", "--config", t.ini, "--allow-overlap", *mode], capture_output=True, timeout=60,
                                  check=False, env=t.environment)
            t.expect(done.returncode == 69 and b"\ndqd: no database for " in done.stderr and done.stderr.count(b"read-only") <= 3,
                     f"{mode[0]} ended with {done.returncode}: {done.stderr.decode()}")
        t.sleep(2)
        log = d.log()
        t.expect("the database is back" not in log, "a database that takes no writes is called back")
        t.expect(log.count("read-only") == 1, f"it is reported {log.count('read-only')} times")
        before = int(t.sql("SHOW GLOBAL STATUS LIKE 'Connections'")[0][1])
        t.sleep(3)
        tries = int(t.sql("SHOW GLOBAL STATUS LIKE 'Connections'")[0][1]) - before
        t.expect(1 <= tries <= 30, f"{tries} tries in 3 s")
    finally:
        t.sql("SET GLOBAL read_only = 0")
    t.wait(lambda: "the database is back" in d.log(), "the database is back", 20)
    t.wait_finished(30)
    Oracle(t).check(lease_slack_ms=20_000)
    t.note(f"{tries} tries in 3 s")
