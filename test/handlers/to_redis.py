"""redis-push and redis-push-batch, against a redis-server."""
import itertools
import os
import socket
import subprocess
import threading

import scenarios
from rig import (DONE, EVERY_BYTE, NOT_SET_UP, PERMANENT, RETRY, Cutter, Program, free_port, judged,
                 left_in_time, mute_port, resolver, run_batch, run_one, same, wait_until)

NUMBERS = itertools.count()


class Redis(Program):
    def __init__(self, directory, *options):
        port = free_port()
        super().__init__(directory, port, ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "",
                                           "--appendonly", "no", "--dir", directory, *options])
        self.cutter = Cutter(port, b"EVAL")
        self.url, self.cut_url = f"redis://127.0.0.1:{port}", f"redis://127.0.0.1:{self.cutter.port}"
        self.start()

    def cli(self, *words):
        return subprocess.run(["redis-cli", "-e", "-p", str(self.port), *words], check=True, capture_output=True).stdout

    def answers(self):
        return subprocess.run(["redis-cli", "-e", "-p", str(self.port), "PING"], capture_output=True).returncode == 0

    def start(self):
        super().start()
        wait_until("redis-server answers", self.answers)

    def clear(self):
        self.cli("FLUSHALL")

    def received(self):
        """The list `tasks`, whose entries have no key."""
        count = int(self.cli("LLEN", "tasks"))
        # redis-cli ends each answer with a line feed of its own
        return [(None, self.cli("LINDEX", "tasks", str(at))[:-1]) for at in range(count)]


class Refusing:
    """A server that answers each EVAL with the same error."""

    def __init__(self, error):
        self.error = error
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            client, _ = self.listener.accept()
            with client:
                while data := client.recv(65536):
                    client.sendall(b"-" + self.error + b"\r\n" if b"EVAL" in data else b"+OK\r\n")


def both(what, url, expected, arguments=("LPUSH", "tasks"), **env):
    """With an id that Redis does not know yet."""
    env.update(REDIS_URL=url, ID_PREFIX=f"{next(NUMBERS)}-")
    judged(what, ["redis-push", "redis-push-batch"], arguments, expected, env)


def errors_are_mapped(redis, directory):
    redis.clear()
    redis.cli("SET", "word", "x")
    both("a list", redis.url, DONE)
    both("a word", redis.url, PERMANENT, ("LPUSH", "word"))
    both("no such command", redis.url, PERMANENT, ("LPUSHH", "tasks"))
    both("no key", redis.url, NOT_SET_UP, ("XADD",))
    both("wrong arguments", redis.url, PERMANENT, ("XADD", "stream", "MAXLEN", "some"))
    for error in (b"LOADING Redis is loading the dataset in memory", b"READONLY You can't write", b"OOM not allowed",
                  b"MASTERDOWN Link with MASTER is down", b"CLUSTERDOWN The cluster is down", b"TRYAGAIN Multiple keys",
                  b"BUSY Redis is busy running a script", b"MISCONF Errors writing to the AOF file",
                  b"NOREPLICAS Not enough", b"ERR max number of clients reached"):
        both(error.decode(), Refusing(error).url, RETRY)
    # Before version 7, Redis says so of an error of a command in a script.
    for code, expected in (("READONLY", RETRY), ("OOM", RETRY), ("ERR", PERMANENT), ("WRONGTYPE", PERMANENT)):
        error = f"ERR Error running script (call to f_0123): @user_script:2: @user_script: 2: -{code} it is"
        both(error, Refusing(error.encode()).url, expected)
    both("nobody listens", f"redis://127.0.0.1:{free_port()}", RETRY)
    both("an unreadable password", redis.url, NOT_SET_UP, REDIS_PASSWORD_FILE="/nonexistent")
    redis.cli("CONFIG", "SET", "maxmemory", "1")
    both("out of memory", redis.url, RETRY, ("LPUSH", "other"))
    redis.cli("CONFIG", "SET", "maxmemory", "0")
    redis.cli("REPLICAOF", "127.0.0.1", str(free_port()))
    both("a replica", redis.url, RETRY, ("LPUSH", "other"))
    redis.cli("REPLICAOF", "NO", "ONE")


def entry_that_is_not_added_is_tried_again(redis):
    """The stream does not exist yet, and XADD may not make it."""
    redis.clear()
    arguments = ["XADD", "stream", "NOMKSTREAM"]
    env = {"REDIS_URL": redis.url, "ID_PREFIX": "x-"}
    judged("no stream", ["redis-push", "redis-push-batch"], arguments, RETRY, env, text="NOSTREAM")
    same("keys", redis.cli("KEYS", "*").strip(), b"")
    redis.cli("XADD", "stream", "*", "a", "b")
    judged("a stream", ["redis-push", "redis-push-batch"], arguments, DONE, env)
    same("entries", redis.cli("XLEN", "stream"), b"3\n")


def passwords_come_from_a_file(redis, directory):
    name = directory + "/password"
    with open(name, "w") as file:
        file.write("secret\n")
    redis.clear()
    redis.cli("CONFIG", "SET", "requirepass", "secret")
    try:
        both("no password", redis.url, NOT_SET_UP)
        both("the password", redis.url, DONE, REDIS_PASSWORD_FILE=name)
        os.truncate(name, 3)
        both("a wrong password", redis.url, NOT_SET_UP, REDIS_PASSWORD_FILE=name)
    finally:
        redis.cli("-a", "secret", "CONFIG", "SET", "requirepass", "")


def account_is_that_of_the_url(redis, directory):
    """And not the default one, which lacks a right here."""
    name = directory + "/password"
    with open(name, "w") as file:
        file.write("secret\n")

    def url(user):
        return redis.url.replace("//", f"//{user}@")

    redis.clear()
    for user, *rules in (("app", ">secret", "~*", "+@all"), ("open", "nopass", "~*", "+@all"),
                         ("no-eval", ">secret", "~*", "+@all", "-eval"),
                         ("no-lpush", ">secret", "~*", "+@all", "-lpush"),
                         ("no-key", ">secret", "~{tasks}*", "+@all")):
        redis.cli("ACL", "SETUSER", user, "on", *rules)
    redis.cli("ACL", "SETUSER", "default", "-lpush")
    try:
        both("the default account", redis.url, NOT_SET_UP)
        both("an account", url("app"), DONE, REDIS_PASSWORD_FILE=name)
        both("an account and a colon", url("app:"), DONE, REDIS_PASSWORD_FILE=name)
        both("no account", url(""), NOT_SET_UP)
        same("the answer to no account", "AUTH" in run_one("redis-push", ["LPUSH", "tasks"], b"x", {
            "REDIS_URL": url("")})[1], False)
        both("an account that needs no password", url("open"), DONE)
        both("an account and its password", url("app:secret"), DONE)
        for user in ("nobody", "no-eval", "no-lpush"):
            both(user, url(user), NOT_SET_UP, REDIS_PASSWORD_FILE=name)
        both("no-key", url("no-key"), NOT_SET_UP, REDIS_PASSWORD_FILE=name)
        same("%", run_one("redis-push", ["LPUSH", "tasks"], b"x", {"REDIS_URL": url("a%70p")})[0], NOT_SET_UP)
    finally:
        redis.cli("ACL", "SETUSER", "default", "+lpush")


def body_that_breaks_the_connection_costs_itself(redis):
    """One that is longer than the server takes."""
    redis.clear()
    redis.cli("CONFIG", "SET", "proto-max-bulk-len", "1mb")
    try:
        status, verdicts, output = run_batch("redis-push-batch", ["LPUSH", "tasks"], [b"x", bytes(3 << 20), b"y"], {
            "REDIS_URL": redis.url})
    finally:
        redis.cli("CONFIG", "SET", "proto-max-bulk-len", "512mb")
    results = {number: verdict["result"] for number, verdict in verdicts.items()}
    same(f"the long one is done: {output}", results.pop(2) == "done", False)
    same(f"the others: {output}", (status, results), (0, {1: "done", 3: "done"}))
    same("bodies", sorted(body for _, body in redis.received()), [b"x", b"y"])


def hanging_server_is_left_in_time(redis):
    with mute_port() as port:
        both("a mute server", f"redis://127.0.0.1:{port}", RETRY, TIMEOUT="1")


def hanging_resolver_is_left_in_time(directory):
    left_in_time("redis-push", lambda: both(
        "a resolver that hangs", "redis://redis.invalid", RETRY, TIMEOUT="1", **resolver(directory)))


def each_command_hands_over_the_body(redis):
    env = {"REDIS_URL": redis.url}
    redis.clear()
    for batch, run in ((0, lambda words: run_one("redis-push", words, EVERY_BYTE, env)),
                       (1, lambda words: run_batch("redis-push-batch", words, [EVERY_BYTE], env))):
        redis.clear()
        same("RPUSH", run(["RPUSH", "list"])[0], DONE)
        same("RPUSH", redis.cli("LINDEX", "list", "0")[:-1], EVERY_BYTE)
        same("XADD", run(["XADD", "stream", "MAXLEN", "~", "100"])[0], DONE)
        number = b"1" if batch else b"7"
        entry = redis.cli("XRANGE", "stream", "-", "+").split(b"\n", 1)[1][:-1]
        same("XADD", entry, b"id\ndq-" + number + b"\ntag\nt\nbody\n" + EVERY_BYTE)
        listener = subprocess.Popen(["redis-cli", "-p", str(redis.port), "SUBSCRIBE", "news"], stdout=subprocess.PIPE)
        try:
            wait_until("somebody listens", lambda: redis.cli("PUBSUB", "NUMSUB", "news") == b"news\n1\n")
            same("PUBLISH", run(["PUBLISH", "news"])[0], DONE)
            got = b""
            while len(got) < len(b"subscribe\nnews\n1\nmessage\nnews\n") + len(EVERY_BYTE) + 1:
                got += listener.stdout.read1()
            same("PUBLISH", got.partition(b"message\nnews\n")[2][:-1], EVERY_BYTE)
        finally:
            listener.kill()
            listener.wait()
            listener.stdout.close()


def cases(directory, queue):
    redis = Redis(directory + "/redis")
    try:
        yield "each error is retried, final, or returns the task", lambda: errors_are_mapped(redis, directory)
        yield "an entry that is not added is tried again", lambda: entry_that_is_not_added_is_tried_again(redis)
        yield "the password comes from a file", lambda: passwords_come_from_a_file(redis, directory)
        yield "the account is that of the URL", lambda: account_is_that_of_the_url(redis, directory)
        yield "batch: a body that breaks the connection costs itself", lambda: (
            body_that_breaks_the_connection_costs_itself(redis))
        yield "a server that hangs is left in time", lambda: hanging_server_is_left_in_time(redis)
        yield "a resolver that hangs is left in time", lambda: hanging_resolver_is_left_in_time(directory)
        yield "LPUSH, XADD and PUBLISH hand over the body", lambda: each_command_hands_over_the_body(redis)
        for script, batch in (("redis-push", 1), ("redis-push-batch", 3)):
            handler = {"script": script, "arguments": ["LPUSH", "tasks"], "batch": batch, "REDIS_URL": redis.url}
            cut = {"REDIS_URL": redis.cut_url}
            yield from scenarios.of(queue, redis, "redis", handler, cut, repeats=False)
    finally:
        redis.stop()
