"""The scenarios: one function each, with a name and its duration in seconds. Those of a file are a group."""

CASES = {}


class Case:  # pylint: disable=too-few-public-methods
    """full_only: only for a figure, not part of the short run. options: for a database server of its own. tls: connects
    over TLS."""

    def __init__(self, name, seconds, run, full_only, options, tls=False):
        self.name, self.seconds, self.run = name, seconds, run
        self.group = run.__module__.rsplit(".", 1)[-1]
        self.full_only, self.options, self.tls = full_only, options, tls

    def about(self):
        text = " ".join((self.run.__doc__ or "").split())
        return f"{self.name.removesuffix('-tls')} over TLS." if self.tls else text


def case(name, seconds=5, full_only=False, options=None, tls=None):
    """Turns a function into a scenario. tls: also adds NAME-tls, the same over TLS, to the "short" run or only to the
    "full" one."""

    def add(function):
        assert name not in CASES
        CASES[name] = Case(name, seconds, function, full_only, options)
        if tls:
            CASES[name + "-tls"] = Case(name + "-tls", seconds, function, full_only or tls == "full", options, True)
        return function

    return add
