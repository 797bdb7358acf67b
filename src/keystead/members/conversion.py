"""Which campaign gets the credit: the rules, as changes of counts, without a database.

A click is *attributable* to a person when it happened, on a device of theirs, no later than they joined; any later one
is *preexisting*. Of the attributable ones the newest is the last click. Clicks are in order of time, then of their uid.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from keystead.patterns.rows_by_day import Change


@dataclass(frozen=True, order=True, slots=True)
class Click:
    """A device came through a campaign."""

    clicked_at: float
    uid: str
    utm: str = field(compare=False)


@dataclass(slots=True)
class Person:
    """Somebody. ``newest``: the newest attributable click over all their devices, kept up to date by the rules."""

    joined_at: float
    newest: Click | None = None


class Conversions:
    """What counts change by, as events are told in turn; each change belongs to the day of its event."""

    def __init__(self, day_of: Callable[[float], int]) -> None:
        self._day_of = day_of
        self._by_day: dict[int, dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))

    def clicked(self, click: Click, people: Iterable[Person]) -> None:
        """A new click, on a device of these people."""
        day = self._day_of(click.clicked_at)
        self._by_day[day][click.utm, "visits"] += 1
        for person in people:
            self._credit(person, click, day)
            if click.clicked_at <= person.joined_at:
                self._last_click(person, click, day)

    def linked(self, person: Person, clicks: Iterable[Click], seen_at: float) -> None:
        """A device on which these clicks were made was found to be the person's, at ``seen_at``."""
        day, attributable = self._day_of(seen_at), []
        for click in clicks:
            self._credit(person, click, day)
            if click.clicked_at <= person.joined_at:
                attributable.append(click)
        if attributable:
            self._last_click(person, max(attributable), day)

    def by_day(self) -> dict[int, list[Change]]:
        """The changes that are not zero: row, field and amount, by day."""
        found = {
            day: [(utm, name, amount) for (utm, name), amount in changes.items() if amount]
            for day, changes in self._by_day.items()
        }
        return {day: changes for day, changes in found.items() if changes}

    def _credit(self, person: Person, click: Click, day: int) -> None:
        self._add(click, "any_click_signups" if click.clicked_at <= person.joined_at else "preexisting", 1, day)

    def _last_click(self, person: Person, click: Click, day: int) -> None:
        if person.newest is not None:
            if click < person.newest:
                return
            self._add(person.newest, "last_click_signups", -1, day)
        self._add(click, "last_click_signups", 1, day)
        person.newest = click

    def _add(self, click: Click, name: str, amount: int, day: int) -> None:
        """What concerns a click of an earlier day than the event is a holdover."""
        held_over = self._day_of(click.clicked_at) < day
        self._by_day[day][click.utm, f"holdover_{name}" if held_over else name] += amount
