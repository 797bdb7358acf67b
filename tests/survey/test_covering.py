import pytest

from keystead.survey.covering import Patterns

from .entries import entry


def like(pattern, *described, kind="key"):
    return [found.pattern for found in Patterns([entry(each) for each in described]).like(entry(pattern, kind=kind))]


def test_names_of_variables_do_not_matter():
    assert like("user:{id}:cart", "user:{user_id}:cart", "user:{user_id}") == ["user:{user_id}:cart"]


def test_general_pattern_covers_a_literal_one():
    assert like("lock:reports", "lock:{name}", "lock:other") == ["lock:{name}"]


def test_code_that_builds_several_documented_keys_is_like_each_of_them():
    assert set(like("stats:{kind}:daily", "stats:views:daily", "stats:sales:daily", "stats:views")) == {
        "stats:views:daily", "stats:sales:daily"}


@pytest.mark.parametrize("pattern", ["user:{id}:cart:items", "users:{id}", "user", "user:"])
def test_other_keys_are_not_like_it(pattern):
    assert like(pattern, "user:{id}:cart", "user:{id}") == []


def test_same_name_is_preferred_to_a_covering_one():
    assert like("lock:{job}", "lock:{name}", "{thing}:{name}") == ["lock:{name}"]


def test_library_prefix_covers_everything_below_it():
    library = entry("asynq:{rest}", kind="opaque")
    assert Patterns([library]).like(entry("asynq:queue:{name}:pending")) == [library]


def test_channels_and_keys_are_different_things():
    assert like("updates:{id}", "updates:{id}", kind="channel") == []


@pytest.mark.parametrize("described", ["stat:{rest}", "stat:*"])
def test_any_text_covers_several_segments(described):
    assert like("stat:{kind}:{day}", described, "status:{id}") == [described]
    assert like("stat:processed", described) == [described]


def test_same_with_a_star_and_a_variable():
    assert like("queue:{name}", "queue:*") == ["queue:*"]


def test_variable_stays_within_the_separators_of_its_pattern():
    assert like("app.user.7.cart", "app.user.{id}") == []
