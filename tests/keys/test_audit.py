"""What is seen on a server is judged against the declarations, with bounded memory."""

import json
import random
import tracemalloc
from typing import Any

import msgspec
import pytest

from keystead.keys import (
    NOT_READ,
    Audit,
    Exactly,
    FindingKind,
    FlagKey,
    GeoKey,
    IntegerKey,
    Keyspace,
    Layout,
    ListKey,
    MapKey,
    Observed,
    OpaqueNamespace,
    Pair,
    RecordKey,
    Registry,
    SetKey,
    SortedSetKey,
    StreamKey,
    StringKey,
)


class Sms(msgspec.Struct, frozen=True):
    sid: str
    attempts: int = 0


HERE = Keyspace("sms", tag="msg")
TEXT = StringKey(HERE, "text:{x}", Sms, purpose="t")
COUNT = IntegerKey(HERE, "count:{ip}", ttl=Exactly(60), purpose="t")
FLAG = FlagKey(HERE, "flag:{x}", purpose="t")
RECORD = RecordKey(HERE, "sms:pending:{sid}", Sms, purpose="t")
PENDING = SortedSetKey(HERE, "sms:pending", str, member="sid", score="when due", pairs_with=RECORD, purpose="t")
MAP = MapKey(HERE, "map:{x}", int, fields=("known",), purpose="t")
LIST = ListKey(HERE, "list:{x}", Sms, purpose="t")
SET = SetKey(HERE, "set:{x}", int, purpose="t")
STREAM = StreamKey(HERE, "stream:{x}", Sms, most_items=9, purpose="t")
GEO = GeoKey(HERE, "geo:{x}", int, member="number", purpose="t")
OTHERS = OpaqueNamespace(HERE, "asynq:*", purpose="another program's")
REGISTRY = Registry([HERE])


def kinds(audit: Audit, observed: Observed) -> list[str]:
    return [finding.kind.value for finding in audit.observe(observed)]


def test_each_finding() -> None:
    audit = Audit(REGISTRY)
    assert kinds(audit, Observed(b"count:1.2.3.4", "string", 30, 10)) == []
    assert kinds(audit, Observed(b"count:1.2.3.4", "string", None, 10)) == ["ttl broken"]
    assert kinds(audit, Observed(b"count:1.2.3.4", "list", None, 10)) == ["wrong type"]
    assert kinds(audit, Observed(b"count:1.2.3.4", "string", 30, 10, b"x")) == ["undecodable"]
    assert kinds(audit, Observed(b"count:1.2.3.4", "string", 90, 10, b"x")) == ["ttl broken", "undecodable"]
    assert kinds(audit, Observed(b"asynq:{x}\xff", "stream", None, 10)) == []
    assert kinds(audit, Observed(b"who:knows", "string", None, 7)) == ["undeclared"]
    assert kinds(audit, Observed(b"flag:1", "none", None)) == []
    report = audit.report()
    assert (report.clean, report.keys, report.memory_bytes) == (False, 7, 67)
    assert (report.undeclared_keys, report.undeclared_memory_bytes) == (1, 7)
    assert [(group.kind, group.pattern, group.keys) for group in report.findings] == [
        ("ttl broken", "count:{ip}", 2), ("undecodable", "count:{ip}", 2), ("wrong type", "count:{ip}", 1),
    ]
    assert report.findings[2].examples == ({"key": "count:1.2.3.4", "says": "is a list, declared integer"},)
    assert [(use.pattern, use.keys, use.memory_bytes, use.findings) for use in report.patterns] == [
        ("count:{ip}", 5, 50, 5), ("asynq:*", 1, 10, 0),
    ]
    assert [(group.pattern, group.keys) for group in report.undeclared] == [("who:knows", 1)]
    assert json.loads(json.dumps(report.as_dict()))["clean"] is False


def test_nothing_wrong_is_clean() -> None:
    audit = Audit(REGISTRY)
    audit.observe(Observed(b"flag:1", "string", None, 1))
    audit.observe(Observed(b"asynq:1", "hash", 5, 1))
    assert audit.report().clean is True


def test_keys_that_are_no_text_are_shown_with_escapes() -> None:
    (finding,) = Audit(REGISTRY).observe(Observed(b"a\xff\n", "string", None))
    assert finding.key == "a\\xff\\n"


async def sampled(valkey: Any, raw_key: bytes) -> str | None:
    match = REGISTRY.resolve(raw_key)
    assert match is not None
    command = match.declaration.probe(raw_key)
    assert command is not None
    return match.declaration.judge_sample(await valkey.execute_command(*command))


async def test_a_sample_shows_whether_a_value_decodes(valkey: Any) -> None:
    good, bad = msgspec.json.encode(Sms("a")), b'{"sid": 1}'
    await valkey.set("text:good", good)
    await valkey.set("text:bad", bad)
    await valkey.set("text:big", b'"' + b"x" * 100_000)
    await valkey.set("count:1.1.1.1", "7")
    await valkey.set("count:2.2.2.2", "x")
    await valkey.hset("sms:pending:good", mapping={"sid": "a", "attempts": "1", "extra": "z"})
    await valkey.hset("sms:pending:bad", mapping={"attempts": "1"})
    await valkey.hset("sms:pending:big", mapping={f"f{n}": "x" * 100 for n in range(500)})
    await valkey.hset("map:good", "known", "1")
    await valkey.hset("map:bad", "known", "x")
    await valkey.hset("map:odd", "unknown", "1")
    await valkey.rpush("list:good", good)
    await valkey.rpush("list:bad", good, bad)
    await valkey.sadd("set:good", "1")
    await valkey.sadd("set:bad", "x")
    await valkey.xadd("stream:good", {"sid": "a"})
    await valkey.xadd("stream:bad", {"attempts": "1"})
    await valkey.geoadd("geo:good", (1, 2, "5"))
    await valkey.geoadd("geo:bad", (1, 2, "x"))
    await valkey.zadd("sms:pending", {"SM1": 1})
    assert REGISTRY.resolve(b"flag:1").declaration.probe(b"flag:1") is None  # type: ignore[union-attr]
    found = {key: await sampled(valkey, key) for key in await valkey.keys()}
    assert {key for key, why in found.items() if why is not None} == {
        b"text:bad", b"count:2.2.2.2", b"sms:pending:bad", b"map:bad", b"map:odd", b"list:bad", b"set:bad",
        b"stream:bad", b"geo:bad",
    }
    assert found[b"map:odd"] == "field 'unknown' is not declared"
    assert await sampled(valkey, b"text:absent") is None
    assert await sampled(valkey, b"sms:pending:absent") is None


async def test_an_index_without_a_record_is_a_broken_pair(valkey: Any) -> None:
    await valkey.zadd("sms:pending", {"SM1": 1, "SM2": 2, "bad:sid": 3})
    await RECORD.at("SM1").set(valkey, Sms("SM1"))
    audit = Audit(REGISTRY)
    match = REGISTRY.resolve(b"sms:pending")
    assert match is not None
    sample = await valkey.execute_command(*(PENDING.probe(b"sms:pending") or ()))
    assert audit.observe(Observed(b"sms:pending", "zset", None, 1, sample), match) == ()
    for member, record in audit.expected_records(match, sample).items():
        if not await valkey.exists(record.name(Layout.PLAIN)):
            finding = audit.pair_broken(match, member)
            assert finding.says == "member 'SM2' has no sms:pending:{sid}"
    (group,) = audit.report().findings
    assert (group.kind, group.pattern, group.keys) == (FindingKind.BROKEN_PAIR.value, "sms:pending", 2)
    assert audit.expected_records(match, NOT_READ) == {}


def test_a_pair_takes_other_variables_from_the_index() -> None:
    here = Keyspace("tests")
    record = RecordKey(here, "task:{queue}:{task_id}", Sms, purpose="t")
    index = SetKey(here, "tasks:{queue}", str, pairs_with=Pair(record, "task_id"), purpose="t")
    match = Registry([here]).resolve(b"tasks:mail")
    assert match is not None
    expected = Audit(Registry([here])).expected_records(match, {b"7"})
    assert {member: ref.logical for member, ref in expected.items()} == {"7": "task:mail:7"}
    assert index.pairs_with is not None


def test_memory_is_bounded_for_many_keys() -> None:
    audit = Audit(REGISTRY, most_patterns=200)
    rng = random.Random(4)
    for _ in range(3000):
        audit.observe(_random(rng))
    tracemalloc.start()
    for _ in range(20_000):
        audit.observe(_random(rng))
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    report = audit.report()
    assert report.keys == 23_000
    assert len(report.undeclared) <= 200
    assert all(len(group.examples) <= 5 for group in report.findings)
    assert grown < 1_000_000


def _random(rng: random.Random) -> Observed:
    words = ":".join("".join(rng.choices("abcdefgh", k=5)) for _ in range(rng.randint(1, 9)))
    key = rng.choice([f"count:10.0.0.{rng.randint(0, 255)}", words, f"text:{rng.random()}"])
    return Observed(key.encode(), "string", None, 10)


@pytest.mark.parametrize("layout", Layout)
def test_a_tagged_server_is_judged_by_tagged_names(layout: Layout) -> None:
    audit = Audit(Registry([HERE], layout))
    assert kinds(audit, Observed(FLAG.at("1").name(layout), "string", None)) == []
    other = Layout.PLAIN if layout is Layout.TAGGED else Layout.TAGGED
    assert kinds(audit, Observed(FLAG.at("1").name(other), "string", None)) == ["undeclared"]
