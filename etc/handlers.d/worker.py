"""worker.py - a process that stays, see dq-handlers(5): keep: 2, run: [/usr/bin/python3, /srv/worker.py]. Replace work."""
import base64, json, os, sys

def work(tag, body):
    # a Django project: django.setup() above, call_command(tag, "--", body.decode(errors="surrogateescape")) here
    sys.stdout.buffer.write(body + b"\n")

reply = os.fdopen(int(os.environ["DQ_REPLY_FD"]), "w")
print('{"ready":true}', file=reply, flush=True)
for line in sys.stdin.buffer:    # UTF-8, whatever the locale
    task = json.loads(line)
    answer = {"id": task["id"], "result": "done"}
    try:
        work(task["tag"], task["body"].encode() if "body" in task else base64.b64decode(task["body_base64"]))
    except (Exception, SystemExit) as e:
        if not isinstance(e, SystemExit) or e.code not in (None, 0):    # sys.exit() is no failure
            answer.update(result="retry", error=str(e))
    sys.stdout.flush()
    print(json.dumps(answer), file=reply, flush=True)
