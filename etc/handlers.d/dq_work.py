"""dq_work.py - a management command of Django that stays: shop/management/commands/dq_work.py.

In the handlers file: "order.*": {keep: 4, run: [/usr/bin/python3, /srv/shop/manage.py, dq_work], restart_on: [/srv/shop/REVISION]}
A task with the tag order.cancel and the body 1001 is then what `manage.py order_cancel 1001` is, without a start.
"""
import base64
import json
import os
import sys

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import close_old_connections

class Command(BaseCommand):
    help = "Does the tasks that dqd hands over, one after the other"

    def handle(self, *args, **options):
        reply = os.fdopen(int(os.environ["DQ_REPLY_FD"]), "w")
        print('{"ready":true}', file=reply, flush=True)
        for line in sys.stdin.buffer:  # UTF-8, whatever the locale
            task = json.loads(line)
            answer = {"id": task["id"], "result": "done"}
            close_old_connections()
            try:
                body = task["body"].encode() if "body" in task else base64.b64decode(task["body_base64"])
                # -- because a body is no option; and what is not UTF-8 is as in sys.argv
                call_command(task["tag"].replace(".", "_"), "--", body.decode(errors="surrogateescape"))
            except (Exception, SystemExit) as e:
                if not isinstance(e, SystemExit) or e.code not in (None, 0):  # sys.exit() is no failure
                    answer.update(result="retry", error=str(e).encode(errors="replace").decode())
            sys.stdout.flush()
            print(json.dumps(answer), file=reply, flush=True)
