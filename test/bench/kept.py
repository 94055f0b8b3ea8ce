"""kept.py - a worker in Python that does nothing but answer: kept.py stay, or one that does a single task: kept.py"""
import json
import os
import sys

if len(sys.argv) == 1:
    json.dumps({"body": sys.stdin.read()})
    sys.exit()
reply = os.fdopen(int(os.environ["DQ_REPLY_FD"]), "w")
print('{"ready":true}', file=reply, flush=True)
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "result": "done"}), file=reply, flush=True)
