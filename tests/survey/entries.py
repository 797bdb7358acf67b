"""Entries, written as shortly as a test wants them."""

from keystead.inventory import Certainty, Entry, Expiry, Fact, Inventory, Observation, Rule, Source


def entry(pattern, type=None, ttl=None, *, kind="key", personal=None, line=1, file="keys.md", sure=True, **more):
    certainty = Certainty.STATED if sure else Certainty.GUESSED
    source = Source(file, line)
    return Entry(
        pattern, kind=kind, type=Fact(type, certainty, source) if type else None,
        ttl=Fact(expiry(ttl), certainty, source) if ttl is not None else None,
        personal=Fact(personal, certainty, source) if personal is not None else None, sources=(source,), **more,
    )


def expiry(ttl):
    """0 is none, a number so many seconds, a rule a rule."""
    if isinstance(ttl, Expiry):
        return ttl
    return Expiry(Rule.NONE) if ttl == 0 else Expiry(Rule.EXACTLY, float(ttl))


def inventory(*entries, name="keys.md"):
    return Inventory(name, tuple(entries))


def stray(pattern, keys, type="string", example=""):
    return entry(pattern, type, observed=Observation(keys=keys), examples=(example or pattern,), file="server", line=0)
