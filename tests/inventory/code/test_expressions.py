"""Expressions in a few words."""

from keystead.inventory.code.expressions import Arithmetic, Call, Joined, Member, Name, Number, Text, spell


def test_spelling() -> None:
    assert spell(Arithmetic("*", Member(Name("settings"), "TTL"), Number(2))) == "settings.TTL * 2"
    assert spell(Call(Name("f"), [Text("a")], {"b": Number(1)})) == "f('a', b=1)"
    assert spell(Joined([Text("a:"), Name("b")])) == "a:{b}"
    assert len(spell(Text("x" * 500))) == 80


def test_a_call_knows_its_method_and_receiver() -> None:
    call = Call(Member(Name("r"), "get"), [])
    assert call.method == "get" and isinstance(call.receiver, Name)
