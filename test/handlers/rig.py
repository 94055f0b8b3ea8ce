"""What the cases of test/handlers share: a queue, handlers run by themselves or by dqd, servers of their own."""
import base64
import contextlib
import hashlib
import json
import os
import select
import socket
import subprocess
import tempfile
import threading
import time

TOP = os.environ.get("DQ_TOP") or os.path.realpath(os.path.dirname(__file__) + "/../..")
BIN = os.environ.get("DQ_BIN") or TOP + "/bin"
HANDLERS = TOP + "/etc/handlers.d/"
LIMIT = 300  # seconds that only a hang reaches
EVERY_BYTE = bytes(range(256))
BODIES = {"every byte": EVERY_BYTE, "nothing": b"", "one NUL": b"\0", "lines": b"\r\n\n", "text": "größer\n".encode(),
          "256 KiB": EVERY_BYTE * 1024}  # longer than a pipe and an argument may be
DONE, PERMANENT, RETRY, NOT_SET_UP = 0, 65, 75, 126  # exit statuses
STEP_MS = 300  # at least that long between two attempts
RETRY_LIST = [f"{STEP_MS}ms"] * 20 + ["5s"] * 40  # longer than a restart of the slowest destination takes
FAILED = "2"  # a status of dq_task
nursery = None  # a forks.Nursery, which the main program starts


class Failed(Exception):
    pass


def same(what, got, expected):
    if got != expected:
        raise Failed(f"{what}: {got!r:.2000}, not {expected!r:.2000}")


def wait_until(what, condition):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {LIMIT} s")
        time.sleep(0.02)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextlib.contextmanager
def mute_port():
    """That of a server which accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


# Stands before the C library's, so that the test asks no name server.
RESOLVER = """
#include <netdb.h>
#include <stdlib.h>
#include <unistd.h>

/* As with the resolver, a signal does not end the wait. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **ret)
{
    (void)host, (void)port, (void)hints, (void)ret;
    while (!getenv("RESOLVER_SAYS"))
        pause();
    return atoi(getenv("RESOLVER_SAYS"));
}
"""


def resolver(directory, says=None):
    """The environment in which the resolver gives that answer, or none."""
    library = directory + "/resolver.so"
    if not os.path.exists(library):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"], input=RESOLVER, text=True, check=True)
    return {"LD_PRELOAD": library} | ({} if says is None else {"RESOLVER_SAYS": str(says)})


def left_in_time(what, run):
    """run() runs a handler whose TIMEOUT is a second."""
    began = time.monotonic()
    run()
    if time.monotonic() - began > LIMIT / 10:
        raise Failed(f"{what}: it took {time.monotonic() - began:.1f} s")


def accepts(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def checked(command, **more):
    """Runs it, and returns what it has printed."""
    got = subprocess.run(command, capture_output=True, **more)
    if got.returncode:
        raise Failed(f"{command}: status {got.returncode}: {got.stderr.decode()}")
    return got.stdout.decode()


class Client:
    """A mariadb client of root that stays connected. Its server may be stopped: the next query connects again."""

    END = b"the answer ends here\n"

    def __init__(self, server_socket):
        self.command = ["mariadb", "--no-defaults", "--batch", "--unbuffered", "--skip-column-names",
                        "--skip-reconnect", "--user=root", "--socket=" + server_socket]
        self.process = None

    def query(self, database, text):
        """Runs SQL. Returns the rows, in which everything is text."""
        if not self.process:
            self.errors = holding()
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=self.errors)
        end = "" if text.rstrip().endswith((";", "//")) else ";"
        self.process.stdin.write(
            f"USE {database};\n{text.rstrip()}{end}\nDELIMITER ;\nSELECT '".encode() + self.END[:-1] + b"';\n")
        self.process.stdin.flush()
        rows = []
        while (line := self.process.stdout.readline()) != self.END:
            if not line:
                self.end()
                raise Failed(f"{text}: {contents(self.errors)}")
            rows.append(line.decode()[:-1].split("\t"))
        return rows

    def end(self):
        if self.process:
            self.process.communicate()
            self.process = None


def holding(data=b""):
    """A file in memory, which is read from its beginning."""
    file = os.fdopen(os.memfd_create("handler"), "w+b")
    file.write(data)
    file.seek(0)
    return file


def contents(file):
    file.seek(0)
    return file.read().decode(errors="replace")


def environment(**more):
    """What dqd gives to handlers."""
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": "/nonexistent", **more}


def run_script(path, arguments, env, files, memory=None):
    """Runs a handler: by itself, or in a fork of `nursery`, unless its environment has a library of its own."""
    env = environment(**env)
    if nursery and nursery.takes(path) and "LD_PRELOAD" not in env:
        return nursery.run([path, *arguments], env, files, LIMIT, memory)
    command = ["prlimit", f"--as={memory}", path] if memory else [path]
    stdin, stdout, stderr, *reply = files
    return subprocess.run([*command, *arguments], stdin=stdin, stdout=stdout, stderr=stderr, timeout=LIMIT, env=env,
                          preexec_fn=(lambda: os.dup2(reply[0].fileno(), 3)) if reply else None,
                          close_fds=not reply).returncode


def run_one(script, arguments, body, env, run="7", token=1, reply=None):
    """Runs a handler of one task. Returns its exit status and output. reply: a file for its answers."""
    env = {**env, "DQ_ID": run.split("-")[0], "DQ_RUN_ID": run, "DQ_TAG": "t", "DQ_KEY": "", "DQ_TOKEN": str(token),
           "DQ_ATTEMPT": "1"} | ({"DQ_REPLY_FD": "3"} if reply else {})
    with holding(body) as stdin, holding() as out:
        status = run_script(HANDLERS + script, arguments, env, [stdin, out, out, *([reply] if reply else [])])
        return status, contents(out)


def line_of(task, body):
    """A task as a batch handler reads it."""
    try:
        text = {"body": body.decode()}
    except UnicodeDecodeError:
        text = {"body_base64": base64.b64encode(body).decode()}
    names = {"id": task, "run_id": str(task), "tag": "t"}
    return json.dumps({**names, "attempt": 1, "max_attempts": 3, "token": 1, **text})


def run_batch(script, arguments, bodies, env, memory=4 << 30):
    """Runs a handler of a batch in that many bytes. Returns its exit status, the verdicts by task, and its output."""
    lines = "".join(line_of(number + 1, body) + "\n" for number, body in enumerate(bodies))
    env = {**env, "DQ_TAG": "t", "DQ_BATCH": str(len(bodies))}
    with holding(lines.encode()) as stdin, holding() as out, holding() as err:
        status = run_script(HANDLERS + script, arguments, env, [stdin, out, err], memory)
        verdicts = [json.loads(line) for line in contents(out).splitlines()]
        return status, {v["id"]: v for v in verdicts}, contents(out) + contents(err)


def judged(what, scripts, arguments, expected, env, body=b"x", text=""):
    """Runs one task, and the same as a batch, and checks that both are judged so, and that the output has the text."""
    status, output = run_one(scripts[0], arguments, body, env)
    same(f"{scripts[0]}, {what}: {output}", status, expected)
    if text not in output:
        raise Failed(f"{scripts[0]}, {what}: not in the output: {text}: {output}")
    status, verdicts, output = run_batch(scripts[-1], arguments, [body], env)
    got = verdicts[1]["result"] if 1 in verdicts else "retry" if status in (1, RETRY) else status
    same(f"{scripts[-1]}, a batch, {what}: {output}", got,
         {DONE: "done", PERMANENT: "fail", RETRY: "retry", NOT_SET_UP: NOT_SET_UP}[expected])
    if text not in output:
        raise Failed(f"{scripts[-1]}, a batch, {what}: not in the output: {text}: {output}")


def judged_apart(what, script, arguments, env, orders, **more):
    """Runs a batch of (body, result, text), and checks that each task is judged so by itself, and its error has the
    text. The result None: it has no verdict, which is true of the end of the batch only, with the exit status 75."""
    status, verdicts, output = run_batch(script, arguments, [body for body, _, _ in orders], env, **more)
    expected = {number + 1: result for number, (_, result, _) in enumerate(orders) if result}
    same(f"{script}, {what}: {output}", (status, {number: v["result"] for number, v in verdicts.items()}),
         (0 if len(expected) == len(orders) else RETRY, expected))
    for number, (_, _, text) in enumerate(orders):
        if text and text not in verdicts[number + 1]["error"]:
            raise Failed(f"{script}, {what}: not in the error of task {number + 1}: {text}: {verdicts[number + 1]}")


class Queue:
    """A database of dq, its tasks, and a dqd."""

    def __init__(self, directory):
        self.directory, self.dqd, self.names = directory + "/dq", None, 0
        self.environment = {**os.environ, "DQ_SANDBOX": self.directory, "DQ_CONFIG": self.directory + "/dq.ini",
                            "DQ_TOP": TOP, "DQ_BIN": BIN}
        self.environment.pop("XDG_CONFIG_HOME", None)
        checked([TOP + "/bin/dq-sandbox", "start"], env=self.environment)
        self.client = Client(os.path.realpath(self.directory + "/server") + "/mysql.sock")

    def sql(self, text):
        return self.client.query("dq", text)

    def add(self, tag, body, key=None):
        command = [BIN + "/dq", "-q", "add", tag, "-", *(["--key", key] if key else [])]
        return int(checked(command, env=self.environment, input=body))

    def retry(self, task):
        checked([BIN + "/dq", "-q", "retry", str(task)], env=self.environment)

    def start(self, tag, script, arguments, batch=1, **env):
        """A dqd whose only handler this is."""
        entry = {"run": [HANDLERS + script, *arguments], "batch": batch, "timeout": "60s", "env": env,
                 "retry": RETRY_LIST}
        with open(self.directory + "/handlers.yaml", "w") as file:
            file.write("handlers:\n  " + json.dumps(tag) + ": " + json.dumps(entry) + "\n")
        self.log = open(self.directory + "/dqd.log", "a")
        self.dqd = subprocess.Popen([BIN + "/dqd", "--resident"], env=self.environment, stdout=self.log,
                                    stderr=self.log)

    def stop(self):
        if self.dqd:
            self.dqd.terminate()
            self.dqd.wait(LIMIT)
            self.log.close()
            self.dqd = None

    def wait_done(self, tag):
        def done():
            left = self.sql(f"SELECT id, status, attempt, error_stack FROM dq_task WHERE tag = '{tag}' AND status <> 1")
            if any(status == FAILED for _, status, _, _ in left):
                raise Failed(f"tasks of {tag} fail: {left}")
            return not left
        wait_until(f"all tasks of {tag} are done", done)

    def destroy(self):
        self.stop()
        self.client.end()
        checked([TOP + "/bin/dq-sandbox", "destroy", "--force"], env=self.environment)


class Cutter:
    """A proxy in front of a TCP port. If `hide` is set to a count, it hides as many answers to what contains `mark`: it
    closes the connection when the answer has come."""

    def __init__(self, port, mark):
        self.target, self.mark, self.hide, self.hidden = port, mark, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client:
            try:
                with socket.create_connection(("127.0.0.1", self.target)) as server:
                    self._relay(client, server)
            except OSError:
                pass

    def _relay(self, client, server):
        asked = b""
        while True:
            for source in select.select([client, server], [], [])[0]:
                data = source.recv(65536)
                if not data:
                    return
                if source is client:
                    asked += data
                    server.sendall(data)
                elif self.mark in asked and self.hide > 0:
                    self.hide -= 1
                    self.hidden += 1
                    return
                else:
                    client.sendall(data)


def digest(body):
    return hashlib.sha256(body).hexdigest()[:12], len(body)


class Program:
    """A server that a test starts, stops and starts again."""

    def __init__(self, directory, port, command, env=None):
        self.directory, self.port, self.command, self.process = directory, port, command, None
        self.env = env
        os.makedirs(directory, exist_ok=True)

    def start(self):
        with open(self.directory + "/log", "ab") as log:
            self.process = subprocess.Popen(self.command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.env, start_new_session=True)
        wait_until(f"{self.command[0]} accepts connections",
                   lambda: accepts(self.port) or self._ended())

    def _ended(self):
        if self.process.poll() is not None:
            with open(self.directory + "/log", errors="replace") as log:
                raise Failed(f"{self.command[0]} has ended: {log.read()[-2000:]}")

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(LIMIT)
            self.process = None
