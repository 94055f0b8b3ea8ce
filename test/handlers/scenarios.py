"""What every destination must do, through dqd: bodies arrive unchanged; an outage loses, hurries and doubles nothing;
an answer that is cut off leads to a repeat that can be recognized.

A destination has start(), stop(), received(): the pairs of key and body that have arrived, in order, and clear(); and a
cutter with `hide`, the number of answers that it will still cut off, and `hidden`, how many it has.
"""
import collections

from rig import BODIES, STEP_MS, Failed, digest, same, wait_until


def of(queue, destination, name, handler, cut=None, repeats=True, bodies=BODIES):
    """Titles and cases. cut: what of the handler differs if it is behind the cutter; repeats: whether a task may arrive
    twice if an answer was cut off."""
    kind = "batch" if handler.get("batch", 1) > 1 else "one"
    tag, again = f"{name}-{kind}", "a repeat with the same key" if repeats else "nothing twice"
    yield f"{kind}: bodies arrive unchanged", lambda: bodies_arrive(
        queue, destination, tag + "-bodies", handler, bodies)
    yield f"{kind}: an outage loses and doubles nothing", lambda: outage_loses_nothing(
        queue, destination, tag + "-outage", handler)
    yield f"{kind}: what is done once more arrives once more, with another key", lambda: another_run_arrives(
        queue, destination, tag + "-more", handler)
    yield f"{kind}: a cut answer: {again}", lambda: cut_answers_are_recognized(
        queue, destination, tag + "-cut", {**handler, **(cut or {})}, repeats)


def bodies_arrive(queue, destination, tag, handler, bodies):
    destination.clear()
    for body in bodies.values():
        queue.add(tag, body)
    queue.start(tag, **handler)
    try:
        queue.wait_done(tag)
    finally:
        queue.stop()
    same("bodies", sorted(digest(body) for _, body in destination.received()),
         sorted(digest(body) for body in bodies.values()))


def outage_loses_nothing(queue, destination, tag, handler):
    destination.clear()
    destination.stop()
    sent = [f"order {number}".encode() for number in range(4)]
    try:
        for body in sent:
            queue.add(tag, body)
        queue.start(tag, **handler)
        wait_until("each task has been tried three times", lambda: int(queue.sql(
            f"SELECT MIN(attempt) FROM dq_task WHERE tag = '{tag}'")[0][0]) >= 3)
        destination.start()
        queue.wait_done(tag)
    finally:
        queue.stop()
    same("what has arrived", sorted(body for _, body in destination.received()), sent)
    same("attempts that came too early", queue.sql(
        f"SELECT a.task_id, a.attempt FROM dq_attempt a JOIN dq_attempt b ON b.task_id = a.task_id AND "
        f"b.attempt = a.attempt + 1 JOIN dq_task t ON t.id = a.task_id WHERE t.tag = '{tag}' AND "
        f"b.start_time < a.finish_time + INTERVAL {STEP_MS} * 1000 MICROSECOND"), [])


def another_run_arrives(queue, destination, tag, handler):
    destination.clear()
    task = queue.add(tag, b"order")
    queue.start(tag, **handler)
    try:
        queue.wait_done(tag)
        queue.retry(task)
        queue.wait_done(tag)
    finally:
        queue.stop()
    keys, bodies = zip(*destination.received())
    same("bodies", bodies, (b"order", b"order"))
    if any(keys):
        same("keys", keys, (f"dq-{task}", f"dq-{task}-1"))


def cut_answers_are_recognized(queue, destination, tag, handler, repeats):
    """repeats: whether a task may arrive twice; then it has one key."""
    destination.clear()
    sent = [f"order {number}".encode() for number in range(6)]
    keys = {f"dq-{queue.add(tag, body)}": body for body in sent}
    cutter = destination.cutter
    cutter.hide, cutter.hidden = 2, 0
    queue.start(tag, **handler)
    try:
        queue.wait_done(tag)
    finally:
        queue.stop()
        cutter.hide = 0
    same("answers cut off", cutter.hidden, 2)
    got = destination.received()
    if not repeats:
        same("what has arrived", sorted(body for _, body in got), sent)
        return
    same("bodies by key", dict(got), keys)
    again = sum(count - 1 for count in collections.Counter(key for key, _ in got).values())
    most = cutter.hidden * handler.get("batch", 1)
    if not 1 <= again <= most:
        raise Failed(f"{again} repeats, not between 1 and {most}")
