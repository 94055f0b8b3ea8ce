"""celery_peer.py - Celery at the Redis of $BENCH_REDIS, in processes (prefork). Tasks are acknowledged when they have
ended: by default a crash of the worker loses those that run.

usage: celery_peer.py init | fill COUNT | plan | add | drain COUNT IN_FLIGHT [COMMAND] | serve IN_FLIGHT COMMAND
As ../peers describes them.
"""
import datetime
import os
import struct
import subprocess
import sys
import time

from celery import Celery

BODY = "12345678901234567890"
RECORD = struct.Struct("dd")  # of the file of a drain: when a task began and ended
app = Celery("celery_peer", broker="redis+socket://" + os.environ["BENCH_REDIS"])
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=4,
    broker_transport_options={"visibility_timeout": 86400},
)


@app.task
def task(text):
    began, command, record = time.time(), os.environ.get("PEER_COMMAND"), os.environ.get("PEER_RECORD")
    if command:
        subprocess.run(["/bin/sh", "-c", command], input=text.encode(), check=False)
    if record:
        fd = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(fd, RECORD.pack(began, time.time()))
        os.close(fd)


def add(tasks):
    with app.producer_pool.acquire(block=True) as producer:
        for text, at in tasks:
            eta = at and datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
            task.apply_async((text,), eta=eta, producer=producer)


def worker(in_flight, command, record):
    """Enters the directory of a worker. What to execute there, and its environment."""
    options = ["-c", in_flight, "--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "ERROR"]
    os.chdir(os.path.dirname(os.path.realpath(__file__)))
    return (
        [sys.executable, "-m", "celery", "-A", "celery_peer", "worker", *options],
        {**os.environ, "PEER_COMMAND": command, "PEER_RECORD": record, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def drain(count, in_flight, command=""):
    record = os.environ["BENCH_REDIS"] + ".record"
    open(record, "wb").close()
    words, environment = worker(in_flight, command, record)
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL) as process:
        while os.path.getsize(record) < int(count) * RECORD.size and process.poll() is None:
            time.sleep(0.05)
        process.terminate()
    with open(record, "rb") as f:
        times = list(RECORD.iter_unpack(f.read()))
    print(min(t[0] for t in times), max(t[1] for t in times), len(times))


def main(verb, *arguments):
    if verb == "fill":
        add((BODY, None) for _ in range(int(arguments[0])))
    elif verb == "plan":
        add((line.strip(), int(line) / 1e6) for line in sys.stdin)
    elif verb == "add":
        task.delay(BODY)
    elif verb == "drain":
        drain(*arguments)
    elif verb == "serve":
        words, environment = worker(*arguments, "")
        os.execve(words[0], words, environment)  # who ends this process ends the worker
    elif verb == "init":
        app.control.purge()
    else:
        sys.exit(f"what is {verb}?")


if __name__ == "__main__":
    main(*sys.argv[1:])
