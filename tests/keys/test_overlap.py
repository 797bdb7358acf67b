"""Two patterns that could own the same key are found, with such a key and the more literal one."""

import pytest

from keystead.keys.overlap import overlap
from keystead.keys.template import Template


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a:{x}", "a:{x}:b"),
        ("a:{unix_date}", "a:earliest"),
        ("a:{unix_date}:b", "a:c:{x}"),
        ("a:{uuid}", "a:{sha256}"),
        ("a:{x:b|c}", "a:{y:d|e}"),
        ("{item_uuid}", "{n:integer}"),
        ("a:{utm}:{unix_date}:counts", "a:{unix_date}:utms"),
        ("a:rdr-{x}", "a:pdf-{x}"),
        ("a:{ip}", "a:{email}"),
    ],
)
def test_patterns_that_share_no_key(first: str, second: str) -> None:
    assert overlap(Template(first), Template(second)) is None
    assert overlap(Template(second), Template(first)) is None


@pytest.mark.parametrize(
    ("literal", "general"),
    [
        ("a:b", "a:{x}"),
        ("a:clicks:{x}", "a:{y}:{x}"),
        ("a:timezones:{unix_date}", "a:{tz}:{unix_date}"),
        ("a:{x:b|c}", "a:{y}"),
        ("a:rdr-{x}", "a:{y}"),
        ("a:rdr-long-{x}", "a:rdr-{y}"),
        ("a:{x}", "a:{rest}"),
        ("a:{x}:{y}:{z}", "a:{rest}"),
        ("a:b:{rest}", "a:{rest}"),
        ("a:{utm}:counts", "a:{utm}"),
        ("a:{ip}", "a:{rest}"),
        ("a:{x}", "a{rest}"),
        ("{a}:{b}:{c}:{d}", "{rest}"),
        ("{ip}", "{x}:{rest}:{y}"),
    ],
)
def test_the_more_literal_pattern_wins(literal: str, general: str) -> None:
    found = overlap(Template(literal), Template(general))
    assert found is not None and found.more_literal == 1
    assert Template(literal).match(found.example) is not None
    assert Template(general).match(found.example) is not None
    turned = overlap(Template(general), Template(literal))
    assert turned is not None and turned.more_literal == -1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a:{x}", "a:{y}"),
        ("a:{x}:c", "a:b:{y}"),
        ("a:{x:integer}", "a:{y}"),
        ("a:{user_sub}", "a:{email}"),
        ("a:{x:b|c}", "a:{y:c|d}"),
        ("a:{x}-b", "a:c-{y}"),
        ("a:{utm}:b", "a:c:{rest}"),
        ("a:{ip}", "a:{x}"),
        ("{ip}", "{a}:{b}:{c}:{d}:{e}:{f}:{g}:{h}"),
        ("a:{uuid}", "a:{tz}"),
        ("a:{sha256}", "a:{tz}"),
    ],
)
def test_a_tie_is_reported_with_a_key_both_match(first: str, second: str) -> None:
    for one, other in ((first, second), (second, first)):
        found = overlap(Template(one), Template(other))
        assert found is not None and found.more_literal == 0
        assert Template(one).match(found.example) is not None
        assert Template(other).match(found.example) is not None
