"""The scenarios: one function each, named, with the number it has in doc/reliability and the seconds it takes."""

CASES = {}


class Case:  # pylint: disable=too-few-public-methods
    """full_only: makes a figure and is not part of the short run. options: of the database server it needs for itself."""

    def __init__(self, name, number, seconds, run, full_only, options):
        self.name, self.number, self.seconds, self.run = name, number, seconds, run
        self.full_only, self.options = full_only, options


def case(name, number, seconds=5, full_only=False, options=None):
    def add(function):
        assert name not in CASES
        CASES[name] = Case(name, number, seconds, function, full_only, options)
        return function
    return add
