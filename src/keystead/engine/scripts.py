"""Lua scripts: loaded from the file beside the code they serve, called by hash, checked against their header."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from importlib.resources import files
from typing import Any, Protocol, TypeVar

from keystead.engine.script_header import Header, parse_header
from keystead.errors import DeclarationError
from keystead.keys.executor import Argument, Executor, Reply
from keystead.keys.layout import Layout
from keystead.keys.references import Reference
from keystead.keys.slots import key_slot

T = TypeVar("T")

_ALLOWED: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "number": (int, float),
    "text": (str, bytes),
    "bytes": (bytes, str),
}


class ScriptRunner(Executor, Protocol):
    """A client or a pipeline: runs commands, and scripts."""

    def run_script(
        self, script: "Script", rest: tuple[Argument, ...], decode: Callable[[Reply], T]
    ) -> Awaitable[T]: ...


def _as_it_is(reply: Reply) -> Reply:
    return reply


class Script:
    """One script file. Nothing is read before the first call.

    ``await SCRIPT(valkey, keys=[...], args=[...])`` runs it by hash in one round trip; a server that forgot it gets
    the text again. In a pipeline it is queued, in a transaction its text travels along so that it cannot be missing.
    """

    def __init__(self, package: str, path: str) -> None:
        self.package = package
        self.path = path

    def __repr__(self) -> str:
        return f"Script({self.package}/{self.path})"

    @cached_property
    def text(self) -> str:
        return _joined(self.package, self.path)

    @cached_property
    def sha(self) -> str:
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    @cached_property
    def header(self) -> Header:
        try:
            return parse_header(self.text)
        except ValueError as error:
            raise DeclarationError(f"{self.package}/{self.path}: {error}") from error

    def __call__(
        self,
        on: ScriptRunner,
        keys: Sequence[Reference | bytes | str] = (),
        args: Sequence[Argument] = (),
        decode: Callable[[Reply], Any] = _as_it_is,
    ) -> Awaitable[Any]:
        """Run the script on a connection, or queue it on a pipeline. ``decode`` reads the raw reply."""
        names = self._checked_keys(keys, on.layout)
        self._check_arguments(args)
        return on.run_script(self, (len(names), *names, *args), decode)

    @cached_property
    def _wanted_keys(self) -> tuple[str, ...]:
        return tuple(slot.kind for slot in self.header.keys)

    @cached_property
    def _wanted_arguments(self) -> tuple[tuple[tuple[type, ...], float | None, float | None], ...]:
        """What each argument may be, laid out so that a call checks it in one step each."""
        return tuple((_ALLOWED[slot.kind], slot.least, slot.most) for slot in self.header.arguments)

    def _checked_keys(self, keys: Sequence[Reference | bytes | str], layout: Layout) -> list[bytes | str]:
        wanted = self._wanted_keys
        if len(keys) != len(wanted):
            self._check_count("keys", len(keys), len(wanted), self.header.more_keys)
            wanted = (*wanted, *wanted[-1:] * (len(keys) - len(wanted)))
        names: list[bytes | str] = []
        for kind, key in zip(wanted, keys):  # noqa: B905 - lengths were checked, and it is hot
            if not isinstance(key, Reference):
                names.append(key)
                continue
            found = key.declaration.server_type
            if kind != found and kind != "any":
                raise DeclarationError(f"{self}: {self._key_name(len(names))} must be a {kind}, {key!r} is a {found}")
            names.append(key.name(layout))
        if len(names) > 1 and layout is not Layout.PLAIN:
            self._check_one_slot(names)
        return names

    def _key_name(self, place: int) -> str:
        return self.header.keys[min(place, len(self.header.keys) - 1)].name

    def _check_one_slot(self, names: Sequence[bytes | str]) -> None:
        raw = [name.encode() if isinstance(name, str) else name for name in names]
        first = raw[0].partition(b"}")[0]
        if len(first) > 1 and first.startswith(b"{") and all(name.partition(b"}")[0] == first for name in raw):
            return
        if len({key_slot(name) for name in raw}) > 1:
            shown = b", ".join(raw).decode(errors="backslashreplace")
            raise DeclarationError(f"{self}: its keys lie in different slots: {shown}")

    def _check_arguments(self, args: Sequence[Argument]) -> None:
        wanted = self._wanted_arguments
        if len(args) != len(wanted):
            self._check_count("arguments", len(args), len(wanted), self.header.more_arguments)
            wanted = (*wanted, *wanted[-1:] * (len(args) - len(wanted)))
        for value, (allowed, least, most) in zip(args, wanted):  # noqa: B905 - lengths were checked, and it is hot
            if value.__class__ not in allowed or (most is not None and not least <= value <= most):  # type: ignore[operator]
                self._refuse_argument(args)

    def _refuse_argument(self, args: Sequence[Argument]) -> None:
        """Say which argument is wrong and what it must be."""
        for place, value in enumerate(args):
            slot = self.header.arguments[min(place, len(self.header.arguments) - 1)]
            bounded = slot.least is not None and slot.most is not None
            if type(value) in _ALLOWED[slot.kind] and not (bounded and not slot.least <= value <= slot.most):  # type: ignore[operator]
                continue
            raise DeclarationError(
                f"{self}: argument {slot.name} must be {slot.kind}"
                + (f" from {slot.least:.15g} to {slot.most:.15g}" if bounded else "")
                + f", got {_shown(value)}"
            )

    def _check_count(self, what: str, given: int, wanted: int, open_end: bool) -> None:
        if given == wanted or (open_end and given >= wanted - 1):
            return
        least = f"at least {wanted - 1}" if open_end else str(wanted)
        raise DeclarationError(f"{self} takes {least} {what}, got {given}")


def _shown(value: object) -> str:
    """Numbers as they are; text only by its type, since it may be personal."""
    return repr(value) if isinstance(value, int | float) else type(value).__name__


def _joined(package: str, path: str) -> str:
    """The text of a script, with each include line replaced by that fragment, and by what the fragment includes.

    ``-- include _name`` takes a fragment from beside the file, ``-- include keystead.patterns:scripts/guarded/_writes``
    one of another package.
    """
    folder = path.rpartition("/")[0]
    lines = []
    for line in files(package).joinpath(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("-- include "):
            other, _, place = line.removeprefix("-- include ").strip().rpartition(":")
            fragment = _joined(other or package, f"{place}.lua" if other else f"{folder}/{place}.lua")
            lines.append(fragment.rstrip())
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
