"""The stride of a walk, with times told instead of measured."""

from keystead.survey.stride import LARGEST_PAGE_KEYS, LONGEST_REST_SECONDS, PAGE_KEYS, SMALLEST_PAGE_KEYS, Stride


def test_quick_pages_go_at_the_rate_and_no_faster() -> None:
    stride = Stride(1000)
    stride.pinged(0.001, 10.0)
    now = 10.0
    for _ in range(10):
        now += 0.002
        stride.took(0.002, 500, now)
        now += stride.rest_seconds(now)
    assert 14.5 < now < 15.1, "5,000 keys at 1,000 a second"
    assert stride.page_keys == PAGE_KEYS


def test_page_that_holds_the_server_is_followed_by_smaller_ones_and_rests() -> None:
    stride = Stride(1e9)
    stride.pinged(0.001, 0.0)
    stride.took(0.051, 500, 1.0)
    assert stride.page_keys == PAGE_KEYS // 2 and stride.slow_pages == 1
    assert 0.19 < stride.rest_seconds(1.0) < 0.21
    for _ in range(20):
        stride.took(5.0, 500, 2.0)
    assert stride.page_keys == SMALLEST_PAGE_KEYS
    assert stride.rest_seconds(2.0) == LONGEST_REST_SECONDS
    for _ in range(10):
        stride.took(0.002, 16, 3.0)
    assert stride.page_keys == PAGE_KEYS, "it recovers"


def test_long_way_to_the_server_does_not_count() -> None:
    stride = Stride(1e9)
    stride.pinged(0.2, 0.0)
    for _ in range(5):
        stride.took(0.203, 500, 1.0)
    assert stride.slow_pages == 0 and stride.rest_seconds(1.0) == 0
    assert stride.page_keys == LARGEST_PAGE_KEYS, "fewer trips where each takes long"


def test_server_that_is_late_is_left_alone_and_in_the_end_for_good() -> None:
    stride = Stride(1e9, late_seconds=0.01, give_up_seconds=5)
    stride.pinged(0.001, 0.0)
    stride.pinged(0.1, 1.0)
    assert 0.39 < stride.rest_seconds(1.0) < 0.41 and not stride.gave_up
    assert stride.wants_ping(1.4), "it is asked again at once after the rest"
    stride.pinged(0.002, 2.0)
    stride.pinged(0.1, 3.0)
    stride.pinged(0.1, 7.0)
    assert not stride.gave_up
    stride.pinged(0.1, 8.5)
    assert stride.gave_up
