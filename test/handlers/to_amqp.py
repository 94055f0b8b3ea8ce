"""amqp-publish, against a RabbitMQ."""
import base64
import glob
import hashlib
import json
import os
import signal
import socket
import struct
import threading

import pika

import scenarios
from rig import (DONE, LIMIT, NOT_SET_UP, PERMANENT, RETRY, Cutter, Failed, Program, free_port, judged,
                 judged_apart, left_in_time, mute_port, resolver, run_batch, run_one, same, wait_until)

MOST_BYTES = 8 << 20


def user(name, tags=""):
    """Its password is `secret`."""
    salt = b"salt"
    digest = hashlib.sha256(salt + b"secret").digest()
    return {"name": name, "password_hash": base64.b64encode(salt + digest).decode(), "tags": tags,
            "hashing_algorithm": "rabbit_password_hashing_sha256"}


def right(name, write):
    return {"user": name, "vhost": "/", "configure": "", "write": write, "read": ".*"}


def queue(name, **arguments):
    return {"name": name, "vhost": "/", "durable": True, "auto_delete": False, "arguments": arguments}


def binding(key, name):
    return {"source": "tasks", "vhost": "/", "destination": name, "destination_type": "queue", "routing_key": key,
            "arguments": {}}


DEFINITIONS = {
    "users": [user("dq"), user("reader")], "vhosts": [{"name": "/"}],
    "permissions": [right("dq", ".*"), right("reader", "")],
    "exchanges": [{"name": "tasks", "vhost": "/", "type": "direct", "durable": True, "auto_delete": False,
                   "internal": False, "arguments": {}}],
    "queues": [queue("orders"), queue("full", **{"x-max-length": 0, "x-overflow": "reject-publish"})],
    "bindings": [binding("orders", "orders"), binding("full", "full")]}


class Broker(Program):
    def __init__(self, directory):
        port, epmd = free_port(), str(free_port())
        os.makedirs(directory)
        with open(directory + "/definitions.json", "w") as file:
            json.dump(DEFINITIONS, file)
        with open(directory + "/rabbitmq.conf", "w") as file:
            file.write(f"listeners.tcp.1 = 127.0.0.1:{port}\nload_definitions = {directory}/definitions.json\n"
                       f"max_message_size = {MOST_BYTES}\nlog.console = true\nlog.file = false\n")
        open(directory + "/plugins", "w").write("[].\n")
        # One that the node finds, and does not leave behind.
        self.epmd = Program(directory + "/epmd", int(epmd), ["epmd", "-address", "127.0.0.1", "-port", epmd])
        self.epmd.start()
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": directory, "ERL_EPMD_PORT": epmd, "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"dq{os.getpid()}@localhost", "RABBITMQ_MNESIA_BASE": directory + "/data",
            "RABBITMQ_LOG_BASE": directory, "RABBITMQ_CONFIG_FILE": directory + "/rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": directory + "/plugins", "RABBITMQ_DIST_PORT": str(free_port())}
        # The script in PATH changes to the account of the package.
        command = sorted(glob.glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"))
        if not command:
            raise Failed("rabbitmq-server is missing")
        super().__init__(directory, port, command[-1:], self.environment)
        self.cutter = Cutter(port, b"dq-tag")
        with open(directory + "/password", "w") as file:
            file.write("secret\n")
        self.handler_env = {"AMQP_URL": f"amqp://127.0.0.1:{port}", "AMQP_USER": "dq",
                            "AMQP_PASSWORD_FILE": directory + "/password"}
        self.cut_env = {**self.handler_env, "AMQP_URL": f"amqp://127.0.0.1:{self.cutter.port}"}
        self.start()

    def connected(self):
        return pika.BlockingConnection(pika.ConnectionParameters(
            "127.0.0.1", self.port, credentials=pika.PlainCredentials("dq", "secret")))

    def start(self):
        super().start()
        wait_until("rabbitmq-server takes connections", self._answers)

    def _answers(self):
        try:
            self.connected().close()
            return True
        except (pika.exceptions.AMQPError, OSError):
            return False

    def stop(self):
        if self.process:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(LIMIT)
            self.process = None

    def destroy(self):
        self.stop()
        self.epmd.stop()

    def clear(self):
        self.received()

    def received(self):
        connection = self.connected()
        channel, got = connection.channel(), []
        while True:
            method, properties, body = channel.basic_get("orders", auto_ack=True)
            if not method:
                break
            got.append((properties.message_id, body))
            self.last = properties
        connection.close()
        return got


def both(what, broker, expected, arguments=("tasks", "orders"), body=b"x", **env):
    judged(what, ["amqp-publish"], arguments, expected, {**broker.handler_env, **env}, body)


def answers_are_mapped(broker):
    both("confirmed", broker, DONE)
    both("a full queue", broker, RETRY, ("tasks", "full"))
    both("no queue", broker, RETRY, ("tasks", "nowhere"))
    both("no exchange", broker, RETRY, ("no-such-exchange", "orders"))
    both("too long", broker, PERMANENT, body=bytes(MOST_BYTES + 1))
    both("nobody listens", broker, RETRY, AMQP_URL=f"amqp://127.0.0.1:{free_port()}")
    both("no right", broker, NOT_SET_UP, AMQP_USER="reader")
    both("a wrong user", broker, NOT_SET_UP, AMQP_USER="nobody")
    both("no such vhost", broker, NOT_SET_UP, AMQP_URL=f"amqp://127.0.0.1:{broker.port}/none")
    both("an unreadable password", broker, NOT_SET_UP, AMQP_PASSWORD_FILE="/nonexistent")
    both("no routing key", broker, NOT_SET_UP, ("tasks",))


class Ending:
    """A broker whose login ends behind START, or behind TUNE: with a Close that has this code and text, or, if the code
    is 0, without a word."""

    START = bytes.fromhex("000a000a00090000000000000005504c41494e00000005656e5f5553")
    TUNE = bytes.fromhex("000a001e000a000200000000")

    def __init__(self, tuned, code, text=b""):
        self.methods = [self.START, self.TUNE] if tuned else [self.START]
        self.close = struct.pack(">HHHB", 10, 50, code, len(text)) + text + bytes(4) if code else b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"amqp://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            client, _ = self.listener.accept()
            with client:
                client.recv(8)
                for method in [*self.methods, self.close]:
                    if method:
                        client.sendall(struct.pack(">BHI", 1, 0, len(method)) + method + b"\xce")
                        client.recv(65536)


def ends_of_a_login_are_told_apart():
    for tuned in (False, True):
        for code, text, expected in ((0, b"", RETRY), (320, b"CONNECTION_FORCED - shutdown", RETRY),
                                     (403, b"ACCESS_REFUSED - login", NOT_SET_UP),
                                     (530, b"NOT_ALLOWED - vhost", NOT_SET_UP)):
            judged(f"{code} {text}, tuned: {tuned}", ["amqp-publish"], ("tasks", "orders"), expected,
                   {"AMQP_URL": Ending(tuned, code, text).url})


def refusal_costs_its_task_only(broker):
    """A message that is too long closes the channel."""
    broker.clear()
    bodies = [b"a", bytes(MOST_BYTES + 1), b"b"]
    status, verdicts, output = run_batch("amqp-publish", ["tasks", "orders"], bodies, broker.handler_env)
    same(f"verdicts: {output[-300:]}", (status, [verdicts[n]["result"] for n in (1, 2, 3)]),
         (0, ["done", "fail", "done"]))
    same("messages", broker.received(), [("dq-1", b"a"), ("dq-3", b"b")])


def broker_that_is_down_leaves_the_batch_together():
    """None of the tasks can be the reason."""
    judged_apart("nobody listens", "amqp-publish", ["tasks", "orders"], {
        "AMQP_URL": f"amqp://127.0.0.1:{free_port()}"}, [(b"x", "retry", "AMQPConnectionError")] * 3)


def messages_say_what_they_should(broker):
    broker.clear()
    same("status", run_one("amqp-publish", ["tasks", "orders"], b"x", {
        **broker.handler_env, "ID_PREFIX": "shop-", "CONTENT_TYPE": "text/plain"}, run="9", token=3)[0], DONE)
    same("message", broker.received(), [("shop-9", b"x")])
    last = broker.last
    same("properties", (last.content_type, last.delivery_mode, last.headers),
         ("text/plain", 2, {"dq-tag": "t", "dq-token": "3"}))


def hanging_broker_is_left_in_time(broker):
    with mute_port() as port:
        both("a mute broker", broker, RETRY, AMQP_URL=f"amqp://127.0.0.1:{port}", TIMEOUT="1")


def hanging_resolver_is_left_in_time(broker, directory):
    left_in_time("amqp-publish", lambda: both(
        "a resolver that hangs", broker, RETRY, AMQP_URL="amqp://broker.invalid", TIMEOUT="1", **resolver(directory)))


def cases(directory, tasks):
    broker = Broker(directory + "/amqp")
    try:
        yield "each answer is retried, final, or returns the task", lambda: answers_are_mapped(broker)
        yield "a connection that ends during the login is retried", ends_of_a_login_are_told_apart
        yield "a refusal costs its task only", lambda: refusal_costs_its_task_only(broker)
        yield "batch: nobody listens", broker_that_is_down_leaves_the_batch_together
        yield "a message has its key, is persistent", lambda: messages_say_what_they_should(broker)
        yield "a broker that hangs is left in time", lambda: hanging_broker_is_left_in_time(broker)
        yield "a resolver that hangs is left in time", lambda: hanging_resolver_is_left_in_time(broker, directory)
        for batch in (1, 3):
            handler = {"script": "amqp-publish", "arguments": ["tasks", "orders"], "batch": batch}
            yield from scenarios.of(tasks, broker, "amqp", {**handler, **broker.handler_env}, broker.cut_env)
    finally:
        broker.destroy()
