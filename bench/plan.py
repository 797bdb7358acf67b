"""What a suite says: which cases there are, who takes part, and which bars must hold."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum

from bench.stage import Stage

OURS = "keystead"


class Home(Enum):
    """The environment whose interpreter runs a contestant."""

    PROJECT = "project"
    PEERS = "peers"
    PEERS_OLD_REDIS = "peers with an older redis-py"


@dataclass(frozen=True, slots=True)
class Bar:
    """A promise about one figure: so many times as good as a peer, or (without a peer) on the right side of a limit.

    With ``best_of`` the rival is the best of those peers, and ``peer`` is what they are called together.
    """

    value: float
    peer: str | None = None
    best_of: tuple[str, ...] = ()

    @property
    def rivals(self) -> tuple[str, ...]:
        """The contestants that this bar looks at; none for a limit."""
        return self.best_of or ((self.peer,) if self.peer is not None else ())

    def describe(self, *, lower_is_better: bool) -> str:
        if self.peer is None:
            return f"{'≤' if lower_is_better else '≥'} {self.value:,.15g}"
        if lower_is_better:
            return f"≤ {self.peer}" if self.value == 1 else f"≤ {self.peer} / {self.value:g}"
        return f"≥ {self.value:g}x {self.peer}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number out of a measurement: a row of the table, or several when it has several bars."""

    name: str
    key: str
    unit: str
    lower_is_better: bool = False
    bars: tuple[Bar, ...] = ()


@dataclass(frozen=True, slots=True)
class Contestant:
    """Who is measured, and how: a module of ``bench.load`` and its arguments, run in an environment."""

    name: str
    home: Home
    module: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of work that all its contestants do, and the figures that come out of it.

    ``most_rounds`` is for work that takes long and hardly varies. A contestant that gives no answer within
    ``patience_seconds`` counts as failed.
    """

    name: str
    figures: tuple[Figure, ...]
    contestants: tuple[Contestant, ...]
    most_rounds: int | None = None
    patience_seconds: float = 90.0


@dataclass(frozen=True, slots=True)
class Suite:
    """A set of cases on one stage, measured together and written to one file."""

    name: str
    title: str
    stage: Callable[[], AbstractContextManager[Stage]]
    cases: tuple[Case, ...]
    rounds: int = 5
    notes: tuple[str, ...] = ()
