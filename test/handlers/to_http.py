"""http-post and http-post-batch, against a server that answers whatever it is asked to."""
import http.server
import os
import socket
import threading
import time

import scenarios
from rig import (DONE, EVERY_BYTE, NOT_SET_UP, PERMANENT, RETRY, Failed, free_port, judged, left_in_time,
                 resolver, run_batch, run_one, same)

STATUSES = {
    200: DONE, 201: DONE, 202: DONE, 204: DONE, 301: PERMANENT, 302: PERMANENT, 304: PERMANENT, 400: PERMANENT,
    401: PERMANENT, 403: PERMANENT, 404: PERMANENT, 408: RETRY, 409: PERMANENT, 410: PERMANENT, 413: PERMANENT,
    422: PERMANENT, 425: RETRY, 429: RETRY, 500: RETRY, 501: RETRY, 502: RETRY, 503: RETRY, 504: RETRY, 599: RETRY}
SCRIPTS = ["http-post", "http-post-batch"]
SHOWN = ("Idempotency-Key", "Fencing-Token", "Authorization", "X-Shop", "Content-Type")


class Answer(http.server.BaseHTTPRequestHandler):
    """The path says how to answer: /STATUS, /hang, /half, /endless; hide: without an answer at all."""

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


def statuses_are_mapped(service):
    for status, expected in STATUSES.items():
        said = "" if expected == DONE else f"the service answered {status}"
        judged(status, SCRIPTS, [service.url(status)], expected, {}, text=said)
    output = run_one("http-post", [service.url(404)], b"x", {})[1]
    same("output", output, "this is 404\n\nthe service answered 404\n")  # the last line becomes the error


def answers_that_break_are_retried(service):
    nowhere = f"http://127.0.0.1:{free_port()}/"
    for what, url in (("half an answer", service.url("half")), ("nobody listens", nowhere)):
        judged(what, SCRIPTS, [url], RETRY, {})


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
            ("headers that cannot be read", [service.url()], {"HTTP_HEADERS": "/nonexistent"})):
        judged(what, SCRIPTS, arguments, NOT_SET_UP, env)


def retry_after_is_obeyed(service):
    soon = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 1000))
    for value, least, most in (("7", 7, 7), (soon, 500, 1000), ("999999999", 86400, 86400), ("-", None, None)):
        service.headers = {"Retry-After": value}
        verdict = run_batch("http-post-batch", [service.url(429)], [b"x"], {})[1][1]
        service.headers = {}
        after = verdict.get("after")
        if (after is None) != (least is None) or (after and not least <= int(after.rstrip("s")) <= most):
            raise Failed(f"Retry-After: {value}: {verdict}")


def hanging_service_is_left_in_time(service):
    env = {"TIMEOUT": "1"}
    status, output = run_one("http-post", [service.url("hang")], b"x", env)
    same(f"http-post: {output}", status, RETRY)
    status, verdicts, output = run_batch("http-post-batch", [service.url("hang")], [b"x"] * 3, env)
    service.released.set()
    same(f"http-post-batch: {output}", verdicts.get(1, {"result": "retry"})["result"], "retry")
    same(f"http-post-batch: {output}", (status, [n for n in verdicts if n > 1]), (1, []))


def headers_say_what_they_should(service, directory):
    secret = os.path.join(directory, "headers")
    with open(secret, "w") as file:
        file.write("Authorization:Bearer secret\n\nX-Shop: main\n")
    env = {"HTTP_HEADERS": secret, "CONTENT_TYPE": "application/json", "ID_PREFIX": "shop-"}
    service.clear()
    run_one("http-post", [service.url()], EVERY_BYTE, env, task=9, token=3)
    run_one("http-post", [service.url()], EVERY_BYTE, env, task=9, token=4)
    run_batch("http-post-batch", [service.url()], [EVERY_BYTE], env)
    shown = [[headers.get(name) for name in SHOWN] for headers, _ in service.requests]
    rest = ["Bearer secret", "main", "application/json"]
    same("headers", shown, [["shop-9", "3", *rest], ["shop-9", "4", *rest], ["shop-1", "1", *rest]])


def cases(directory, queue):
    service = Service()
    yield "each status is done, retried or final", lambda: statuses_are_mapped(service)
    yield "broken answers, and none, are retried", lambda: answers_that_break_are_retried(service)
    yield "a host whose name is not known is tried again", lambda: unknown_hosts_are_retried(directory)
    yield "a host that is not set up returns the task", lambda: wrong_set_ups_return_the_task(service)
    yield "Retry-After becomes the time of the next attempt", lambda: retry_after_is_obeyed(service)
    yield "a service that hangs is left before the handler's timeout", lambda: hanging_service_is_left_in_time(service)
    yield "a resolver that hangs is left in time", lambda: hanging_resolver_is_left_in_time(directory)
    yield "the key is the task's, secrets come from a file", lambda: headers_say_what_they_should(service, directory)
    for script, batch in (("http-post", 1), ("http-post-batch", 3)):
        handler = {"script": script, "arguments": [service.url()], "batch": batch}
        yield from scenarios.of(queue, service, "http", handler)
    service.stop()
