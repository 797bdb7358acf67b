"""Declarations say the same as an inventory as they say themselves."""

import random

import pytest

from keystead.app import App
from keystead.inventory import Entry, Expiry, Fact, Matcher, Rule, read_inventory, write_inventory
from keystead.inventory.from_registry import expiry_of, from_registry
from keystead.keys import (
    NO_TTL,
    AtMost,
    Exactly,
    IntegerKey,
    Keyspace,
    Layout,
    NoneUntilEnded,
    Personal,
    Registry,
    Sliding,
    Ttl,
    Until,
)
from keystead.settings import Settings


@pytest.fixture(scope="module")
def registry() -> Registry:
    return App(Settings()).registry(Layout.PLAIN)


def test_declaration_says_everything() -> None:
    edge = Keyspace("edge", tag="edge")
    IntegerKey(edge, "calls:{ip}:{day:mon|tue}", ttl=Exactly(60), personal=Personal(variable="ip"), purpose="calls",
               writers=("guard",), readers=("web",))

    assert from_registry(Registry([edge])).entries == (Entry(
        "calls:{ip}:{day}", type=Fact("integer"), ttl=Fact(Expiry(Rule.EXACTLY, 60)), purpose=Fact("calls"),
        payload=Fact("integer"), writers=(Fact("guard"),), readers=(Fact("web"),),
        personal=Fact(True, words="variable ip"), variables=(("ip", "ip"), ("day", "mon|tue")), section=("edge",),
        extra=(("tag", "edge"),)),)


@pytest.mark.parametrize(("ttl", "expiry"), [
    (NO_TTL, Expiry(Rule.NONE)), (AtMost(5), Expiry(Rule.AT_MOST, 5)), (Sliding(5), Expiry(Rule.SLIDING, 5)),
    (Until("at", 9), Expiry(Rule.UNTIL, 9, "at of the payload")),
    (NoneUntilEnded(7), Expiry(Rule.NONE, 7, "while it is in use")),
])
def test_every_rule_has_its_words(ttl: Ttl, expiry: Expiry) -> None:
    assert expiry_of(ttl) == expiry


def test_every_key_of_the_rooms_is_found_as_it_is_declared(registry: Registry) -> None:
    matcher, rng, wrong = Matcher(from_registry(registry)), random.Random(3), []
    for declaration in (each for each in registry if each.kind == "key" for _ in range(5)):
        arguments = declaration.template.sample(rng)
        name = declaration.template.fill(arguments)
        for raw_key in (name.encode(), b"{some:tag}" + name.encode()):
            found = matcher.find(raw_key)
            if found is None or found.loose or (found.entry.pattern, found.arguments) != (
                    declaration.pattern, arguments):
                wrong.append((raw_key, declaration.pattern, found))
    assert not wrong


def test_inventory_of_the_rooms_comes_back_from_a_file(registry: Registry) -> None:
    inventory = from_registry(registry)

    assert read_inventory(write_inventory(inventory)) == inventory
