"""Each kind accepts its values and nothing else."""

import random
from ipaddress import ip_address
from uuid import UUID

import pytest

from keystead.errors import DeclarationError
from keystead.keys.variables import IP, KINDS, TEXT, Kind, Matching, OneOf, kind_of_name, kind_of_text


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("unix_date", ["0", "20000"], ["", "-1", "020", "1.5", "1000000", "²", "٣", "20000 "]),
        ("unix_month", ["671"], ["", "-1", "07"]),
        ("user", ["user_1", "auth0|5f7", "a@b.c"], ["", "a b", "a:b", "{a}", "x" * 256]),
        ("email", ["a@b.c", "a+b@c.example"], ["", "a", "@b", "a@", "a@b@c", "a b@c.d", "a:b@c.d"]),
        ("ip", ["1.2.3.4", "::1", "2001:db8::7", "fe80::1", "::"],
         ["::ffff:1.2.3.4", "2001:DB8::7", "2001:db8:0::7",
          "", "1.2.3", "1.2.3.256", "01.2.3.4", "fe80::1%eth0", "1:2", ":::", "2001:db8::7::1", "1.2.3.4:80"]),
        ("uuid", ["a0000000-0000-4000-8000-00000000000F"], ["", "a0000000", "g0000000-0000-4000-8000-000000000000"]),
        ("sha256", ["0" * 64, "af" * 32], ["", "0" * 63, "0" * 65, "A" * 64]),
        ("timezone", ["America/Los_Angeles", "Etc/GMT+3", "UTC", "America/Argentina/Ushuaia", "EST5EDT"],
         ["", "/", "America/", "Amer:ica", "a/b/c/d", "2020"]),
        ("integer", ["0", "-5", "12345678901234567890"], ["", "-0", "05", "+1", "1.0", "٣"]),
        ("word", ["a", "a b", "é", "{x}", "*"], ["", "a:b"]),
        ("text", ["a", "utm_source=a:b&c=d", ":", "a::b"], [""]),
    ],
)
def test_a_kind_accepts_its_values_and_nothing_else(kind: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not KINDS[kind].accepts(text)] == []
    assert [text for text in bad if KINDS[kind].accepts(text)] == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_samples_and_witnesses_are_accepted(kind: Kind) -> None:
    rng = random.Random(3)
    for text in (*(kind.sample(rng) for _ in range(200)), *kind.witnesses()):
        assert kind.accepts(text), text
        assert kind.spans_colons or ":" not in text
        assert all(kind.may_contain(character) for character in text)


def test_addresses_are_written_in_one_spelling() -> None:
    assert IP.to_text("2001:DB8:0:0:0:0:0:7") == "2001:db8::7"
    assert IP.to_text("::ffff:203.0.113.7") == "203.0.113.7"
    assert IP.to_text(ip_address("203.0.113.7")) == "203.0.113.7"
    assert not IP.accepts(IP.to_text("not an address"))


def test_values_of_other_types_become_text() -> None:
    assert KINDS["unix_date"].to_text(20_000) == "20000"
    assert KINDS["uuid"].to_text(UUID(int=15)) == "00000000-0000-0000-0000-00000000000f"


def test_an_enumeration_is_exact() -> None:
    kind = kind_of_text("day|week|day.5")
    assert [text for text in ("day", "week", "day.5", "dayx5", "DAY", "da") if kind.accepts(text)] == [
        "day", "week", "day.5",
    ]
    for values in ((), ("",), ("a:b",), ("a\n",)):
        with pytest.raises(DeclarationError):
            OneOf(*values)


def test_a_kind_of_ones_own_must_fit_its_examples() -> None:
    assert Matching("sid", r"SM[0-9a-f]+", examples=("SM1",)).accepts("SM12")
    with pytest.raises(DeclarationError, match="does not fit"):
        Matching("sid", r"SM[0-9a-f]+", examples=("XX",))
    with pytest.raises(DeclarationError, match="needs examples"):
        Matching("sid", r"SM", examples=())
    with pytest.raises(DeclarationError, match="groups"):
        Matching("sid", r"(SM)", examples=("SM",))


def test_names_have_well_known_kinds() -> None:
    assert kind_of_name("utm") is TEXT
    assert kind_of_name("user_ip") is KINDS["word"]
    assert kind_of_name("item_uuid") is KINDS["uuid"]
    assert kind_of_name("url_sha256") is KINDS["sha256"]
    with pytest.raises(DeclarationError, match="there is no kind 'nonsense'"):
        kind_of_text("nonsense")
