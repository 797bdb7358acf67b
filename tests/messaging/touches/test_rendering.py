"""A message sees the parameters that it lists, and nothing else."""

import pytest

from keystead.messaging.touches.rendering import MOST_LETTERS, Unrenderable, names_in, render, substituted

EVENT = {"name": "Ada", "secret": "x", "streak": {"days": 4, "best": 9}, "price": 1234.5, "items": ["a"]}


def test_listed_parameters_are_filled_in():
    assert render("Hi {name}: {streak.days} days, {{ok}}", ["name", "streak.days"], EVENT) == "Hi Ada: 4 days, {ok}"
    assert render("{price:,.2f}", ["price"], EVENT) == "1,234.50"
    assert names_in("{name} {streak.days} {{no}}") == ["name", "streak.days"]


@pytest.mark.parametrize("template, listed", [
    ("{secret}", ["name"]),
    ("{streak.best}", ["streak.days"]),
    ("{streak}", ["streak"]),
    ("{items}", ["items"]),
    ("{missing}", ["missing"]),
    ("{name.upper}", ["name.upper"]),
    ("{name.__class__}", ["name.__class__"]),
    ("{name!r}", ["name"]),
    ("{name[0]}", ["name"]),
    ("{name:99999999}", ["name"]),
    ("{name:,}", ["name"]),
    ("{0}", []),
    ("{}", []),
    ("{name", ["name"]),
    ("}", []),
])
def test_anything_else_cannot_be_rendered(template, listed):
    with pytest.raises(Unrenderable):
        render(template, listed, EVENT)


def test_a_text_may_not_grow_without_bound():
    with pytest.raises(Unrenderable, match="letters"):
        render("{name}", ["name"], {"name": "x" * (MOST_LETTERS + 1)})


def test_fixed_parameters_are_copied_deeply():
    """Two emails of one touch point must not see each other's words."""
    fixed = {"blocks": [{"text": "old"}], "title": "T"}
    first = substituted(fixed, [(["blocks", 0, "text"], "{name}", ["name"])], EVENT)
    second = substituted(fixed, [], EVENT)
    assert first == {"blocks": [{"text": "Ada"}], "title": "T"}
    assert second == fixed == {"blocks": [{"text": "old"}], "title": "T"}


def test_lists_grow_by_one_and_what_is_missing_is_made():
    made = substituted({}, [
        (["list", 0, "text"], "a", []), (["list", 1], "b", []), (["deep", "er"], "{name}", ["name"]),
    ], EVENT)
    assert made == {"list": [{"text": "a"}, "b"], "deep": {"er": "Ada"}}


@pytest.mark.parametrize("path", [["list", 2], ["list", "x"], ["title", "x"], [0], [], ["list", -1]])
def test_places_that_cannot_be_are_refused(path):
    with pytest.raises(Unrenderable):
        substituted({"list": ["a"], "title": "T"}, [(path, "x", [])], EVENT)
