"""One command after another against an inventory."""

import pytest

from keystead.errors import DeclarationError
from keystead.guard.judging import Judge, NotInInventory
from keystead.guard.reports import Kind
from keystead.inventory import Entry, Fact, Inventory

from .shop import SHOP


def judge(*, strict: bool = False) -> Judge:
    return Judge(SHOP, strict=strict, grace_seconds=0.0)


def kinds(text: str) -> list[Kind]:
    judging = judge()
    judging.look(tuple(text.split()))
    return [finding.kind for finding in judging.tally.findings()]


@pytest.mark.parametrize("text", [
    "HSET cart:1 f v", "HGETALL cart:1", "GET session:x", "SET session:x v EX 3600", "SET session:x v EX 60",
    "SETEX session:x 10 v",
    "SET settings v", "GETEX session:x EX 5", "DEL cart:1 cart:2", "EXPIRE visits:3 60", "SET session:x v KEEPTTL",
    "ZUNIONSTORE ranking 1 ranking", "EVALSHA sha 1 cart:1", "SET asynq:anything v EX 5", "LPUSH asynq:{q}:x 1",
    "RENAME cart:1 cart:2",
    "PUBLISH news:sport hello", "PSUBSCRIBE news:*", "PSUBSCRIBE n*", "SUBSCRIBE __keyevent@0__:expired",
    "TYPE cart:1", "PING", "SCAN 0",
    "SORT orders:1 STORE orders:2", "XREAD STREAMS", "GET", "PERSIST settings", "LPUSH {t}orders:1 x", "INCR visits:1",
])
def test_what_the_inventory_says_passes(text: str) -> None:
    assert kinds(text) == []
    judge(strict=True).look(tuple(text.split()))


@pytest.mark.parametrize(("text", "kind"), [
    ("GET basket:1", Kind.UNDOCUMENTED),
    ("MGET session:1 basket:1", Kind.UNDOCUMENTED),
    ("SORT orders:1 STORE basket:2", Kind.UNDOCUMENTED),
    ("EVAL script 2 cart:1 basket:1", Kind.UNDOCUMENTED),
    ("XREADGROUP GROUP g c STREAMS basket:1 >", Kind.UNDOCUMENTED),
    ("LPUSH cart:7:draft x", Kind.LOOSE),
    ("SET cart:1 v", Kind.WRONG_TYPE),
    ("LPUSH cart:1 v", Kind.WRONG_TYPE),
    ("ZUNIONSTORE orders:1 1 ranking", Kind.WRONG_TYPE),
    ("ZADD session:1 1 m", Kind.WRONG_TYPE),
    ("SET session:1 v", Kind.MISSING_TTL),
    ("PERSIST session:1", Kind.MISSING_TTL),
    ("GETEX session:1 PERSIST", Kind.MISSING_TTL),
    ("SET session:1 v EX 7200", Kind.TTL_TOO_LONG),
    ("EXPIRE session:1 7200", Kind.TTL_TOO_LONG),
    ("SET settings v EX 5", Kind.UNEXPECTED_TTL),
    ("EXPIRE settings 5", Kind.UNEXPECTED_TTL),
    ("PUBLISH gossip hello", Kind.UNDOCUMENTED_CHANNEL),
    ("PSUBSCRIBE gossip:*", Kind.UNDOCUMENTED_CHANNEL),
])
def test_what_it_does_not_allow_is_found_and_refused(text: str, kind: Kind) -> None:
    assert kinds(text) == [kind]
    strict = judge(strict=True)
    for _ in range(2):
        with pytest.raises(NotInInventory) as caught:
            strict.look(tuple(text.split()))
        assert caught.value.finding.kind is kind and isinstance(caught.value, DeclarationError)
    assert [finding.count for finding in strict.tally.findings()] == [2]


def test_refusal_names_the_nearest_pattern_and_the_way_out() -> None:
    with pytest.raises(NotInInventory, match=r"GET names carts:17, and nothing in keystead.toml fits it. "
                                             r"The nearest pattern is cart:\{id\}: correct the key, or add"):
        judge(strict=True).look(("GET", "carts:17"))


def test_advice_is_one_that_a_strict_guard_takes() -> None:
    with pytest.raises(NotInInventory) as refused:
        judge(strict=True).look(("SET", "session:x", "v"))
    assert "ex=" in str(refused.value) and "pipeline" not in str(refused.value), "SET is refused whatever follows it"
    with pytest.raises(NotInInventory, match="Leave PERSIST out, or correct the ttl"):
        judge(strict=True).look(("PERSIST", "session:x"))


def test_suspicion_is_never_refused() -> None:
    judging = judge(strict=True)
    judging.look(("INCR", "visits:1"))
    judging.look_for_late()
    assert [found.kind for found in judging.tally.findings()] == [Kind.SUSPECTED_TTL]


def test_key_made_without_expiry_is_suspected_unless_one_comes() -> None:
    judging = judge()
    for words in (("INCR", "visits:1"), ("INCR", "visits:2"), ("EXPIRE", "visits:2", 60), ("INCR", "visits:2"),
                  ("INCR", "visits:3"), ("EVAL", "x", 1, "visits:3"), ("INCR", "visits:4"), ("DEL", "visits:4")):
        judging.look(words)
    judging.look_for_late()
    (found,) = judging.tally.findings()
    assert (found.kind, found.count, found.examples) == (Kind.SUSPECTED_TTL, 1, ["visits:1"])


@pytest.mark.parametrize("text", ["GETSET visits:1 x", "MSET visits:1 x", "BITOP NOT visits:1 visits:2"])
def test_key_that_loses_its_expiry_by_being_made_anew_is_suspected(text: str) -> None:
    judging = judge()
    judging.look(("SET", "visits:1", "x", "EX", 60))
    judging.look(tuple(text.split()))
    judging.look_for_late()
    assert [finding.examples for finding in judging.tally.findings()] == [["visits:1"]]


def test_key_is_judged_as_a_key_though_a_channel_has_its_name() -> None:
    both = Inventory("x", (Entry("room:{id}", type=Fact("list")), Entry("room:{id}", kind="channel")))
    with pytest.raises(NotInInventory, match="is of type list"):
        Judge(both, strict=True, grace_seconds=0.0).look(("SET", "room:1", "x"))


def test_unknown_commands_are_counted_and_left_alone() -> None:
    judging = judge(strict=True)
    judging.look(("FROBNICATE", "basket:1"))
    judging.look(("FROBNICATE", "basket:1"))
    assert judging.unknown_commands == {"FROBNICATE": 2}


def test_words_may_be_anything_that_a_client_takes() -> None:
    judging = judge()
    for key in (7, 7.5, memoryview(b"cart:1"), bytearray(b"cart:1"), b"\xff\xfe", "\udcff", None, "x" * 10**7):
        judging.look(("HGETALL", key))
    judging.look(("SET", "session:1"))
    judging.look((b"set", b"session:1", b"v", b"ex", b"5"))
    assert judging.known["cart:{id}"].seen == 2


def test_endless_distinct_keys_do_not_grow_it() -> None:
    judging = judge()
    feed(judging, range(30_000))
    assert len(judging.recent) + len(judging._older) <= 2 * 8192 and len(judging._strangers) <= 2000
    assert len(judging._channels) <= 8192 and len(judging.tally.findings()) <= 1000 and len(judging.fresh) <= 10_000
    assert judging.known["visits:{day}"].seen == 30_000


def feed(judging: Judge, numbers: range) -> None:
    for number in numbers:
        judging.look(("INCR", f"visits:{number}"))
        judging.look(("GET", f"one-off-{number:x}"))
        judging.look(("SET", f"session:{number}", "v", "EX", 60))
        judging.look(("PUBLISH", f"gossip:{number}", "v"))
