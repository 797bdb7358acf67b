"""Several inventories become one that says what all of them say."""

from hypothesis import HealthCheck, given, settings

from keystead.inventory import Certainty, Entry, Expiry, Fact, Inventory, Note, Rule, Source
from keystead.inventory.merging import merge_inventories

from .inventories import INVENTORIES

A, B = Source("a.md", 3), Source("b.md", 9)


def merged(first: Entry, second: Entry) -> tuple[Entry, tuple[str, ...]]:
    whole = merge_inventories([Inventory("a.md", (first,)), Inventory("b.md", (second,))])
    [entry] = whole.entries
    return entry, tuple(note.says for note in whole.notes)


def test_what_each_knows_is_put_together() -> None:
    entry, notes = merged(
        Entry("user:{id}", type=Fact("hash", source=A), writers=(Fact("web"),), sources=(A,)),
        Entry("user:{user_id}", ttl=Fact(Expiry(Rule.EXACTLY, 60), source=B), writers=(Fact("web"), Fact("jobs")),
              variables=(("user_id", "uuid"),), sources=(B,), section=("Users",)),
    )

    assert entry == Entry(
        "user:{id}", type=Fact("hash", source=A), ttl=Fact(Expiry(Rule.EXACTLY, 60), source=B),
        writers=(Fact("web"), Fact("jobs")), variables=(("id", "uuid"),), sources=(A, B), section=("Users",))
    assert notes == ()


def test_the_surer_fact_stays_and_a_note_tells_of_the_other() -> None:
    entry, notes = merged(Entry("a", type=Fact("list", Certainty.GUESSED, A), ttl=Fact(Expiry(Rule.NONE), source=A)),
                          Entry("a", type=Fact("zset", source=B), ttl=Fact(Expiry(Rule.AT_MOST, 3600), source=B)))

    assert entry.type == Fact("zset", source=B)
    assert entry.ttl == Fact(Expiry(Rule.NONE), source=A)
    assert notes == ("a: type is zset (b.md:9), but list (a.md:3, a guess)",
                     "a: expiry is none (a.md:3), but at most 1 h (b.md:9)")


def test_the_more_exact_of_two_facts_that_both_hold_stays_silently() -> None:
    entry, notes = merged(Entry("a", type=Fact("string"), ttl=Fact(Expiry(Rule.SOME))),
                          Entry("a", type=Fact("integer"), ttl=Fact(Expiry(Rule.EXACTLY, 60))))

    assert (entry.type, entry.ttl, notes) == (Fact("integer"), Fact(Expiry(Rule.EXACTLY, 60)), ())


def test_other_words_for_the_same_are_kept() -> None:
    entry, notes = merged(Entry("a", purpose=Fact("one", source=A)), Entry("a", purpose=Fact("another", source=B)))

    assert (entry.purpose, entry.extra, notes) == (Fact("one", source=A), (("purpose in b.md", "another"),), ())


def test_patterns_of_one_inventory_that_differ_in_names_stay_apart() -> None:
    entries = (Entry("a:{id}"), Entry("a:{name}"))

    assert merge_inventories([Inventory("x", entries)]).entries == entries
    assert merge_inventories([Inventory("x", entries), Inventory("y", (Entry("a:{other}"),))]).entries == (
        *entries, Entry("a:{other}")), "it could be either"


def test_kinds_of_values_and_of_names_keep_patterns_apart() -> None:
    first = Inventory("x", (Entry("a:{id}", variables=(("id", "integer"),)), Entry("b")))
    second = Inventory("y", (Entry("a:{key}", variables=(("key", "uuid"),)), Entry("b", kind="channel")))

    assert merge_inventories([first, second]).entries == first.entries + second.entries


def test_names_notes_and_gaps_are_kept() -> None:
    whole = merge_inventories([
        Inventory("a", notes=(Note("one"),), sections=((("S",), "first"), (("T",), "t"))),
        Inventory("b", partial="the server went away", notes=(Note("two"),), sections=((("S",), "second"),)),
    ])

    assert whole == Inventory("a + b", notes=(Note("one"), Note("two")), partial="b: the server went away",
                              sections=((("S",), "first"), (("T",), "t")))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(INVENTORIES, INVENTORIES)
def test_merging_loses_no_pattern_and_repeats_none(first: Inventory, second: Inventory) -> None:
    whole = merge_inventories([first, second])
    names = [(entry.kind, entry.pattern) for entry in whole.entries]

    assert len(set(names)) == len(names)
    assert merge_inventories([whole]).entries == whole.entries
    assert {entry.pattern for entry in first.entries} <= {pattern for _, pattern in names}
