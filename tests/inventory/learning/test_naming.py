"""Variables are named after what stands beside them, and their kinds are those of the registry."""

import pytest

from keystead.inventory.learning import learned_from
from keystead.inventory.learning.tree import Tree


def learned(*keys: str) -> list[tuple[str, dict[str, str], str]]:
    tree = Tree()
    for key in keys:
        tree.add(key.encode(), "string", -1, 1)
    return [(named.pattern, dict(named.variables), named.personal) for named, _ in learned_from(tree)]


@pytest.mark.parametrize(
    ("keys", "pattern", "variables"),
    [
        (["user:1", "user:2"], "user:{user_id}", {"user_id": "integer"}),
        (["users:1:posts:7", "users:2:posts:8"], "users:{user_id}:posts:{post_id}",
         {"user_id": "integer", "post_id": "integer"}),
        (["categories:1", "categories:2"], "categories:{category_id}", {"category_id": "integer"}),
        (["pageViews:20400", "pageViews:20401"], "pageViews:{unix_date}", {"unix_date": "unix_date"}),
        (["range:20400:20401", "range:20402:20403"], "range:{unix_date}:{unix_date_2}",
         {"unix_date": "unix_date", "unix_date_2": "unix_date"}),
        (["1:2", "3:4"], "{id}:{id_2}", {"id": "integer", "id_2": "integer"}),
        (["order:007", "order:008"], "order:{order_id}", {"order_id": "word"}),
        (["at:2024-05-01T10:30:00Z", "at:2024-05-02T10:30:00Z"], "at:{time}", {"time": "text"}),
    ],
)
def test_names_and_kinds(keys: list[str], pattern: str, variables: dict[str, str]) -> None:
    assert learned(*keys) == [(pattern, variables, "")]


@pytest.mark.parametrize(("key", "variable"), [("seen:ann@example.com", "email"), ("otp:+4915112345678", "phone"),
                                               ("rate:203.0.113.7", "ip")])
def test_address_of_a_person_is_personal(key: str, variable: str) -> None:
    ((_, _, personal),) = learned(key)
    assert personal == variable
