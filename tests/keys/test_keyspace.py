"""A declaration that cannot be right is refused at once, and leaves nothing behind."""

from collections.abc import Callable

import msgspec
import pytest

from keystead.errors import DeclarationError
from keystead.keys import (
    FlagKey,
    Keyspace,
    ListKey,
    Pair,
    Personal,
    RecordKey,
    SetKey,
    StringKey,
    Until,
)


class Sms(msgspec.Struct, frozen=True):
    sid: str
    phone: str


HERE = Keyspace("elsewhere")
DEAD = ListKey(HERE, "dead", bytes, purpose="t")
RECORD = RecordKey(HERE, "task:{queue}:{task_id}", Sms, purpose="t")


@pytest.mark.parametrize(
    ("declare", "why"),
    [
        (lambda ks: FlagKey(ks, "a", purpose=""), "say its purpose"),
        (lambda ks: FlagKey(ks, "a:{x}", purpose="t", personal=Personal(variable="ip")), "ip, not in the pattern"),
        (lambda ks: FlagKey(ks, "a", purpose="t", personal=Personal()), "names nothing"),
        (lambda ks: ListKey(ks, "a", Sms, purpose="t", personal=Personal(field="mail")), "mail, not a field"),
        (lambda ks: RecordKey(ks, "a", Sms, purpose="t", personal=Personal(field="mail")), "mail, not a field"),
        (lambda ks: StringKey(ks, "a", Sms, purpose="t", ttl=Until("expires_at")), "expires_at, not a field"),
        (lambda ks: FlagKey(ks, "a", purpose="t", writers="edge.guard"), "tuples of names"),
        (lambda ks: SetKey(ks, "tasks", str, purpose="t", pairs_with=RECORD), "cannot fill queue"),
        (lambda ks: SetKey(ks, "tasks:{queue}", str, purpose="t", pairs_with=Pair(RECORD, "nope")), "cannot fill"),
        (lambda ks: FlagKey(ks, "a:{x}", purpose="t", tag="{y}"), "needs y in the pattern"),
        (lambda ks: ListKey(ks, "a", Sms, purpose="t", dead_letter=RECORD), "must be a list"),
        (lambda ks: ListKey(ks, "a", Sms, purpose="t", dead_letter=DEAD), "of the same tag"),
    ],
)
def test_what_cannot_be_right_is_refused(declare: Callable[[Keyspace], object], why: str) -> None:
    keyspace = Keyspace("tests")
    with pytest.raises(DeclarationError, match=why):
        declare(keyspace)
    assert keyspace.declarations == []


def test_a_keyspace_needs_a_name() -> None:
    with pytest.raises(DeclarationError):
        Keyspace("")


def test_what_everyone_may_ask_of_a_declaration() -> None:
    keyspace = Keyspace("room", tag="tag")
    key = ListKey(keyspace, "a:{user_sub}", Sms, personal=Personal(variable="user_sub", field="phone"), purpose="why",
                  writers=("w",), readers=("r",), scripts=("s.lua",))
    assert (key.pattern, key.kind, key.type, key.server_type) == ("a:{user_sub}", "key", "list", "list")
    assert key.room == "room"
    assert (key.ttl.describe(), key.purpose, key.tag.describe(), key.codec.name) == ("none", "why", "tag", "JSON Sms")
    assert (key.writers, key.readers, key.scripts) == (("w",), ("r",), ("s.lua",))
    assert list(keyspace) == [key]
