"""Chromium without a window, driven over its debugging pipe: no port, no driver program, nothing on the network."""
import base64
import json
import os
import select
import signal
import subprocess
import tempfile
import time

LIMIT = 300  # seconds that only a hang reaches

# As root, and where user namespaces are closed, Chromium's own sandbox cannot start; the pages are ours.
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
           "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
           "--in-process-gpu", "--no-zygote", "--disable-extensions"]  # fewer processes


class Chromium:
    """`with Chromium() as browser`: a browser with one page."""

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="dq-chromium.", ignore_cleanup_errors=True)
        commands, self.to = os.pipe()
        self.answers, answers = os.pipe()

        def place_pipes():
            # Chromium reads from 3 and writes to 4; either number may be taken by the other end.
            high = [os.dup2(fd, number) for fd, number in ((commands, 203), (answers, 204))]
            for fd, number in zip(high, (3, 4)):
                os.dup2(fd, number)

        self.process = subprocess.Popen(
            ["chromium", *OPTIONS, "--user-data-dir=" + self.profile.name, "about:blank"], preexec_fn=place_pipes,
            pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)
        os.close(commands)
        os.close(answers)
        self.number, self.data, self.session, self.events = 0, b"", None, []
        target = next(t for t in self.wait_for_targets() if t["type"] == "page")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Network", "Runtime", "Log":
            self.call(domain + ".enable")
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.to)
        os.close(self.answers)
        self.profile.cleanup()

    def wait_for_targets(self):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            targets = self.call("Target.getTargets")["targetInfos"]
            if any(t["type"] == "page" for t in targets):
                return targets
        raise TimeoutError("Chromium opens no page")

    def read(self):
        """The next message of Chromium."""
        while b"\0" not in self.data:
            if not select.select([self.answers], [], [], LIMIT)[0]:
                raise TimeoutError("Chromium does not answer")
            more = os.read(self.answers, 1 << 20)
            if not more:
                raise ConnectionError("Chromium has ended")
            self.data += more
        message, self.data = self.data.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]["message"]))
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def look(self, width, scheme):
        """From now on pages are shown so wide, light or dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address):
        """Loads a page; returns the addresses of all requests and what the browser had to complain about."""
        self.events = []
        self.call("Page.navigate", url=address)
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.events.append(self.read())
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        requests = [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        complaints = [e["params"]["entry"]["text"] for e in self.events if e["method"] == "Log.entryAdded"]
        return requests, complaints

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def picture(self, path):
        """A screenshot of the whole page."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(
                self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]))
