"""mail and mail-batch: a server of SMTP that answers whatever it is asked to; mail sends through msmtp, a sendmail."""
import email
import email.policy
import json
import os
import socketserver
import threading

import scenarios
from rig import (BODIES, DONE, NOT_SET_UP, PERMANENT, RETRY, Failed, free_port, left_in_time, mute_port, resolver,
                 run_batch, run_one, same)

RESULTS = {PERMANENT: "fail", RETRY: "retry"}
ANSWERS = {"EHLO": "250 hello", "MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go on", ".": "250 ok",
           "RSET": "250 ok", "QUIT": "221 bye"}


class Session(socketserver.StreamRequestHandler):
    def handle(self):
        server = self.server.mail_server
        self.say("220 ready")
        while line := self.rfile.readline():
            word = line.decode().split()[0].upper()
            answer = server.answers.get(word, ANSWERS.get(word, "500 what?"))
            self.say(server.answers.get(line.decode().strip(), answer))
            if word == "QUIT":
                return
            if word == "DATA" and "DATA" not in server.answers:
                mail = self.mail()
                if "." not in server.answers:
                    server.mails.append(mail)
                if server.hide > 0:
                    server.hide -= 1
                    server.hidden += 1
                    return
                self.say(server.answers.get(".", ANSWERS["."]))

    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def mail(self):
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line[1:] if line.startswith(b".") else line)
        return b"".join(lines)


class MailServer:
    def __init__(self):
        self.port, self.mails, self.answers = free_port(), [], {}
        self.cutter, self.hide, self.hidden = self, 0, 0
        self.start()

    def start(self):
        socketserver.ThreadingTCPServer.allow_reuse_address = True
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", self.port), Session)
        self.server.daemon_threads, self.server.mail_server = True, self
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def clear(self):
        self.mails.clear()

    def messages(self):
        return [email.message_from_bytes(mail, policy=email.policy.default) for mail in self.mails]

    def received(self):
        """The number in the Message-ID as dq-N, and the body as it was added."""
        return [(message["Message-ID"].strip("<>").partition("@")[0], body_of(message)) for message in self.messages()]


def body_of(message):
    part = next(message.iter_attachments(), None)
    if part:
        return part.get_content()
    # a line feed is added to a text that does not end with one, and lines end otherwise on their way
    return message.get_content().encode().replace(b"\r\n", b"\n").rstrip(b"\n")


def sendmail(directory, port, host="127.0.0.1"):
    """A program that is called as sendmail is: msmtp with a configuration of its own."""
    with open(directory + "/msmtprc", "w") as file:
        file.write(f"account default\nhost {host}\nport {port}\nfrom shop@example.org\ntimeout 20\n")
    os.chmod(directory + "/msmtprc", 0o600)
    path = directory + "/sendmail"
    with open(path, "w") as file:
        file.write(f'#!/bin/sh\nexec msmtp --file={directory}/msmtprc "$@"\n')
    os.chmod(path, 0o755)
    return path


ORDER = json.dumps({"to": "a@example.org", "subject": "s", "text": "t"}).encode()
FROM = {"MAIL_FROM": "shop@example.org"}


def answers_are_mapped(server, program):
    for word, answer, expected in (
            ("MAIL", "553 no", PERMANENT), ("MAIL", "451 later", RETRY), ("RCPT", "550 no such user", PERMANENT),
            ("RCPT", "450 later", RETRY), ("DATA", "554 no", PERMANENT), ("DATA", "421 busy", RETRY),
            (".", "452 full", RETRY), (".", "554 spam", None)):  # msmtp reports both as 69
        server.answers = {word: answer}
        try:
            status, output = run_one("mail", ["a@example.org"], b"x", {"SENDMAIL": program})
            same(f"mail, {word}: {answer}: {output}", status, expected or RETRY)
            if answer not in output:
                raise Failed(f"the output does not say why: {output}")
            status, verdicts, output = run_batch("mail-batch", [f"127.0.0.1:{server.port}"], [ORDER], FROM)
            same(f"mail-batch, {word}: {answer}: {output}", (status, verdicts[1]["result"]),
                 (0, RESULTS[expected or PERMANENT]))
        finally:
            server.answers = {}


def statuses_are_mapped(directory):
    """Of a sendmail that exits as it is asked to."""
    path = directory + "/exits"
    with open(path, "w") as file:
        file.write('#!/bin/sh\ncat >/dev/null\nexit "${ID_PREFIX%-}"\n')
    os.chmod(path, 0o755)
    for status in range(64, 79):
        expected = {64: PERMANENT, 65: PERMANENT, 67: PERMANENT, 77: NOT_SET_UP, 78: NOT_SET_UP}.get(status, RETRY)
        got, output = run_one("mail", ["a@example.org"], b"x", {"SENDMAIL": path, "ID_PREFIX": f"{status}-"})
        same(f"sendmail exits with {status}: {output}", got, expected)
    for what, arguments, env, expected in (
            ("no sendmail", ["a@example.org"], {"SENDMAIL": "/nonexistent"}, NOT_SET_UP),
            ("a sendmail that cannot be executed", ["a@example.org"], {"SENDMAIL": directory + "/msmtprc"}, NOT_SET_UP),
            ("no recipient", [], {"SENDMAIL": path}, NOT_SET_UP),
            ("a subject of two lines", ["-s", "a\nBcc: b@example.org", "a@example.org"], {"SENDMAIL": path},
             PERMANENT)):
        same(what, run_one("mail", arguments, b"x", env)[0], expected)


def orders_cost_only_themselves(server):
    """A mail that cannot be sent, between two that can. The server does not know SMTPUTF8."""
    good = {"to": "a@example.org", "subject": "s", "text": "t"}
    for wrong in ({"to": ""}, {"to": "größe@example.org"}, {"to": "a@example.org, größe@example.org"},
                  {"subject": "a\nb"}, {"text": None}):
        server.clear()
        orders = [json.dumps(order).encode() for order in (good, {**good, **wrong}, good)]
        status, verdicts, output = run_batch("mail-batch", [f"127.0.0.1:{server.port}"], orders, FROM)
        same(f"{wrong}: {output}", (status, [verdicts[n]["result"] for n in sorted(verdicts)]),
             (0, ["done", "fail", "done"]))
        same(f"mails beside {wrong}", len(server.mails), 2)


def some_recipients_are_refused(server):
    """A retry would send the mail to the other one again."""
    server.clear()
    server.answers = {"rcpt TO:<gone@example.org>": "550 no such user"}
    order = json.dumps({"to": "a@example.org, gone@example.org", "subject": "s", "text": "t"}).encode()
    status, verdicts, output = run_batch("mail-batch", [f"127.0.0.1:{server.port}"], [order], FROM)
    server.answers = {}
    (verdict,) = verdicts.values()
    same(f"status and result: {output}", (status, verdict["result"]), (0, "fail"))
    same("the error names who is left out", "gone@example.org" in verdict["error"], True)
    same("mails", len(server.mails), 1)


def hanging_server_is_left_in_time(directory):
    with mute_port() as port:
        program = sendmail(directory, port)
        same("mail", run_one("mail", ["a@example.org"], b"x", {"SENDMAIL": program, "TIMEOUT": "1"})[0], RETRY)
        status, verdicts, _ = run_batch("mail-batch", [f"127.0.0.1:{port}"], [ORDER], {**FROM, "TIMEOUT": "1"})
        same("mail-batch", (status, verdicts), (1, {}))


def hanging_resolver_is_left_in_time(directory):
    program = sendmail(directory, 25, "mail.invalid")
    env = {**resolver(directory), "TIMEOUT": "1"}
    left_in_time("mail", lambda: same(
        "mail", run_one("mail", ["a@example.org"], b"x", {"SENDMAIL": program, **env})[0], RETRY))
    left_in_time("mail-batch", lambda: same(
        "mail-batch", run_batch("mail-batch", ["mail.invalid"], [ORDER], {**FROM, **env})[:2], (1, {})))


def whole_mails_are_sent(server, program):
    server.clear()
    mail = b"To: b@example.org\nCc: c@example.org\nSubject: whole\n\n.\nfrom here\n"
    env = {"SENDMAIL": program, "MAIL_DOMAIN": "shop.example", "ID_PREFIX": "main-"}
    same("mail", run_one("mail", ["--message"], mail, env)[0], DONE)
    same("mail", run_one("mail", ["--message"], b"Message-Id: <own@example.org>\n" + mail, env)[0], DONE)
    words = ["-f", "x@example.org", "-s", "größe", "a@example.org", "b@example.org"]
    same("mail", run_one("mail", words, b"y\n", env)[0], DONE)
    got = [(m["Message-ID"], m["To"], m["Subject"], m.get_content().replace("\r\n", "\n")) for m in server.messages()]
    same("mails", got, [
        ("<main-7@shop.example>", "b@example.org", "whole", ".\nfrom here\n"),
        ("<own@example.org>", "b@example.org", "whole", ".\nfrom here\n"),
        ("<main-7@shop.example>", "a@example.org, b@example.org", "größe", "y\n")])


class Orders:
    """The queue as mail-batch needs it: a body becomes the text of a mail."""

    def __init__(self, queue):
        self.queue = queue
        for name in ("start", "stop", "wait_done", "sql"):
            setattr(self, name, getattr(queue, name))

    def add(self, tag, body):
        return self.queue.add(tag, json.dumps({"to": "a@example.org", "subject": "s", "text": body.decode()}).encode())


def cases(directory, queue):
    server = MailServer()
    program = sendmail(directory, server.port)
    yield "each answer of the server is retried or final", lambda: answers_are_mapped(server, program)
    yield "each status of sendmail is retried, final, or returns the task", lambda: statuses_are_mapped(directory)
    yield "batch: an order that cannot be sent costs only itself", lambda: orders_cost_only_themselves(server)
    yield "batch: a mail that some recipients did not get fails", lambda: some_recipients_are_refused(server)
    yield "whole mails are sent as they are, with a Message-ID", lambda: whole_mails_are_sent(server, program)
    one = {"script": "mail", "arguments": ["a@example.org"], "SENDMAIL": program}
    batch = {"script": "mail-batch", "arguments": [f"127.0.0.1:{server.port}"], "batch": 3, **FROM}
    text = {"text": "größer".encode()}
    yield from scenarios.of(queue, server, "mail", one, bodies={**BODIES, **text})
    yield from scenarios.of(
        Orders(queue), server, "mail", batch, bodies={**text, "dots": b".\n..\n.", "long": b"x" * 9999})
    yield "a server that hangs is left in time", lambda: hanging_server_is_left_in_time(directory)
    yield "a resolver that hangs is left in time", lambda: hanging_resolver_is_left_in_time(directory)
    server.stop()
