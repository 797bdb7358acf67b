"""Patterns: what may be written, filled in and read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.errors import DeclarationError
from keystead.keys.template import Template
from keystead.keys.variables import OneOf


def test_the_documented_spelling_has_no_kinds() -> None:
    template = Template("stats:{period:day|week}:{n:integer}")
    assert template.spelling == "stats:{period}:{n}"
    assert [variable.kind.name for variable in template.variables] == ["one of day|week", "integer"]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "empty"),
        ("a:{", "braces"),
        ("a:}", "braces"),
        ("a:{}", "braces"),
        ("a:{Name}", "braces"),
        ("a:{x}:{x}", "appears twice"),
        ("a:{x:nonsense}", "there is no kind"),
        ("a:{x}{y}", "separator"),
        ("a:{x}-{y}", "may itself contain"),
        ("a:{utm}:{rest}", "only one variable may hold colons"),
        ("a\nb", "control"),
    ],
)
def test_a_pattern_that_could_not_be_read_back_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(DeclarationError, match=why):
        Template(pattern)


def test_two_variables_may_share_a_segment_if_the_separator_is_in_neither() -> None:
    template = Template("a:{unix_date}-{word}")
    assert template.match("a:20000-x-y") == {"unix_date": "20000", "word": "x-y"}


def test_kinds_can_be_given_beside_the_pattern() -> None:
    template = Template("a:{x}", {"x": OneOf("one")})
    assert template.match("a:two") is None
    with pytest.raises(DeclarationError, match="two kinds"):
        Template("a:{x:integer}", {"x": OneOf("one")})
    with pytest.raises(DeclarationError, match="which the pattern does not have"):
        Template("a:{x}", {"y": OneOf("one")})


@pytest.mark.parametrize(
    "value", ["", "a:b", "a\x00b", "a\nb", "\x7f", "\x85", "\ud800", True]
)
def test_an_unfit_value_is_refused_and_named(value: str) -> None:
    template = Template("jobs:hot:{category}:x")
    with pytest.raises(DeclarationError) as caught:
        template.bind((value,), {})
    assert str(caught.value).startswith("jobs:hot:{category}:x: variable category must be text without colons")
    assert str(caught.value).endswith(f"got {value!r}")


def test_a_long_unfit_value_is_not_shown_whole() -> None:
    with pytest.raises(DeclarationError) as caught:
        Template("a:{x}").bind(("secret:" * 100,), {})
    assert len(str(caught.value)) < 200


def test_variables_are_given_by_place_or_name() -> None:
    template = Template("a:{x}:{y}")
    assert template.bind(("1", "2"), {}) == template.bind(("1",), {"y": "2"}) == {"x": "1", "y": "2"}
    for positional, named, why in (
        (("1",), {}, "takes 2 variables"),
        (("1", "2", "3"), {}, "takes 2 variables"),
        (("1",), {"x": "1"}, "given twice"),
        (("1",), {"z": "1"}, "not in the pattern"),
        ((), {"y": "1"}, "no value for variable x"),
    ):
        with pytest.raises(DeclarationError, match=why):
            template.bind(positional, named)


@given(utm=st.text(min_size=1), day=st.integers(0, 999_999))
def test_free_text_with_colons_comes_back(utm: str, day: int) -> None:
    template = Template("stats:visitors:daily:{utm}:{unix_date}:counts")
    try:
        arguments = template.bind((utm, day), {})
    except DeclarationError:
        assert any(ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in utm)
        return
    assert template.match(template.fill(arguments)) == {"utm": utm, "unix_date": str(day)}
