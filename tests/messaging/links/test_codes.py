"""Short codes grow when too many in a row are taken, and only then."""

import pytest

from keystead.errors import LimitReached
from keystead.messaging.links.codes import Codes
from keystead.messaging.links.models import Style
from keystead.settings import LinksSettings


def test_styles_differ_in_length() -> None:
    codes = Codes()
    assert [len(codes.new(style)) for style in (Style.SHORT, Style.NORMAL, Style.LONG)] == [4, 22, 86]


def test_a_byte_is_added_after_more_than_five_in_a_row() -> None:
    codes = Codes()
    for _ in range(5):
        codes.was_taken()
    codes.was_free()
    for _ in range(5):
        codes.was_taken()
    assert codes.short_bytes == 3
    codes.was_taken()
    assert codes.short_bytes == 4
    assert len(codes.new(Style.SHORT)) == 6


def test_growth_ends_with_a_refusal() -> None:
    codes = Codes(LinksSettings(short_bytes=15, most_short_bytes=16, short_streak=0))
    codes.was_taken()
    with pytest.raises(LimitReached, match="16 bytes"):
        codes.was_taken()
