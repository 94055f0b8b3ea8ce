"""mail and mail-batch: a server of SMTP that answers whatever it is asked to; mail sends through msmtp, a sendmail."""
import email
import email.policy
import json
import os
import re
import socketserver
import threading

import scenarios
from rig import (BODIES, DONE, EVERY_BYTE, NOT_SET_UP, PERMANENT, RETRY, Failed, free_port, judged_apart, left_in_time,
                 mute_port, resolver, run_batch, run_one, same)

RESULTS = {PERMANENT: "fail", RETRY: "retry"}
ANSWERS = {"EHLO": "250 hello", "MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go on", ".": "250 ok",
           "RSET": "250 ok", "QUIT": "221 bye"}


END, HANG, GONE = "end", "hang", "gone"  # instead of an answer: of the connection, for ever, of the server


class Session(socketserver.StreamRequestHandler):
    def handle(self):
        server, begun, to = self.server.mail_server, False, ""
        try:
            self.say(server.answers.get("", "220 ready"))
            while line := self.rfile.readline():
                word = line.decode().split()[0].upper()
                to = re.search("(<.*>|$)", line.decode())[0] if word == "RCPT" else to
                answer = self.answer(word, to)
                if word == "MAIL" and begun:
                    answer = "503 nested MAIL command"
                self.say(answer)
                begun = begun or word == "MAIL" and answer == ANSWERS["MAIL"]
                if word == "QUIT":
                    return
                if word == "RSET":
                    begun = False
                if word == "DATA" and answer == ANSWERS["DATA"]:
                    mail, begun, answer = self.mail(), False, self.answer(".", to)
                    if answer == ANSWERS["."]:
                        server.mails.append(mail)
                    if server.hide > 0:
                        server.hide -= 1
                        server.hidden += 1
                        return
                    self.say(answer)
        except OSError:
            pass

    def answer(self, word, to):
        """What `answers` has for the command, or for it and the last recipient."""
        answers = self.server.mail_server.answers
        return answers.get(f"{word} {to}", answers.get(word, ANSWERS.get(word, "500 what?")))

    def say(self, text):
        if text == HANG:
            self.rfile.read()
        if text == GONE:
            self.server.mail_server.stop()
        if text in (END, HANG, GONE):
            raise OSError
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


def order(**more):
    return json.dumps({"to": "a@example.org", "subject": "s", "text": "t", **more}).encode()


def orders_cost_only_themselves(server):
    """Mails that cannot be sent, between others that can. The server does not know SMTPUTF8."""
    wrong = [order(**more) for more in (
        {"to": ""}, {"to": '"'}, {"to": "größe@example.org"}, {"to": "a@example.org, größe@example.org"},
        {"to": "(" * 9999}, {"to": {}}, {"to": "a@example.org\nBcc: b@example.org"}, {"to": "\ud800@example.org"},
        {"subject": "a\nb"}, {"subject": "\ud800"}, {"text": None}, {"text": "\ud800"}, {"text": 1})]
    wrong += [b"", b"[", b"1", b"null", b"[]", b'"to"', b"{}", b"[" * 99999, EVERY_BYTE]
    server.clear()
    orders = [(order(), "done", "")]
    for body in wrong:
        orders += [(body, "fail", ""), (order(), "done", "")]
    judged_apart("orders that cannot be sent", "mail-batch", [f"127.0.0.1:{server.port}"], FROM, orders)
    same("mails", len(server.mails), len(wrong) + 1)


def wrong_set_ups_return_the_tasks(server):
    """What would be wrong with every mail."""
    address = f"127.0.0.1:{server.port}"
    for what, arguments, env in (
            ("no sender", [address], {}), ("an empty sender", [address], {"MAIL_FROM": ""}),
            ("a sender that is none", [address], {"MAIL_FROM": '"'}), ("no server", [], FROM),
            ("a domain of two lines", [address], {**FROM, "MAIL_DOMAIN": "a\nb"}),
            ("a time that is none", [address], {**FROM, "TIMEOUT": "1m"})):
        same(what, run_batch("mail-batch", arguments, [ORDER], env)[:2], (NOT_SET_UP, {}))


def slow_order_costs_only_itself(server):
    """The parser of addresses needs hours for this one."""
    slow, good = order(to="(a)" * 100000 + "a@example.org"), (order(), "done", "")
    judged_apart("an order that takes long", "mail-batch", [f"127.0.0.1:{server.port}"], {**FROM, "TASK_TIMEOUT": "3"},
                 [good, (slow, "retry", "NoAnswerInTime"), good])


def answers_cost_only_their_order(server):
    """Whatever the server answers to one, and wherever."""
    wild, good = order(to="b@example.org"), (order(), "done", "")
    for answer, result, text in (
            ("550 no", "fail", "SMTP status 550"), ("450 later", "retry", "SMTP status 450"),
            ("421 bye", "retry", "SMTP status 421"), ("999 what", "retry", "SMTP status 999"),
            ("nonsense", "retry", "SMTP status -1"), ("x" * 99999, "retry", "Line too long"), (END, "retry", "closed"),
            ("250 ok\r\n250 one too many\r\n354 two too many", "retry", ""), (HANG, "retry", "NoAnswerInTime")):
        for word in ("RCPT", "DATA", "."):
            if word == "." and answer.startswith("250"):
                continue  # the mail has been taken
            what = f"{word}: {answer:.20}"
            server.answers = {f"{word} <b@example.org>": answer}
            server.clear()
            judged_apart(what, "mail-batch", [f"127.0.0.1:{server.port}"], {**FROM, "TASK_TIMEOUT": "2"},
                         [good, (wild, result, text), good, good])
            same(f"mails, {what}", len(server.mails), 3)
    server.answers = {}


def server_that_goes_away(server):
    """At first, none of the orders can be the reason; later, the one before may be."""
    with mute_port() as port:
        judged_apart("a mute server", "mail-batch", [f"127.0.0.1:{port}"], {**FROM, "TASK_TIMEOUT": "1"}, [
            (ORDER, "retry", "NoAnswerInTime")] * 3)
    server.answers = {"": "421 busy"}
    judged_apart("a busy server", "mail-batch", [f"127.0.0.1:{server.port}"], FROM, [(ORDER, "retry", "421")] * 3)
    server.answers = {". <b@example.org>": GONE}
    judged_apart("a server that ends", "mail-batch", [f"127.0.0.1:{server.port}"], FROM, [
        (ORDER, "done", ""), (order(to="b@example.org"), "retry", ""), (ORDER, None, ""), (ORDER, None, "")])
    judged_apart("no server", "mail-batch", [f"127.0.0.1:{server.port}"], FROM, [(ORDER, "retry", "refused")] * 3)
    server.answers = {}
    server.start()


def some_recipients_are_refused(server):
    """A retry would send the mail to the other one again."""
    server.clear()
    server.answers = {"RCPT <gone@example.org>": "550 no such user"}
    body = order(to="a@example.org, gone@example.org")
    status, verdicts, output = run_batch("mail-batch", [f"127.0.0.1:{server.port}"], [body], FROM)
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
        same("mail-batch", (status, verdicts), (RETRY, {}))


def hanging_resolver_is_left_in_time(directory):
    program = sendmail(directory, 25, "mail.invalid")
    env = {**resolver(directory), "TIMEOUT": "1"}
    left_in_time("mail", lambda: same(
        "mail", run_one("mail", ["a@example.org"], b"x", {"SENDMAIL": program, **env})[0], RETRY))
    left_in_time("mail-batch", lambda: same(
        "mail-batch", run_batch("mail-batch", ["mail.invalid"], [ORDER], {**FROM, **env})[:2], (RETRY, {})))


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
        for name in ("retry", "start", "stop", "wait_done", "sql"):
            setattr(self, name, getattr(queue, name))

    def add(self, tag, body):
        return self.queue.add(tag, json.dumps({"to": "a@example.org", "subject": "s", "text": body.decode()}).encode())


def cases(directory, queue):
    server = MailServer()
    program = sendmail(directory, server.port)
    yield "each answer of the server is retried or final", lambda: answers_are_mapped(server, program)
    yield "each status of sendmail is retried, final, or returns the task", lambda: statuses_are_mapped(directory)
    yield "batch: an order that cannot be sent costs only itself", lambda: orders_cost_only_themselves(server)
    yield "batch: a host that is not set up returns the tasks", lambda: wrong_set_ups_return_the_tasks(server)
    yield "batch: an order that takes long costs only itself", lambda: slow_order_costs_only_itself(server)
    yield "batch: an answer costs only its order", lambda: answers_cost_only_their_order(server)
    yield "batch: a server that goes away", lambda: server_that_goes_away(server)
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
