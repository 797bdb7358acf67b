from keystead.operations.throttle import (
    LARGEST_BATCH_KEYS,
    LONGEST_PAUSE_SECONDS,
    SMALLEST_BATCH_KEYS,
    Throttle,
)


def test_quick_batches_run_at_full_size_without_rest():
    throttle = Throttle()
    assert [throttle.took(0.005) for _ in range(5)] == [0.0] * 5
    assert throttle.batch_keys == LARGEST_BATCH_KEYS
    assert throttle.slow_batches == 0


def test_a_slow_batch_halves_the_next_and_rests_four_times_as_long():
    throttle = Throttle()
    assert throttle.took(0.2) == 0.8
    assert throttle.batch_keys == LARGEST_BATCH_KEYS // 2
    assert throttle.slow_batches == 1


def test_batches_shrink_to_a_floor_and_rests_have_a_ceiling():
    throttle = Throttle()
    rests = [throttle.took(5.0) for _ in range(20)]
    assert throttle.batch_keys == SMALLEST_BATCH_KEYS
    assert max(rests) == LONGEST_PAUSE_SECONDS


def test_batches_grow_back_when_the_server_has_room_again():
    throttle = Throttle()
    for _ in range(4):
        throttle.took(0.3)
    small = throttle.batch_keys
    throttle.took(0.03)
    assert throttle.batch_keys == small, "neither slow nor quick leaves the size alone"
    for _ in range(10):
        throttle.took(0.001)
    assert throttle.batch_keys == LARGEST_BATCH_KEYS
