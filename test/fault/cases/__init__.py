"""The scenarios: one function each, named, with the number it has in doc/reliability and the seconds it takes."""

CASES = {}


class Case:  # pylint: disable=too-few-public-methods
    """full_only: makes a figure and is not part of the short run. options: of the database server it needs for itself. tls: its way to
    the server is TLS."""

    def __init__(self, name, number, seconds, run, full_only, options, tls=False):
        self.name, self.number, self.seconds, self.run = name, number, seconds, run
        self.full_only, self.options, self.tls = full_only, options, tls

    def about(self):
        text = " ".join((self.run.__doc__ or "").split())
        return f"{self.name.removesuffix('-tls')} over TLS." if self.tls else text


def case(name, number, seconds=5, full_only=False, options=None, tls=None):
    """Makes a scenario of a function. tls: also NAME-tls, the same over TLS, in the "short" run or only in the "full" one."""
    def add(function):
        assert name not in CASES
        CASES[name] = Case(name, number, seconds, function, full_only, options)
        if tls:
            CASES[name + "-tls"] = Case(name + "-tls", number, seconds, function, full_only or tls == "full", options, True)
        return function
    return add
