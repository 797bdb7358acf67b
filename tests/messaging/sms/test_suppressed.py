"""Which numbers must not be texted."""

from collections.abc import Iterable

from keystead.messaging.sms.suppressed import Suppressed
from keystead.testing.clock import MovableClock


class Numbers:
    """Stands for the table."""

    def __init__(self, *numbers: str) -> None:
        self.numbers = set(numbers)

    async def phones(self, numbers: Iterable[str]) -> set[str]:
        return self.numbers & set(numbers)


async def test_a_number_is_asked_for_in_the_list_of_numbers() -> None:
    numbers = Numbers("+1")
    suppressed = Suppressed(numbers, MovableClock())  # type: ignore[arg-type]
    assert await suppressed.has("+1") and not await suppressed.has("+2")
    numbers.numbers.add("+2")
    assert not await suppressed.has("+2"), "that it is free is believed for a while"
    suppressed.forget("+2")
    assert await suppressed.has("+2")
