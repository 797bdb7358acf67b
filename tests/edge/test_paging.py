"""Pages and cursors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.edge.paging import (
    MOST_ITEMS,
    PageRequest,
    PositionNumber,
    PositionText,
    cursor_after,
    make_cursor,
    page_of,
    read_cursor,
)
from keystead.errors import Invalid


@given(st.tuples(st.integers(-(2**53), 2**53), st.text()))
def test_cursor_brings_back_its_position(position):
    assert read_cursor(make_cursor(position), tuple[int, str]) == position


@pytest.mark.parametrize("cursor", ["", "x", "!!!", "bm90IGpzb24", make_cursor("text"), "é", "A" * 40])
def test_foreign_cursor_is_refused(cursor):
    with pytest.raises(Invalid, match="cursor is not one"):
        PageRequest(cursor=cursor).position(int)


def test_no_cursor_means_the_start():
    assert PageRequest().position(int) is None


@pytest.mark.parametrize("limit", [0, -1, MOST_ITEMS + 1])
def test_limit_has_bounds(limit):
    with pytest.raises(Invalid, match="limit must be 1 to"):
        PageRequest(limit=limit)


def test_overlong_cursor_is_refused_unread():
    with pytest.raises(Invalid, match="too long"):
        PageRequest(cursor="A" * 5000)


def test_walking_page_by_page_gives_everything_once():
    numbers = list(range(23))
    seen: list[int] = []
    request = PageRequest(limit=5)
    while True:
        start = request.position(int) or 0
        page = page_of(numbers[start : start + request.limit + 1], request, lambda last: last + 1)
        seen += page.items
        if page.next_cursor is None:
            break
        request = PageRequest(limit=5, cursor=page.next_cursor)
    assert seen == numbers


def test_full_last_page_promises_no_further_one():
    assert page_of([1, 2, 3], PageRequest(limit=3), str).next_cursor is None


def test_cursor_with_what_no_database_takes_is_refused():
    assert read_cursor(make_cursor([1, "a\n"]), tuple[int, PositionText]) == (1, "a\n")
    with pytest.raises(Invalid):
        read_cursor(make_cursor([1, "a\0"]), tuple[int, PositionText])


@pytest.mark.parametrize(("first", "shown", "total", "follows"), [
    (0, 2, 5, 2), (4, 1, 5, None), (0, 0, 5, None), (9, 0, 5, None),
])
def test_a_list_that_is_asked_by_number_goes_on_while_more_is_there(first, shown, total, follows):
    cursor = cursor_after(first, shown, total)
    assert (cursor and read_cursor(cursor, PositionNumber)) == follows
