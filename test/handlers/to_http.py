"""http-post and http-post-batch, against a server that answers whatever it is asked to."""
import concurrent.futures
import gzip
import http.server
import itertools
import json
import os
import socket
import ssl
import tempfile
import threading
import time

import scenarios
from rig import (BIN, DONE, EVERY_BYTE, NOT_SET_UP, PERMANENT, RETRY, Failed, checked, free_port, judged, judged_apart,
                 left_in_time, resolver, run_batch, run_one, same, wait_until)

STATUSES = {
    200: DONE, 201: DONE, 202: DONE, 204: DONE, 301: PERMANENT, 302: PERMANENT, 304: PERMANENT, 400: PERMANENT,
    401: NOT_SET_UP, 403: PERMANENT, 404: PERMANENT, 407: NOT_SET_UP, 408: RETRY, 409: PERMANENT, 410: PERMANENT,
    413: PERMANENT, 422: PERMANENT, 425: RETRY, 429: RETRY, 500: RETRY, 501: RETRY, 502: RETRY, 503: RETRY, 504: RETRY,
    599: RETRY, 600: RETRY, 999: RETRY}
SCRIPTS = ["http-post", "http-post-batch"]
SHOWN = ("Idempotency-Key", "Fencing-Token", "Authorization", "X-Shop", "Content-Type")


class Answer(http.server.BaseHTTPRequestHandler):
    """The path says how to answer: /STATUS, /hang, /half; hide: without an answer at all."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        service, body = self.server.service, self.rfile.read(int(self.headers["Content-Length"]))
        service.requests.append((dict(self.headers), body))
        if service.hide > 0:
            service.hide -= 1
            service.hidden += 1
            self.close_connection = True
            return
        word = self.path.strip("/")
        if word == "hang":
            service.released.wait()
            self.close_connection = True
        elif word == "half":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
            self.close_connection = True
        else:
            text = b"" if word in ("204", "304") else f"this is {word}\n".encode()
            self.send_response(int(word), "as asked")
            for name, value in service.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)


class Service:
    def __init__(self):
        self.port, self.requests, self.headers = free_port(), [], {}
        self.cutter, self.hide, self.hidden = self, 0, 0
        self.released = threading.Event()
        self.start()

    def url(self, word=200):
        return f"http://127.0.0.1:{self.port}/{word}"

    def start(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Answer)
        self.server.daemon_threads, self.server.service = True, self
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def clear(self):
        self.requests.clear()

    def received(self):
        return [(headers["Idempotency-Key"], body) for headers, body in self.requests]


OK, NO = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"HTTP/1.1 500 no\r\nContent-Length: 2\r\n\r\nno"


class Wild:
    """A server whose answer to a body is what `answers` has for it: bytes, or parts of them with pauses between."""

    def __init__(self, answers, tls=None):
        self.answers, self.tls, self.connections = answers, tls, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.listener.getsockname()[1]}/"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        try:
            while True:
                threading.Thread(target=self._serve, args=self.listener.accept()[:1], daemon=True).start()
        except OSError:  # stop() was called
            self.listener.close()

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)

    def _serve(self, client):
        self.connections += 1
        try:
            if self.tls:
                client = self.tls.wrap_socket(client, server_side=True)
            with client, client.makefile("rb") as request:
                while (answer := self._answer(request)) is not None:
                    for part in [answer] if isinstance(answer, bytes) else answer():
                        client.sendall(part)
        except OSError:
            pass

    def _answer(self, request):
        length = 0
        while line := request.readline().strip().lower():
            if line.startswith(b"content-length:"):
                length = int(line.split()[1])
        return self.answers.get(request.read(length))


def slowly(begin, part=b""):
    """An answer that never ends: bytes, with pauses between that are shorter than any timeout."""
    def parts():
        yield begin
        while True:
            time.sleep(0.05)
            yield part
    return parts


def last(answer, before=lambda: None):
    """The last answer on its connection, which ends without a word: the next request may come before that is seen."""
    def parts():
        before()
        yield answer
        raise OSError
    return parts


def quickly(begin):
    """An answer that never ends: at once twice what the handler may take of memory, then slowly, which costs less."""
    return lambda: itertools.chain([begin], itertools.repeat(b"x" * 65536, 8192), slowly(b"", b"x")())


def certificate(directory):
    """A context for a server with a certificate of its own, and the environment in which http-post-batch trusts it."""
    checked(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", directory + "/key.pem", "-subj",
             "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-out", directory + "/certificate.pem"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory + "/certificate.pem", directory + "/key.pem")
    return context, {"SSL_CERT_FILE": directory + "/certificate.pem"}


def batch_over_tls(directory):
    context, trust = certificate(directory)
    wild = Wild({b"x": OK, b"mute": slowly(b"")}, context)
    judged("an unknown certificate", SCRIPTS, [wild.url], RETRY, {})
    judged("a known certificate", SCRIPTS, [wild.url], DONE, trust)
    wild.connections = 0
    judged_apart("https", "http-post-batch", [wild.url], {**trust, "TASK_TIMEOUT": "3"}, [
        (b"x", "done", ""), (b"x", "done", ""), (b"mute", "retry", "NoAnswerInTime"), (b"x", "done", "")])
    same("connections", wild.connections, 2)


def statuses_are_mapped(service):
    for status, expected in STATUSES.items():
        judged(status, SCRIPTS, [service.url(status)], expected, {}, text="" if expected == DONE else f"HTTP {status}")
    output = run_one("http-post", [service.url(404)], b"x", {})[1]
    same("output", output, "this is 404\n\nHTTP 404\n")  # the last line becomes the error


def errors_name_the_status(queue):
    """dq errors has one line for each, although it takes errors together that differ in a number only."""
    statuses = (404, 410, 429, 503)
    wild = Wild({b"%d" % n: b"HTTP/1.1 %d no\r\nContent-Length: 0\r\n\r\n" % n for n in statuses})
    for script, batch in (("http-post", 1), ("http-post-batch", 4)):
        for status in statuses:
            queue.add(f"errors-{batch}", b"%d" % status)
        queue.start(f"errors-{batch}", script, [wild.url], batch)
        try:
            wait_until("each task has been tried", lambda: int(queue.sql(
                f"SELECT COUNT(DISTINCT task_id) FROM dq_attempt JOIN dq_task t ON t.id = task_id "
                f"WHERE t.tag = 'errors-{batch}'")[0][0]) == len(statuses))
        finally:
            queue.stop()
        groups = json.loads(checked([BIN + "/dq", "errors", "--tag", f"errors-{batch}", "-o", "json"],
                                    env=queue.environment))
        same(f"{script}, errors", sorted(group["error"][-8:] for group in groups), [f"HTTP {n}" for n in statuses])


def what_is_no_http_is_retried():
    for answer in (b"garbage\r\n", b"SSH-2.0-x\r\n", b"HTTP/9.9 200 OK\r\n\r\n", b"HTTP/1.1 099 x\r\n\r\n",
                   b"HTTP/1.1 1000 x\r\n\r\n", b"HTTP/1.1 101 x\r\n\r\n",
                   b"HTTP/1.1 200 OK\r\n" + b"X: y" * 200000,
                   b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
        judged(answer[:40], SCRIPTS, [Wild({b"x": last(answer)}).url], RETRY, {"TIMEOUT": "20"})


def header_without_an_end_is_no_answer():
    for part in (b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Le",
                 b"HTTP/1.1 404 no\r\nX: y\r\n", b"HTTP/1.1 103 wait\r\n\r\nHTTP/1.1 200 OK\r\nX: y"):
        judged(part, SCRIPTS, [Wild({b"x": last(part)}).url], RETRY, {"TIMEOUT": "20"})


def header_that_cannot_be_read_is_no_answer(directory):
    """Half a header, and a program that looks at it is killed."""
    for name in ("tr", "sed"):
        place = f"{directory}/no-{name}"
        os.mkdir(place)
        with open(os.open(f"{place}/{name}", os.O_CREAT | os.O_WRONLY, 0o755), "w") as file:
            file.write(f'#!/bin/sh\ncase $* in *"/^HTTP"* | *-d*) kill -KILL $$ ;; esac\n'
                       f'PATH=$REST\nexec {name} "$@"\n')
        env = {"REST": os.environ["PATH"], "PATH": f"{place}:{os.environ['PATH']}"}
        wild = Wild({b"x": last(b"HTTP/1.1 200 OK\r\nX: y")})
        same(f"without {name}", run_one("http-post", [wild.url], b"x", env)[0], RETRY)


def closed_connection_is_not_used():
    """One that the service closes after an answer without saying so. If it is used, every second request is lost."""
    verdicts = run_batch("http-post-batch", [Wild({b"x": last(OK)}).url], [b"x"] * 20, {})[1]
    done = sum(verdict["result"] == "done" for verdict in verdicts.values())
    if done <= 10:
        raise Failed(f"{done} of 20 are done: {verdicts}")


def interim_answers_are_no_answers():
    interim = b"".join(b"HTTP/1.1 %d wait\r\nLink: </x>\r\n\r\n" % n for n in (100, 102, 103, 103, 100, 199))

    def later():
        yield interim
        time.sleep(0.2)
        yield NO

    for what, answer in (("at once", interim + NO), ("later", later)):
        wild = Wild({b"no": answer, b"x": OK})
        same(what, run_one("http-post", [wild.url], b"no", {})[0], RETRY)
        judged_apart(f"interim answers, {what}", "http-post-batch", [wild.url], {}, [
            (b"x", "done", ""), (b"no", "retry", "HTTP 500"), (b"x", "done", ""), (b"no", "retry", "HTTP 500")])


def request_costs_its_task_only():
    """Whatever the answer to it is, and the connection is not used again."""
    begin = b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n"
    poisons = {
        b"mute": slowly(b""), b"half": slowly(begin + b"half"), b"slow status": slowly(b"HTTP/1.1 2", b"0"),
        b"slow header": slowly(b"HTTP/1.1 200 OK\r\nX: ", b"y"), b"slow body": slowly(begin, b"z"),
        b"many interim": slowly(b"", b"HTTP/1.1 102 wait\r\n\r\n"),
        b"slow chunks": slowly(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        b"endless": quickly(begin), b"endless header": quickly(b"HTTP/1.1 200 OK\r\nX: "),
        b"endless to the end": quickly(b"HTTP/1.1 200 OK\r\n\r\n"),
        b"too long": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 25 + b"\r\n\r\nok"}
    wild = Wild({b"x": OK, **poisons})

    def costs_its_task_only(body):
        judged_apart(body, "http-post-batch", [wild.url], {"TASK_TIMEOUT": "3"}, [
            (b"x", "done", ""), (body, "retry", ""), (b"x", "done", ""), (b"x", "done", "")], memory=1 << 28)
        if body != b"too long":  # to curl, this length is none
            same(f"http-post, {body}", run_one("http-post", [wild.url], body, {"TIMEOUT": "1"})[0], RETRY)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(costs_its_task_only, poisons))


def time_of_a_batch_is_kept():
    """What has not been sent by then has no verdict; what has been sent has one."""
    wild = Wild({b"x": OK, b"mute": slowly(b"")})
    judged_apart("too many that hang", "http-post-batch", [wild.url], {"TIMEOUT": "3", "TASK_TIMEOUT": "2"}, [
        (b"x", "done", ""), (b"mute", "retry", "NoAnswerInTime"), (b"mute", None, ""), (b"x", None, "")])


def service_that_goes_away():
    """At first, none of the tasks can be the reason; later, the one before may be."""
    judged_apart("nobody listens", "http-post-batch", [f"http://127.0.0.1:{free_port()}/"], {}, [
        (b"x", "retry", "ConnectionRefusedError")] * 3)

    bye = OK.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
    for what, answer, result in (("after an answer", bye, "done"), ("with a request", b"", "retry")):
        wild = Wild({b"x": OK, b"last": last(answer, lambda: wild.stop())})
        judged_apart(f"a service that ends {what}", "http-post-batch", [wild.url], {}, [
            (b"x", "done", ""), (b"last", result, ""), (b"x", None, ""), (b"x", None, "")])


def answers_that_break_are_retried(service):
    nowhere = f"http://127.0.0.1:{free_port()}/"
    for what, url in (("half an answer", service.url("half")), ("nobody listens", nowhere)):
        judged(what, SCRIPTS, [url], RETRY, {})
    text = gzip.compress(b"ok")
    coded = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n%x\r\n" % len(text) + text
    for what, answer, expected in (
            ("coded chunks", coded + b"\r\n0\r\n\r\n", DONE), ("no last chunk", coded + b"\r\n", RETRY),
            ("half a chunk", coded[:-1], RETRY),
            *((f"the length {n}", b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\nok" % n, RETRY) for n in (
                b"-5", b"50, 50", b"12abc", b"2\r\nContent-Length: 50", b"5_0", b"\xb2")),
            ("one length twice", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", DONE)):
        judged(what, SCRIPTS, [Wild({b"x": last(answer)}).url], expected, {})


def unknown_hosts_are_retried(directory):
    for what, number in (("no such host", socket.EAI_NONAME), ("no name server answers", socket.EAI_AGAIN)):
        judged(what, SCRIPTS, ["http://shop.invalid/"], RETRY, resolver(directory, number))


def hanging_resolver_is_left_in_time(directory):
    left_in_time("http-post", lambda: judged(
        "a resolver that hangs", SCRIPTS, ["http://shop.invalid/"], RETRY, {**resolver(directory), "TIMEOUT": "1"}))


def wrong_set_ups_return_the_task(service):
    for what, arguments, env in (
            ("no scheme that is allowed", ["ftp://127.0.0.1/"], {}),
            ("no URL", ["::"], {}),
            ("no scheme", ["127.0.0.1/"], {}),
            ("a blank in the URL", [service.url() + "/a b"], {}),
            ("a blank in the host", ["http://127.0.0.1 :80/"], {}),
            ("headers that cannot be read", [service.url()], {"HTTP_HEADERS": "/nonexistent"})):
        judged(what, SCRIPTS, arguments, NOT_SET_UP, env)


def retry_after_is_obeyed(queue):
    def date(seconds):
        return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + seconds))

    year = 366 * 86400
    asked = [("7", 7, 7), (" 08 ", 8, 8), (date(1000), 500, 1000), (str(year), year, year),
             ("20000000", 20000000, 20000000), ("999999999", year, year), ("9" * 5000, year, year), ("0" * 5000, 0, 0),
             (f"{date(-5000)}\r\nDate: {date(-5100)}", 100, 100), ("Fri, 31 Dec 9999 23:59:59 GMT", year, year),
             ("Sun, 06 Nov 1994 08:49:37 GMT", 0, 0)]
    asked += [(value, None, None) for value in (
        "-", "\u00b2", "-5", "7.5", "1e3", "inf", "1_0", "Sun, 06 Nov 1994 08:49:37 -9999", "")]
    wild = Wild({b"%d" % at: f"HTTP/1.1 429 wait\r\nRetry-After: {value}\r\nContent-Length: 0\r\n\r\n".encode("latin-1")
                 for at, (value, _, _) in enumerate(asked)})
    status, verdicts, output = run_batch("http-post-batch", [wild.url], [b"%d" % at for at in range(len(asked))], {})
    same(f"status: {output}", status, 0)
    for at, (value, least, most) in enumerate(asked):
        with tempfile.TemporaryFile() as reply:
            same(value, run_one("http-post", [wild.url], b"%d" % at, {}, reply=reply), (RETRY, "\nHTTP 429\n"))
            reply.seek(0)
            said = json.loads(reply.read() or "{}")
        for script, got in (("http-post-batch", verdicts[at + 1]), ("http-post", said)):
            after = got.get("after")
            if (after is None) != (least is None) or (after and not least <= int(after.rstrip("s")) <= most):
                raise Failed(f"{script}, Retry-After: {value:.50}: {got}")
    for script, batch in (("http-post", 1), ("http-post-batch", 4)):
        task = queue.add("wait", b"0")
        queue.start("wait", script, [wild.url], batch)
        try:
            wait_until("it has been tried", lambda: queue.sql(f"SELECT 1 FROM dq_attempt WHERE task_id = {task}"))
            same(f"{script}, until the next attempt", queue.sql(
                f"SELECT error_stack, TIMESTAMPDIFF(MICROSECOND, update_time, expected_time) FROM dq_task"
                f" WHERE id = {task}"),
                [["asked to wait 7s: HTTP 429", "7000000"]])
        finally:
            queue.stop()
            queue.sql(f"DELETE FROM dq_task WHERE id = {task}")


def hanging_service_is_left_in_time(service):
    env = {"TIMEOUT": "1"}
    status, output = run_one("http-post", [service.url("hang")], b"x", env)
    same(f"http-post: {output}", status, RETRY)
    status, verdicts, output = run_batch("http-post-batch", [service.url("hang")], [b"x"] * 3, env)
    service.released.set()
    same(f"http-post-batch: {output}", (status, verdicts), (RETRY, {}))


def headers_say_what_they_should(service, directory):
    secret = os.path.join(directory, "headers")
    with open(secret, "w") as file:
        file.write("Authorization:Bearer secret\n\nX-Shop: main\n")
    env = {"HTTP_HEADERS": secret, "CONTENT_TYPE": "application/json", "ID_PREFIX": "shop-"}
    service.clear()
    run_one("http-post", [service.url()], EVERY_BYTE, env, run="9", token=3)
    run_one("http-post", [service.url()], EVERY_BYTE, env, run="9-1", token=4)
    run_batch("http-post-batch", [service.url()], [EVERY_BYTE], env)
    shown = [[headers.get(name) for name in SHOWN] for headers, _ in service.requests]
    rest = ["Bearer secret", "main", "application/json"]
    same("headers", shown, [["shop-9", "3", *rest], ["shop-9-1", "4", *rest], ["shop-1", "1", *rest]])


def cases(directory, queue):
    service = Service()
    yield "each status is done, retried or final", lambda: statuses_are_mapped(service)
    yield "dq errors tells the statuses apart", lambda: errors_name_the_status(queue)
    yield "an answer that is no HTTP is retried", what_is_no_http_is_retried
    yield "an answer that ends in its header is retried", header_without_an_end_is_no_answer
    yield "a header that cannot be read is no answer", lambda: header_that_cannot_be_read_is_no_answer(directory)
    yield "batch: a connection that was closed is not used", closed_connection_is_not_used
    yield "interim answers are no answers", interim_answers_are_no_answers
    yield "batch: a request costs its task only, whatever its answer", request_costs_its_task_only
    yield "a batch over TLS has one connection, too", lambda: batch_over_tls(directory)
    yield "batch: what is sent has a verdict when the time is up", time_of_a_batch_is_kept
    yield "batch: a service that goes away", service_that_goes_away
    yield "broken answers, and none, are retried", lambda: answers_that_break_are_retried(service)
    yield "a host whose name is not known is tried again", lambda: unknown_hosts_are_retried(directory)
    yield "a host that is not set up returns the task", lambda: wrong_set_ups_return_the_task(service)
    yield "Retry-After becomes the time of the next attempt", lambda: retry_after_is_obeyed(queue)
    yield "a service that hangs is left before the handler's timeout", lambda: hanging_service_is_left_in_time(service)
    yield "a resolver that hangs is left in time", lambda: hanging_resolver_is_left_in_time(directory)
    yield "the key is the run's, secrets come from a file", lambda: headers_say_what_they_should(service, directory)
    for script, batch in (("http-post", 1), ("http-post-batch", 3)):
        handler = {"script": script, "arguments": [service.url()], "batch": batch}
        yield from scenarios.of(queue, service, "http", handler)
    service.stop()
