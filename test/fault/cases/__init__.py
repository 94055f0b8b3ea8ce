"""The scenarios: one function each, with a name, its number in doc/reliability, and its duration in seconds."""

CASES = {}


class Case:  # pylint: disable=too-few-public-methods
    """full_only: only for a figure, not part of the short run. options: for a database server of its own. tls: connects
    over TLS."""

    def __init__(self, name, number, seconds, run, full_only, options, tls=False):
        self.name, self.number, self.seconds, self.run = name, number, seconds, run
        self.full_only, self.options, self.tls = full_only, options, tls

    def about(self):
        text = " ".join((self.run.__doc__ or "").split())
        return f"{self.name.removesuffix('-tls')} over TLS." if self.tls else text


def case(name, number, seconds=5, full_only=False, options=None, tls=None):
    """Turns a function into a scenario. tls: also adds NAME-tls, the same over TLS, to the "short" run or only to the
    "full" one."""

    def add(function):
        assert name not in CASES
        CASES[name] = Case(name, number, seconds, function, full_only, options)
        if tls:
            CASES[name + "-tls"] = Case(
                name + "-tls", number, seconds, function, full_only or tls == "full", options, True
            )
        return function

    return add
