"""The suites, one module each: a module here offers ``SUITE``. They are listed in the order in which they run."""

import importlib

from bench.plan import Suite

NAMES = ("wire", "cluster", "keys", "keys_live", "first_light", "worklist", "lock", "limits", "daily", "cache",
         "fairqueue", "jobs", "stats", "links", "messaging", "reminders", "guard", "api", "backup")


def load(name: str) -> Suite:
    """The suite of that name. Only its own module is imported, so one suite runs when another cannot."""
    suite: Suite = importlib.import_module(f"{__name__}.{name}").SUITE
    return suite
