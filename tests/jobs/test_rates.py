"""Reserved starts."""

import pytest

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.jobs import Rate
from keystead.jobs.keys import RATE
from keystead.jobs.rates import reserve_start


async def test_starts_are_evenly_spaced(server: Valkey) -> None:
    starts = [await reserve_start(server, "t.x", Rate(4, 1.0), 1000.0) for _ in range(5)]
    assert starts == [1000.0, 1000.25, 1000.5, 1000.75, 1001.0]
    assert await reserve_start(server, "t.other", Rate(4, 1.0), 1000.0) == 1000.0
    assert await RATE.at("t.x").reference.exists(server), "it is the declared key"


def test_a_rate_of_less_than_one_a_day_is_refused() -> None:
    with pytest.raises(DeclarationError, match="at least one run a day"):
        Rate(1, 86_401.0)


async def test_a_day_ahead_all_are_taken(server: Valkey) -> None:
    assert await reserve_start(server, "t.x", Rate(1, 86_000.0), 1000.0) == 1000.0
    assert await reserve_start(server, "t.x", Rate(1, 86_000.0), 1000.0) == 87_000.0
    assert await reserve_start(server, "t.x", Rate(1, 86_000.0), 1000.0) is None
