"""Puts a guard before a redis-py client: each command is judged on its way out, whoever sends it.

The client stays the object it was; its class becomes a subclass of the one it had. So whoever holds the client is
guarded, ``isinstance`` keeps answering as before, and its pipelines, transactions, scripts, locks and subscriptions are
guarded too. valkey-py has the same seams.
"""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from keystead.errors import Invalid
from keystead.guard.judging import Judge, raw_of
from keystead.guard.reports import Finding, Kind, Report
from keystead.inventory import Inventory

Client = TypeVar("Client")

_LOG: Final = logging.getLogger("keystead.guard")
_LOOK_BACK_SECONDS: Final = 0.5
_MODULES: Final = ("json", "ts", "ft", "bf", "cf", "cms", "topk", "tdigest")


class Guard:
    """Judges the commands of every client it watches. One guard may serve many clients, threads and event loops."""

    def __init__(
        self, inventory: Inventory, *, strict: bool = False, grace_seconds: float = 2.0,
        log_seconds: float | None = 60.0, on_finding: Callable[[Finding], None] | None = None,
    ) -> None:
        self._judge = Judge(inventory, strict=strict, grace_seconds=grace_seconds)
        self._log_seconds = log_seconds
        self._on_finding = on_finding
        self._classes: dict[type, type] = {}
        self._look_back_at = self._log_at = 0.0
        self._logged = 0

    @property
    def strict(self) -> bool:
        return self._judge.strict

    def watch(self, client: Client) -> Client:
        """Guard a client, pipeline or subscription from now on; gives the same object."""
        kind = type(client)
        if getattr(client, "guard", None) is self:
            return client
        if not callable(getattr(client, "execute_command", None)):
            raise Invalid(f"guarded() takes a redis-py or valkey-py client, not a {kind.__name__}")
        made = self._classes.get(kind)
        if made is None:
            made = self._classes[kind] = _guarded_class(kind, self)
        try:
            client.__class__ = made
        except TypeError:
            raise Invalid(f"a {kind.__name__} cannot be guarded: its class does not allow it") from None
        return client

    def look(self, words: tuple[Any, ...]) -> None:
        """Judge a command that the quick way could not let pass."""
        first = self._judge.look(words)
        if first is not None:
            self._tell(first)
        now = time.monotonic()
        if now >= self._look_back_at:
            self._look_back_at = now + _LOOK_BACK_SECONDS
            late = self._judge.look_for_late()
            if late is not None:
                self._tell(late)
            if self._log_seconds is not None and now >= self._log_at:
                self._log_at = now + self._log_seconds
                self._log_totals()

    def report(self) -> Report:
        """What was seen so far."""
        self._judge.look_for_late()
        judge = self._judge
        used = {pattern: known.seen for pattern, known in judge.known.items() if known.seen}
        unused = tuple(known.pattern for known in judge.known.values()
                       if not known.seen and known.entry is not None and known.entry.kind == "key")
        findings = judge.tally.findings()
        others = sum(each.count for each in findings if each.kind is Kind.UNDOCUMENTED)
        return Report(judge.other_commands + sum(used.values()) + others, used, unused, dict(judge.unknown_commands),
                      findings, judge.tally.not_kept, len(judge.fresh))

    def clear(self) -> None:
        """Forget the findings and the counts; what is known of keys stays."""
        self._judge.tally.clear()
        self._judge.suspects.clear()
        self._judge.other_commands = 0
        for known in self._judge.known.values():
            known.seen = 0

    def confirm(self, client: Any) -> Report:
        """Ask the server (one PTTL each) about the keys that seemed to lack their expiry, and report what is sure."""
        for key, known in self._suspected():
            self._judge.confirm(key, known, client.pttl(raw_of(key)))
        self._judge.tally.drop(Kind.SUSPECTED_TTL)
        return self.report()

    async def aconfirm(self, client: Any) -> Report:
        """``confirm`` for an asynchronous client."""
        for key, known in self._suspected():
            self._judge.confirm(key, known, await client.pttl(raw_of(key)))
        self._judge.tally.drop(Kind.SUSPECTED_TTL)
        return self.report()

    def _suspected(self) -> list[tuple[Any, Any]]:
        self._judge.look_for_late()
        return list(self._judge.suspects.items())

    def _tell(self, finding: Finding) -> None:
        _LOG.warning("%s", finding)
        if self._on_finding is not None:
            self._on_finding(finding)

    def _log_totals(self) -> None:
        findings = self._judge.tally.findings()
        total = sum(finding.count for finding in findings)
        if total != self._logged:
            self._logged = total
            worst = ", ".join(f"{each.pattern} {each.kind.value} {each.count}x" for each in findings[:5])
            _LOG.warning("%d findings so far: %s", total, worst)


def guarded(
    client: Client, inventory: "Inventory | str | Path", *, strict: bool = False, grace_seconds: float = 2.0,
    log_seconds: float | None = 60.0, on_finding: Callable[[Finding], None] | None = None,
) -> Client:
    """Judge every command of a redis-py or valkey-py client by an inventory; gives the same client.

    Observing (the default) counts and never disturbs: see ``client.guard.report()``. ``strict`` raises
    ``NotInInventory`` before a wrong command is sent. Sends nothing to the server by itself.
    """
    if not isinstance(inventory, Inventory):
        from keystead.inventory.files import read_inventory

        inventory = read_inventory(Path(inventory))
    return Guard(inventory, strict=strict, grace_seconds=grace_seconds, log_seconds=log_seconds,
                 on_finding=on_finding).watch(client)


def guard_of(client: object) -> Guard:
    """The guard of a client, for type checkers that do not know ``client.guard``."""
    guard = getattr(client, "guard", None)
    if not isinstance(guard, Guard):
        raise Invalid("this client is not guarded; call guarded(client, inventory) first")
    return guard


def _guarded_class(kind: Any, guard: Guard) -> type:
    pass_by, look = guard._judge.passes, guard.look

    # Asked of the class at each call, so that who instruments the client library afterwards is still called.
    def execute_command(self: Any, *words: Any, **options: Any) -> Any:
        if not pass_by(words):
            look(words)
        return kind.execute_command(self, *words, **options)

    members: dict[str, Any] = {
        "__slots__": (), "__module__": kind.__module__, "__doc__": kind.__doc__, "guard": guard,
    }
    if not guard.strict and hasattr(kind, "immediate_execute_command"):
        members |= _in_one_go(kind, guard)
    else:
        members["execute_command"] = execute_command
    for name in ("pipeline", "pubsub"):
        if hasattr(kind, name):
            members[name] = _watching(getattr(kind, name), guard)
    for name in _MODULES:
        if hasattr(kind, name):
            members[name] = _watching_pipelines(getattr(kind, name), guard)
    return type(kind.__name__, (kind,), members)


def _in_one_go(kind: Any, guard: Guard) -> dict[str, Any]:
    """For a pipeline that is only observed: all its commands are judged when they leave, which costs half as much."""
    pass_by, look = guard._judge.passes, guard.look

    def execute(self: Any, *args: Any, **options: Any) -> Any:
        for words, _ in self.command_stack:
            if not pass_by(words):
                look(words)
        return kind.execute(self, *args, **options)

    def immediate_execute_command(self: Any, *words: Any, **options: Any) -> Any:  # between WATCH and MULTI
        if not pass_by(words):
            look(words)
        return kind.immediate_execute_command(self, *words, **options)

    return {"execute": execute, "immediate_execute_command": immediate_execute_command}


def _watching(original: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    def make(self: Any, *args: Any, **options: Any) -> Any:
        return guard.watch(original(self, *args, **options))
    return make


def _watching_pipelines(original: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    """For ``client.json()`` and the like, whose pipelines are made from the connections and not by the client."""
    def make(self: Any, *args: Any, **options: Any) -> Any:
        module = original(self, *args, **options)
        if hasattr(module, "pipeline"):
            module.pipeline = _watching(type(module).pipeline, guard).__get__(module)
        return module
    return make
