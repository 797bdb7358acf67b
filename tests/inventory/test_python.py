"""Python declarations that import, and from which a registry can be built."""

import types

import pytest
from hypothesis import HealthCheck, given, settings

from keystead.inventory import Certainty, Entry, Expiry, Fact, Inventory, Rule, Source
from keystead.inventory.from_registry import from_registry
from keystead.inventory.python import _text, refusals, to_python
from keystead.keys import AtMost, Exactly, LockKind, NoneUntilEnded, Personal, Registry, Sliding, Until

from .inventories import INVENTORIES, TEXTS


def module(inventory: Inventory) -> types.ModuleType:
    made = types.ModuleType("made")
    exec(compile(to_python(inventory), "made.py", "exec"), made.__dict__)
    return made


def registry(inventory: Inventory) -> Registry:
    return Registry(module(inventory).ALL)


SAMPLE = Inventory("redis-keys.md", (
    Entry("sms:pending:{sid}", type=Fact("hash", Certainty.GUESSED), ttl=Fact(Expiry(Rule.AT_MOST, 1800)),
          purpose=Fact("a text under way"), writers=(Fact("sms"),), section=("Texts",),
          sources=(Source("redis-keys.md", 7),)),
    Entry("entitlements:{user_sub}", type=Fact("string"), ttl=Fact(Expiry(Rule.NONE)), personal=Fact(True),
          purpose=Fact("what \"ann\" may do"), section=("Texts",)),
    Entry("odd:{x}", section=("Other",), purpose=Fact("nobody knows")),
))


def test_module_reads_like_declarations_written_by_hand() -> None:
    assert to_python(SAMPLE) == '''\
"""Keys and channels, as redis-keys.md has them."""

from keystead.keys import (
    AtMost,
    Keyspace,
    MapKey,
    Personal,
    StringKey,
)

TEXTS = Keyspace("texts")
OTHER = Keyspace("other")
ALL = [TEXTS, OTHER]

# Texts

# redis-keys.md:7
# guessed: type
SMS_PENDING = MapKey(
    TEXTS, "sms:pending:{sid}", bytes,
    purpose="a text under way",
    ttl=AtMost(1800),
    writers=("sms",),
)

ENTITLEMENTS = StringKey(
    TEXTS, "entitlements:{user_sub}", bytes,
    purpose="what \\"ann\\" may do",
    personal=Personal(variable="user_sub"),
)

# Other

# no expiry is written down, so none is declared
# Not declared: its type is not written down
# ODD = StringKey(
#     OTHER, "odd:{x}", bytes,
#     purpose="nobody knows",
# )
'''


@pytest.mark.parametrize("type", ["string", "integer", "float", "flag", "lock", "json", "bitmap", "hyperloglog", "hash",
                                  "list", "set", "zset", "geo", "stream"])
def test_every_type_is_declared_as_what_the_server_calls_it(type: str) -> None:
    entry = Entry("a:{id}", type=Fact(type), ttl=Fact(Expiry(Rule.EXACTLY, 60)))
    [declaration] = registry(Inventory("x", (entry,)))

    assert declaration.server_type == entry.server_type


@pytest.mark.parametrize(("expiry", "ttl"), [
    (Expiry(Rule.EXACTLY, 60), Exactly(60)), (Expiry(Rule.AT_MOST, 0.5), AtMost(0.5)),
    (Expiry(Rule.SLIDING, 900), Sliding(900)), (Expiry(Rule.NONE, 600), NoneUntilEnded(600)),
    (Expiry(Rule.UNTIL, 3600, "midnight"), Until(at_most=3600)), (Expiry(Rule.SOME), Until()),
    (Expiry(Rule.EXACTLY, 10**12), Until()),
])
def test_every_rule_is_declared(expiry: Expiry, ttl: object) -> None:
    [declaration] = registry(Inventory("x", (Entry("a", type=Fact("string"), ttl=Fact(expiry)),)))

    assert declaration.ttl == ttl


def test_kinds_names_and_stars_are_written_as_declarations_want_them() -> None:
    flag = Fact("flag")
    declarations = registry(Inventory("x", (
        Entry("a:{id}:{id}", type=flag, variables=(("id", "integer"),)),
        Entry("b:{day}", type=flag, variables=(("day", "mon|tue"),)),
        Entry("c:*", type=flag), Entry("news:*", kind="channel"), Entry("bull:{rest}", kind="opaque"),
        Entry("d:{編號}", type=flag), Entry("user:{user_id}", type=flag, personal=Fact(True)),
    )))

    assert [declaration.pattern for declaration in declarations] == [
        "a:{id}:{id_2}", "b:{day}", "c:{rest}", "news:*", "bull:*", "d:{part_2}", "user:{user_id}"]
    assert declarations.resolve(b"a:7:x") is None, "the kind is kept"
    assert declarations.resolve(b"b:sun") is None, "the values are kept"
    assert declarations.find("user:{user_id}").personal == Personal(variable="user_id")


def test_name_of_the_inventory_does_no_harm() -> None:
    text = to_python(Inventory('C:\\docs\\keys "new".md"""', ()))

    assert text.startswith('"""Keys and channels, as C:/docs/keys \'new\'.md\'\'\' has them."""')


def test_lock_without_expiry_is_one_that_says_who_holds_it() -> None:
    first, second = registry(Inventory("x", (
        Entry("a:lock", type=Fact("lock")), Entry("b:lock", type=Fact("lock"), ttl=Fact(Expiry(Rule.EXACTLY, 9))))))

    assert (first.lock, second.lock) == (LockKind.SMART, LockKind.PLAIN)


def test_patterns_that_could_own_the_same_key_are_not_both_declared() -> None:
    flag = Fact("flag")
    inventory = Inventory("x", (Entry("a:{x}:c", type=flag), Entry("a:b:{y}", type=flag), Entry("a:{z}:c", type=flag)))

    assert [declaration.pattern for declaration in registry(inventory)] == ["a:{x}:c"]
    assert [entry.pattern for entry, _ in refusals(inventory)] == ["a:b:{y}", "a:{z}:c"]
    assert "could both own" in refusals(inventory)[0][1]


def test_names_never_collide() -> None:
    entries = tuple(Entry(pattern, type=Fact("flag"), section=(section,)) for pattern, section in [
        ("all", "All"), ("jobs", "jobs"), ("jobs:{id}", "Jobs"), ("Jobs", "ALL"), ("7:x", "7"),
        ("{a}", "會員"), ("if", "if")])

    assert len(list(registry(Inventory("x", entries)))) == len(entries)


@pytest.mark.parametrize("text", ["", "a", 'say "hi"', "it's", 'both \' and "',
                                  "back\\slash", "new\nline", "會員", "\x00\u2028"])
def test_literals_mean_their_text(text: str) -> None:
    assert eval(_text(text)) == text


@given(TEXTS)
def test_every_literal_means_its_text(text: str) -> None:
    assert eval(_text(text)) == text


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(INVENTORIES)
def test_every_inventory_becomes_a_module_with_a_registry(inventory: Inventory) -> None:
    built = registry(inventory)

    assert len(built) == len(inventory.entries) - len(refusals(inventory))


def test_declarations_come_back_from_an_inventory_of_declarations() -> None:
    inventory = from_registry(registry(SAMPLE))

    assert [(entry.pattern, entry.server_type, entry.ttl) for entry in inventory.entries] == [
        ("sms:pending:{sid}", "hash", Fact(Expiry(Rule.AT_MOST, 1800))),
        ("entitlements:{user_sub}", "string", Fact(Expiry(Rule.NONE)))]
