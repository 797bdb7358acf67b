"""What must hold between the counts of a day once it is over: ``sent + lost = tried``."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

from keystead.errors import DeclarationError

_SIDE = re.compile(r"\s*[a-z0-9_]+(?:\s*\+\s*[a-z0-9_]+)*\s*")


@dataclass(frozen=True, slots=True)
class Broken:
    """An identity that does not hold: what its two sides add up to."""

    identity: "Identity"
    left: int
    right: int

    def __str__(self) -> str:
        return f"{self.identity.text}: {self.left:,} is not {self.right:,}"


@dataclass(frozen=True, slots=True)
class Identity:
    """Two sums of counts that are equal when nothing was miscounted."""

    text: str
    left: tuple[str, ...]
    right: tuple[str, ...]

    @classmethod
    def parse(cls, family: str, text: str, events: Collection[str]) -> Self:
        """Read ``a + b = c``; refuses what is not of this form, and events that the family does not declare."""
        sides = text.split("=")
        if len(sides) != 2 or not all(_SIDE.fullmatch(side) for side in sides):
            raise DeclarationError(f"{family}: an identity is written as 'a + b = c', not {text!r}")
        left, right = (tuple(name.strip() for name in side.split("+")) for side in sides)
        for name in (*left, *right):
            if name not in events:
                raise DeclarationError(f"{family}: the identity {text!r} names {name}, which is not an event")
        return cls(text, left, right)

    def check(self, counts: Mapping[str, int]) -> Broken | None:
        """None if it holds for these counts."""
        left, right = (sum(counts[name] for name in side) for side in (self.left, self.right))
        return None if left == right else Broken(self, left, right)
