"""Inventories of every shape, for property tests."""

from hypothesis import strategies as st

from keystead.inventory import (
    SERVER_TYPES,
    Certainty,
    Entry,
    Expiry,
    Fact,
    Inventory,
    Note,
    Observation,
    Rule,
    Source,
)

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
SOURCES = st.builds(Source, WORDS, st.integers(0, 9999))
CERTAINTIES = st.sampled_from(Certainty)


def facts(values):
    return st.builds(Fact, values, CERTAINTIES, st.none() | SOURCES, TEXTS)


def maybe(strategy):
    return st.none() | strategy


def pairs(names, values):
    return st.lists(st.tuples(names, values), max_size=3).map(tuple)


EXPIRIES = st.builds(Expiry, st.sampled_from(Rule), maybe(st.integers(1, 10**8) | st.floats(0.001, 1e8)), TEXTS)
OBSERVATIONS = st.builds(
    Observation, keys=st.integers(0, 10**9), memory_bytes=st.integers(0, 10**12), sampled=st.integers(0, 9),
    types=pairs(NAMES, st.integers(0, 99)), encodings=pairs(NAMES, st.integers(0, 99)),
    without_expiry=st.integers(0, 99), shortest_seconds=maybe(st.floats(0, 1e9)),
    longest_seconds=maybe(st.floats(0, 1e9)),
    shape=TEXTS, largest_bytes=st.integers(0, 99),
)
PATTERNS = st.lists(st.sampled_from(["a", "b:", ":", "user", ".", "-"]) | NAMES.map(lambda name: f"{{{name}}}"),
                    min_size=1, max_size=5).map("".join)
ENTRIES = st.builds(
    Entry, pattern=PATTERNS, spelling=TEXTS, kind=st.sampled_from(["key", "channel", "opaque"]),
    type=maybe(facts(st.sampled_from(sorted(SERVER_TYPES)))), ttl=maybe(facts(EXPIRIES)), purpose=maybe(facts(TEXTS)),
    payload=maybe(facts(TEXTS)), writers=st.lists(facts(TEXTS), max_size=3).map(tuple),
    readers=st.lists(facts(TEXTS), max_size=2).map(tuple), personal=maybe(facts(st.booleans())),
    variables=pairs(NAMES, NAMES), examples=st.lists(TEXTS, max_size=2).map(tuple),
    section=st.lists(TEXTS, max_size=2).map(tuple), sources=st.lists(SOURCES, max_size=2).map(tuple),
    extra=pairs(TEXTS, TEXTS), observed=maybe(OBSERVATIONS), uncertain=TEXTS,
)
INVENTORIES = st.builds(
    Inventory, name=WORDS, entries=st.lists(ENTRIES, max_size=2).map(tuple),
    notes=st.lists(st.builds(Note, TEXTS, maybe(SOURCES)), max_size=2).map(tuple), partial=TEXTS,
    sections=st.lists(st.tuples(st.lists(TEXTS, max_size=2).map(tuple), TEXTS), max_size=2).map(tuple),
)
