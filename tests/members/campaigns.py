"""A plain account of clicks, devices and people, recomputed from nothing after each event."""

from collections import Counter
from dataclasses import dataclass, field

from keystead.members.conversion import Click

Counts = Counter[tuple[int, str, str]]  # day, campaign and field


@dataclass
class Account:
    """Everything that happened, and the counts by day that follow from what each event changed."""

    joined: dict[str, float] = field(default_factory=dict)  # by person
    clicks: dict[str, set[Click]] = field(default_factory=dict)  # by device
    links: set[tuple[str, str]] = field(default_factory=set)  # person, device
    counts: Counts = field(default_factory=Counter)

    def click(self, device: str, click: Click, day_of) -> None:
        before = self.credit()
        self.clicks.setdefault(device, set()).add(click)
        self.counts[day_of(click.clicked_at), click.utm, "visits"] += 1
        self.changed(before, day_of(click.clicked_at), day_of)

    def link(self, person: str, device: str, seen_at: float, day_of) -> None:
        before = self.credit()
        self.links.add((person, device))
        self.changed(before, day_of(seen_at), day_of)

    def changed(self, before: set[tuple[str, str, str, Click]], day: int, day_of) -> None:
        after = self.credit()
        for sign, credits in ((1, after - before), (-1, before - after)):
            for _, _, name, click in credits:
                holdover = "holdover_" if day_of(click.clicked_at) < day else ""
                self.counts[day, click.utm, holdover + name] += sign

    def credit(self) -> set[tuple[str, str, str, Click]]:
        """Every credit there is now: of whom, through which device, what, for which click."""
        found = set()
        for person, joined_at in self.joined.items():
            attributable = []
            for device in {device for who, device in self.links if who == person}:
                for click in self.clicks.get(device, ()):
                    is_attributable = click.clicked_at <= joined_at
                    found.add((person, device, "any_click_signups" if is_attributable else "preexisting", click))
                    if is_attributable:
                        attributable.append(click)
            if attributable:
                found.add((person, "", "last_click_signups", max(attributable)))
        return found

    def nonzero(self) -> dict[tuple[int, str, str], int]:
        return {place: amount for place, amount in self.counts.items() if amount}

    def check_sums(self) -> None:
        """Over all days no last click is owed, and there are at least as many credits for any click."""
        sums: Counter[tuple[str, str]] = Counter()
        for (_, utm, name), amount in self.counts.items():
            sums[utm, name.removeprefix("holdover_")] += amount
        for utm in {utm for utm, _ in sums}:
            assert 0 <= sums[utm, "last_click_signups"] <= sums[utm, "any_click_signups"]
