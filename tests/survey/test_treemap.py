import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.survey.treemap import SMALLEST_SHARE, layout


@given(st.lists(st.floats(0.001, 1e9), min_size=1, max_size=60))
def test_areas_are_in_proportion_and_nothing_leaves_the_frame(sizes):
    sizes = sorted(sizes, reverse=True)
    boxes = layout(sizes, 1200, 420)
    assert [box.index for box in boxes] == list(range(sum(size > sum(sizes) * SMALLEST_SHARE for size in sizes)))
    for box in boxes:
        assert box.width * box.height == pytest.approx(1200 * 420 * sizes[box.index] / sum(sizes), rel=0.01, abs=0.1)
        assert box.x >= -0.01 and box.x + box.width <= 1200.01
        assert box.y >= -0.01 and box.y + box.height <= 420.01


def test_equal_numbers_give_nearly_square_boxes():
    assert all(0.5 < box.width / box.height < 2 for box in layout([1.0] * 12, 400, 300))


def test_nothing_and_zero_take_no_room():
    assert layout([], 10, 10) == []
    assert [box.index for box in layout([3.0, 0.0, 1.0], 10, 10)] == [0, 2]
