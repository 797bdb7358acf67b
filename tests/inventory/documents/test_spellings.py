import pytest

from keystead.inventory.documents.mentions import Findings, Mention, Place, Scope
from keystead.inventory.documents.spellings import is_generic, joined, matcher, patterns_of


def patterns(*spellings, **scope):
    constants = scope.pop("constants", {})
    found = Findings(constants=constants, marked=True)
    return [each.pattern for each in patterns_of(Mention(list(spellings), 1, Place.BULLET, Scope(**scope)), found)]


def test_families_prefixes_constants_and_alternatives():
    assert patterns("stats:x:daily:{unix_date}", ":earliest") == [
        "stats:x:daily:{unix_date}",
        "stats:x:daily:earliest",
    ]
    assert patterns("s:{d}", ":extra:{event}") == ["s:{d}", "s:{d}:extra:{event}"]
    assert patterns("a:{b}:{c}", "…:earliest") == ["a:{b}:{c}", "a:{b}:earliest"]
    assert patterns("user:{id}", prefix="app:") == ["app:user:{id}"] == patterns("app:user:{id}", prefix="app:")
    assert patterns(":rooms:{id}", prefix="${P}:") == ["{p}:rooms:{id}"]
    assert patterns("${PREFIX}:x", constants={"PREFIX": "gw"}) == ["gw:x"]
    assert patterns("best:{daily|weekly}") == ["best:daily", "best:weekly"]


def test_what_goes_on_from_nothing_is_doubtful():
    (spelt,) = patterns_of(Mention([":x"], 1, Place.BULLET, Scope()), Findings())
    assert "which one is not said" in spelt.doubt


@pytest.mark.parametrize(
    ("base", "suffix", "whole"),
    [("user:*", ":cart", "user:cart"), ("user:", "cart", "user:cart"), ("a:{b}", ":count", "a:{b}:count")],
)
def test_joining(base, suffix, whole):
    assert joined(base, suffix)[0] == whole


def test_patterns_match_their_keys():
    assert matcher("a:{b}:c").fullmatch("a:1:c") and not matcher("a:{b}:c").fullmatch("a:1:2:c")
    assert is_generic("a:{rest}") and not is_generic("a:{user_id}")
