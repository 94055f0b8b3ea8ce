"""Runs handlers that are written in Python in forks of one process, which has imported what they import: a handler that
is started by itself needs a hundred times as long to import as to do its work.

A fork has the arguments, the environment, the directory and the files of its caller, and a `__main__` of its own.
"""
import ast
import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import types

FD = 3  # where the process hears of what is to be run


class Nursery:
    """The process, and how to run a handler in a fork of it, from any thread."""

    def __init__(self, environment):
        self.socket, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with end:
            self.process = subprocess.Popen(
                [sys.executable, "-B", os.path.realpath(__file__)], env=environment, stdin=subprocess.DEVNULL,
                preexec_fn=lambda: os.dup2(end.fileno(), FD), close_fds=False)

    @staticmethod
    def takes(path):
        with open(path, "rb") as file:
            return file.readline().startswith(b"#!/usr/bin/python3")

    def run(self, command, env, files, limit, memory=None):
        """Returns the exit status. files: those that become the descriptors 0, 1, 2, and 3 if there is a fourth.
        limit: seconds until it is given up."""
        mine, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with mine:
            with end:
                request = json.dumps([command, env, os.getcwd(), memory]).encode()
                socket.send_fds(self.socket, [request], [end.fileno(), *(file.fileno() for file in files)])
            mine.settimeout(limit)
            return json.loads(mine.recv(100))

    def end(self):
        self.socket.close()
        self.process.wait()


def code_of(path, codes={}):
    """The program, with what it imports imported."""
    if path not in codes:
        with open(path, "rb") as file:
            tree = ast.parse(file.read(), path)
        for node in ast.walk(tree):
            for alias in node.names if isinstance(node, ast.Import) else ():
                with contextlib.suppress(ImportError):
                    importlib.import_module(alias.name)
        codes[path] = compile(tree, path, "exec")
        gc.freeze()  # the forks share it
    return codes[path]


def become(command, env, directory, memory, fds):
    """In a fork."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    os.closerange(len(fds), 256)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(env)
    sys.argv, sys.path[0] = command, os.path.dirname(command[0])
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def serve():
    """Returns the program, in each fork, which has become it; in the process itself, None: nobody asks any more."""
    running, sigchld = {}, {signal.SIGCHLD}

    def tell(*_):
        for pid in list(running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                with running.pop(pid) as asker:
                    asker.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())

    signal.signal(signal.SIGCHLD, tell)
    asked = socket.socket(fileno=FD)
    while True:
        request, fds, _, _ = socket.recv_fds(asked, 1 << 20, 5)
        if not request:
            return None
        command, env, directory, memory = json.loads(request)
        code = code_of(command[0])
        signal.pthread_sigmask(signal.SIG_BLOCK, sigchld)
        pid = os.fork()
        if not pid:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, sigchld)
            asked.detach()
            become(command, env, directory, memory, fds[1:])
            return code
        running[pid] = socket.socket(fileno=fds[0])
        for fd in fds[1:]:
            os.close(fd)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, sigchld)


if __name__ == "__main__":
    if program := serve():
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(program, sys.modules["__main__"].__dict__)
