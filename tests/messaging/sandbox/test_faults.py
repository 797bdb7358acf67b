"""Faults: set in parts, known everywhere, the same again under the same seed."""

import pytest

from keystead.errors import Invalid
from keystead.messaging.sandbox.faults import FaultBoard, Rate, changed
from keystead.messaging.sandbox.models import Faults


async def test_what_is_set_is_known_to_another_process_after_a_look(server):
    here, there = FaultBoard(server), FaultBoard(server)
    await here.change(None, {"latency_ms": 5})
    await here.change("sms", {"throttle": 0.5})
    assert there.of("sms") == Faults()
    await there.refresh()
    assert there.of("sms") == Faults(latency_ms=5, throttle=0.5)
    assert there.of("push") == Faults(latency_ms=5)
    await here.clear()
    await there.refresh()
    assert there.all() == {"push": Faults(), "sms": Faults(), "email": Faults()}


@pytest.mark.parametrize("change", [{"throttle": 1.5}, {"throttle": -0.1}, {"nonsense": 1}, {"seed": "x"},
                                    {"latency_ms": -1}])
def test_a_fault_that_cannot_be_is_refused_in_one_line(change):
    with pytest.raises(Invalid, match="the faults cannot be set so"):
        changed(Faults(), change)


def fates(board, number=200):
    return [(fate.meets("throttle"), fate.meets("early"), fate.meets_again(0.5))
            for fate in (board.fate("sms") for _ in range(number))]


async def test_the_same_seed_gives_the_same_fates_and_another_gives_others(valkey):
    board = FaultBoard(valkey)
    await board.change("sms", {"throttle": 0.3, "early": 0.5, "seed": 7})
    first = fates(board)
    assert fates(board) != first, "the sequence must go on"
    await board.change("sms", {"seed": 7})
    assert fates(board) == first
    await board.change("sms", {"seed": 8})
    assert fates(board) != first


async def test_turning_one_fault_on_moves_no_other(valkey):
    board = FaultBoard(valkey)
    await board.change("sms", {"throttle": 0.3})
    alone = [throttle for throttle, _, _ in fates(board)]
    await board.change("sms", {"early": 1.0, "unknown": 0.5})
    assert [throttle for throttle, _, _ in fates(board)] == alone
    assert 30 < sum(alone) < 90


def test_a_rate_lets_half_a_second_through_at_once_and_then_as_time_goes():
    rate = Rate()
    assert sum(rate.allows(10, 100.0) for _ in range(20)) == 5
    assert sum(rate.allows(10, 100.2) for _ in range(20)) == 2
    assert sum(rate.allows(10, 200.0) for _ in range(20)) == 5
    assert all(rate.allows(0, 200.0) for _ in range(20))
