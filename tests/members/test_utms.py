"""Campaigns have one spelling."""

import pytest

from keystead.errors import Invalid
from keystead.members import Utm


def test_the_canonical_spelling_is_sorted_trimmed_and_as_in_a_web_form() -> None:
    utm = Utm.of(" news letter ", utm_campaign="é&x", utm_term="", utm_medium="  ", utm_content="b=1")
    assert utm.canonical == "utm_campaign=%C3%A9%26x&utm_content=b%3D1&utm_source=news+letter"
    assert Utm.of("news letter", None, "é&x", None, "b=1") == utm


def test_what_is_no_campaign_is_refused_by_name() -> None:
    for parts, says in (({"utm_source": "  "}, "needs utm_source"), ({"utm_source": "x" * 256}, "utm_source has 256"),
                        ({"utm_source": "a", "utm_term": "x" * 300}, "utm_term has 300"),
                        ({"utm_source": "a\0"}, "no text"), ({"utm_source": "\ud800"}, "no text")):
        with pytest.raises(Invalid, match=says):
            Utm.of(**parts)
    longest = Utm(*["𝄞" * 255] * 5).canonical
    assert len(longest) < 16_384, "so long a row may be"
