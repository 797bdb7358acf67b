import pytest

from keystead.inventory import Expiry, Matcher, Rule
from keystead.survey.tally import LARGE_BYTES, LONGER, NEVER, Tally
from keystead.survey.walk import UNKNOWN_TTL, Page

from .entries import entry, inventory


@pytest.fixture
def strays():
    return []


@pytest.fixture
def tally(strays):
    described = inventory(
        entry("session:{token}", "hash", 3600), entry("config", "string", 0), entry("lock:{name}", "lock"),
        entry("maybe:{id}", "list", 60, sure=False), entry("code:{email}", "string", Expiry(Rule.SOME)),
    )
    return Tally(Matcher(described).find, lambda *seen: strays.append(seen))


def test_keys_are_counted_by_entry(tally):
    for number in range(5):
        tally.add(b"session:%d" % number, "hash", 60000, 100 + number)
    tally.add(b"config", "string", -1, 50)
    seen = tally.entries["session:{token}"]
    assert (seen.keys, seen.memory_bytes, seen.largest_bytes) == (5, 510, 104)
    assert seen.types == {"hash": 5} and seen.ttls == {"1 min": 5}
    assert (tally.keys, tally.memory_bytes) == (6, 560)
    assert not seen.wrong_type.keys and not seen.never_expires.keys


def test_key_that_nobody_described_is_passed_on(tally, strays):
    tally.add(b"cart:1", "hash", -1, 10)
    assert strays == [(b"cart:1", "hash", -1, 10)]
    assert (tally.strays.keys, tally.strays.memory_bytes, tally.keys) == (1, 10, 1)


def test_key_that_fits_only_over_separators_is_one_that_nobody_described(tally, strays):
    tally.add(b"session:1:draft", "hash", 60000, 10)
    assert [seen[0] for seen in strays] == [b"session:1:draft"]


def test_faults_are_found_with_examples(tally):
    tally.add(b"session:1", "string", 60000, 1)
    tally.add(b"session:2", "hash", -1, 1)
    tally.add(b"session:3", "hash", 7200000, 1)
    tally.add(b"config", "string", 5000, 1)
    seen = tally.entries["session:{token}"]
    assert (seen.wrong_type.examples, seen.wrong_type.words) == (["session:1"], {"string": 1})
    assert seen.never_expires.examples == ["session:2"]
    assert (seen.expires_late.examples, seen.expires_late.worst) == (["session:3"], 7200.0)
    assert tally.entries["config"].unexpected_expiry.keys == 1


def test_only_a_few_examples_are_kept(tally):
    for number in range(10_000):
        tally.add(b"session:%d" % number, "list", -1, 1)
    fault = tally.entries["session:{token}"].wrong_type
    assert (fault.keys, len(fault.examples)) == (10_000, 3)


def test_rounding_and_a_little_jitter_are_no_fault(tally):
    tally.add(b"session:1", "hash", 3601000, 1)
    tally.add(b"session:2", "hash", 3636000, 1)
    assert not tally.entries["session:{token}"].expires_late.keys


def test_what_the_source_was_not_sure_of_is_not_judged(tally):
    tally.add(b"maybe:1", "string", -1, 1)
    seen = tally.entries["maybe:{id}"]
    assert not seen.wrong_type.keys and not seen.never_expires.keys


def test_expiry_of_unknown_length_must_be_there_all_the_same(tally):
    tally.add(b"code:a@example.com", "string", -1, 1)
    tally.add(b"code:b@example.com", "string", 1000000000, 1)
    seen = tally.entries["code:{email}"]
    assert (seen.never_expires.keys, seen.expires_late.keys) == (1, 0)


def test_arguments_that_name_people_are_noticed(tally):
    tally.add(b"lock:ada@example.com", "string", -1, 1)
    tally.add(b"lock:203.0.113.7", "string", -1, 1)
    tally.add(b"lock:reports", "string", -1, 1)
    assert tally.entries["lock:{name}"].personal.words == {"an email address": 1, "an IP address": 1}


def test_very_large_keys_are_noticed(tally):
    tally.add(b"config", "string", -1, LARGE_BYTES + 1)
    assert tally.entries["config"].large.worst == LARGE_BYTES + 1


def test_remaining_times_fall_into_classes(tally):
    for number, ms in enumerate((1000, 60_000, 61_000, 86_400_000, 3_000_000_000, -1)):
        tally.add(b"lock:%d" % number, "string", ms, 1)
    assert tally.entries["lock:{name}"].ttls == {"1 min": 2, "1 h": 1, "1 day": 1, LONGER: 1, NEVER: 1}


def test_names_that_are_not_text_are_spelled(tally):
    tally.add(b"session:\xff\x00", "list", 5000, 1)
    seen = tally.entries.get("session:{token}")
    assert seen is None or seen.wrong_type.examples == [r"session:\xff\x00"]


def test_what_the_server_did_not_tell_is_not_judged(tally):
    tally.add(b"session:1", "", UNKNOWN_TTL, 0)
    seen = tally.entries["session:{token}"]
    assert not seen.wrong_type.keys and not seen.never_expires.keys and not seen.ttls


def test_keys_that_have_gone_meanwhile_are_not_counted(tally):
    tally.add_page(Page([b"session:1", b"session:2"], ["none", "hash"], [-2, 60_000], [0, 100]))
    assert tally.keys == 1


def test_every_large_key_is_counted_in_whatever_order_they_come():
    described = inventory(entry("blob:{id}", "string", 0))
    tally = Tally(Matcher(described).find, lambda *seen: None)
    for number, mib in enumerate((30, 20, 40, 1)):
        tally.add(b"blob:%d" % number, "string", -1, mib * 1024 * 1024)
    large = tally.entries["blob:{id}"].large
    assert (large.keys, large.worst) == (3, 40 * 1024 * 1024)
