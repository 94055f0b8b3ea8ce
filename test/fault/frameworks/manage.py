"""manage.py FILE dq_work - as much of Django as dq_work.py calls. Its command order_note appends its body to FILE.
A body that begins with "refused" raises an exception with it, and "exit CODE" ends with sys.exit(CODE)."""
import argparse
import os
import runpy
import sys
import time
import types


class CommandParser(argparse.ArgumentParser):
    def error(self, message):
        raise RuntimeError("Error: " + message)


PARSER = CommandParser()
PARSER.add_argument("body")
PARSER.add_argument("--all", action="store_true")


def call_command(name, *arguments):
    if name != "order_note":
        raise RuntimeError(f"Unknown command: {name!r}")
    chosen = PARSER.parse_args([str(argument) for argument in arguments])
    if chosen.body.startswith("refused"):
        raise RuntimeError(chosen.body)
    print("noted")
    with open(sys.argv[1], "ab") as f:
        f.write((b"ALL " if chosen.all else b"") + chosen.body.encode(errors="surrogateescape") + b"\n")
    time.sleep(0.005)
    if chosen.body.startswith("exit "):
        sys.exit(eval(chosen.body.removeprefix("exit ")))


def module(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)


for part in ("django", "django.core"):
    module(part)
module("django.core.management", call_command=call_command)
module("django.core.management.base", BaseCommand=object)
module("django.db", close_old_connections=lambda: None)
top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
time.sleep(0.05)  # it boots
runpy.run_path(top + "/etc/handlers.d/dq_work.py")["Command"]().handle()
