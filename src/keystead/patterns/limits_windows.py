"""Limits that count within a window and end by the server's own expiry."""

from collections.abc import Awaitable
from typing import ClassVar, Unpack

from keystead.engine import Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError, Unavailable
from keystead.keys import Exactly, IntegerKey, IntegerRef, Keyspace, Layout, Reply, Sliding, Value
from keystead.patterns.facts import PatternFacts
from keystead.patterns.gathering import Gathering, OrElse, is_client
from keystead.patterns.limits import Decision, LimitAt, Rule, WhenAway, milliseconds, open_decision, positive

COUNT = Script("keystead.patterns", "scripts/limits/count.lua")
GIVE_BACK = Script("keystead.patterns", "scripts/limits/give_back.lua")
_GATHERED = Gathering(COUNT, answers_each=2)
_RENEWS, _COUNTS_REFUSED = 1, 2
MOST_REMEMBERED = 1000


class _Window:
    """What the three kinds share: a counter and when it ends."""

    renews: ClassVar[bool] = False

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, most: int, window_seconds: float, counts_refused: bool = True,
        when_away: WhenAway = WhenAway.OPEN, **facts: Unpack[PatternFacts],
    ) -> None:
        self.most = positive("most", most)
        self.window_seconds = window_seconds
        self.length_ms = milliseconds(window_seconds)
        self.mode = _RENEWS * self.renews + _COUNTS_REFUSED * counts_refused
        self.counts_refused = counts_refused
        self.when_away = when_away
        self.arguments = (self.most, self.length_ms, 1, self.mode)
        self._known: dict[Value, WindowAt] = {}
        self.key = IntegerKey(
            keyspace, pattern, ttl=Sliding(window_seconds, reads=False) if self.renews else Exactly(window_seconds),
            scripts=("limits/count.lua", "limits/give_back.lua", "limits/check_all.lua"), **facts,
        )

    def at(self, *variables: Value, **named: Value) -> "WindowAt":
        if len(variables) != 1 or named or variables[0].__class__ is not str:
            return WindowAt(self, self.key.at(*variables, **named))
        # The same few callers come again and again, and to name a key is a third of what a use costs.
        (variable,) = variables
        known = self._known.get(variable)
        if known is None:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            known = self._known[variable] = WindowAt(self, self.key.at(variable))
        return known


class Cooldown(_Window):
    """One use, then none until ``seconds`` are over. The key is ``1`` meanwhile."""

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, seconds: float, when_away: WhenAway = WhenAway.OPEN,
        **facts: Unpack[PatternFacts],
    ) -> None:
        super().__init__(keyspace, pattern, most=1, window_seconds=seconds, counts_refused=False,
                         when_away=when_away, **facts)


class FixedWindow(_Window):
    """``most`` uses in a window that begins with the first and is not prolonged by later ones.

    Two full windows may touch, so up to twice ``most`` uses can fall into any time of one window's length. With
    ``counts_refused`` the key also shows how many were refused; uses with a cost need it off.
    """


class RestartingWindow(_Window):
    """``most`` uses with less than ``window_seconds`` between them: each use starts the window again.

    With ``counts_refused``, as such keys are documented, a refused use starts it again too, so whoever keeps trying
    stays refused.
    """

    renews = True


class WindowAt(LimitAt):
    """One window."""

    __slots__ = ("_names", "window")

    def __init__(self, window: _Window, reference: IntegerRef) -> None:
        self.window = window
        self.reference = reference
        self.when_away = window.when_away
        self._names: dict[Layout, bytes] = {}

    def use(self, on: ScriptRunner, *, cost: int = 1, now: float = 0.0) -> Awaitable[Decision]:
        """Count one use, or ``cost`` of them at once, all or none. One atomic step, and never more than ``most``.

        Calls that tasks make at the same moment travel together. ``now`` only comes back as ``starts_at``: the window
        ends by the server's clock.
        """
        window = self.window
        arguments = window.arguments
        if cost != 1:
            self._check_cost(cost)
            arguments = (window.most, window.length_ms, cost, window.mode)
        name = self._names.get(on.layout)
        if name is None:
            name = self._names[on.layout] = self.reference.name(on.layout)
        if is_client(on):
            return self._use_now(on, name, arguments, now)
        asked = COUNT(on, keys=[name], args=arguments, decode=lambda reply: self._read(reply, cost, now))
        return asked if self.when_away is WhenAway.CLOSED else OrElse(asked, lambda: open_decision(now))

    async def _use_now(self, on: Valkey, name: bytes, arguments: tuple[int, ...], now: float) -> Decision:
        try:
            reply = await _GATHERED.ask(on, name, arguments)
        except Unavailable:
            if self.when_away is WhenAway.CLOSED:
                raise
            return open_decision(now)
        return self._read(reply, arguments[2], now)

    def _read(self, reply: Reply, cost: int, now: float) -> Decision:
        uses, left_ms = reply
        if uses.__class__ is not int:
            raise uses
        most, left = self.window.most, left_ms / 1000
        if uses <= most:
            return Decision(True, most - uses, 0.0, left, now)
        remaining = 0 if self.window.counts_refused else max(0, most - uses + cost)
        return Decision(False, remaining, left, left, now)

    def give_back(self, on: ScriptRunner, *, cost: int = 1) -> Awaitable[int]:
        """Take uses back that turned out not to count; says how many there were. Only for uses that were allowed."""
        positive("cost", cost)
        return GIVE_BACK(on, keys=[self.reference], args=[cost], decode=int)

    def rule(self, now: float, *, cost: int = 1) -> Rule:
        if positive("cost", cost) > self.window.most:
            self._check_cost(cost)
        return Rule(self, "counter", (self.window.most, self.window.length_ms, cost, self.window.mode))

    def _check_cost(self, cost: int) -> None:
        if positive("cost", cost) > self.window.most:
            raise DeclarationError(f"{self.window.key.pattern}: a use that costs {cost} never fits {self.window.most}")
        if self.window.counts_refused:
            raise DeclarationError(
                f"{self.window.key.pattern} counts refused uses, so a use costs 1; declare counts_refused=False"
            )
