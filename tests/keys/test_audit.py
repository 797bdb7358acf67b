"""What is seen on a server is judged against the declarations, with bounded memory."""

import json
import random
import tracemalloc
from typing import Any

import pytest

from keystead.keys import (
    NOT_READ,
    Audit,
    FindingKind,
    Keyspace,
    Layout,
    Observed,
    Pair,
    RecordKey,
    Registry,
    SetKey,
)

from .audited_room import FLAG, HERE, PENDING, RECORD, REGISTRY, Sms


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
    assert finding.key == "a\\xff\\x0a"


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


@pytest.mark.parametrize("layout", [Layout.PLAIN, Layout.TAGGED])
def test_a_tagged_server_is_judged_by_tagged_names(layout: Layout) -> None:
    audit = Audit(Registry([HERE], layout))
    assert kinds(audit, Observed(FLAG.at("1").name(layout), "string", None)) == []
    other = Layout.PLAIN if layout is Layout.TAGGED else Layout.TAGGED
    assert kinds(audit, Observed(FLAG.at("1").name(other), "string", None)) == ["undeclared"]
