"""Two checks on a whole test: nothing undeclared left behind, and no call that a cluster would refuse."""

from collections.abc import Iterator, Sequence
from typing import Any

from keystead.engine import Valkey
from keystead.engine.key_places import KeyPlaces
from keystead.errors import Invalid
from keystead.keys import Registry
from keystead.keys.layout import Layout
from keystead.keys.slots import key_slot
from keystead.testing.clock import Server

_SHOWN = 20
# A cluster client splits these by slot and puts the answers together, so they may name keys of several.
_SPLIT = frozenset(("DEL", "EXISTS", "MGET", "TOUCH", "UNLINK"))


def undeclared_keys(registry: Registry, *servers: Server) -> list[bytes]:
    """Keys on the servers that the registry cannot explain, sorted."""
    keys = (key for server in servers for key in _all_keys(server))
    return sorted({key for key in keys if registry.resolve(key) is None})


def check_no_undeclared_keys(registry: Registry, *servers: Server) -> None:
    """Fail with the names of keys that the registry cannot explain."""
    found = undeclared_keys(registry, *servers)
    if found:
        shown = ", ".join(key.decode(errors="backslashreplace") for key in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise AssertionError(f"{len(found)} keys were left behind that nothing declares: {shown}{more}")


def _all_keys(server: Server) -> Iterator[bytes]:
    cursor = b"0"
    while True:
        cursor, keys = server.call("SCAN", cursor, "COUNT", 1000)
        yield from keys
        if cursor == b"0":
            return


class SlotWatch:
    """Looks at every call of the watched clients and refuses one whose keys lie in different slots.

    Commands, scripts, MULTI blocks and pipelines are seen; commands after WATCH are not. What was refused is
    remembered, so that ``check`` fails even if the program under test swallowed the error.
    """

    def __init__(self, server: Server) -> None:
        """``server`` is asked once where its commands carry their keys; any of the kit's servers will do."""
        self._places = KeyPlaces(server.call("COMMAND"))
        self.calls = 0
        self.offences: list[str] = []

    def watch(self, valkey: Valkey) -> None:
        """Look at this client's calls from now on. It must use the tagged layout: plain names lie anywhere."""
        if valkey.layout is Layout.PLAIN:
            raise Invalid("calls can only be checked under the tagged layout: connect(url, layout=Layout.TAGGED)")
        execute_command, call = valkey.execute_command, valkey.call
        call_block, call_block_alone = valkey.call_block, valkey.call_block_alone

        async def watched_execute_command(*args: Any, **options: Any) -> Any:
            self.look([args])
            return await execute_command(*args, **options)

        async def watched_call(args: tuple[Any, ...], *, repeat: bool = False) -> Any:
            self.look([args])
            return await call(args, repeat=repeat)

        async def watched_call_block(commands: Sequence[tuple[Any, ...]], *, repeat: bool = False) -> list[Any]:
            self.look(commands)
            return await call_block(commands, repeat=repeat)

        async def watched_call_block_alone(commands: Sequence[tuple[Any, ...]]) -> list[Any]:
            self.look(commands)
            return await call_block_alone(commands)

        for name, watched in (
            ("execute_command", watched_execute_command),
            ("call", watched_call),
            ("call_block", watched_call_block),
            ("call_block_alone", watched_call_block_alone),
        ):
            setattr(valkey, name, watched)

    def look(self, commands: Sequence[tuple[Any, ...]]) -> None:
        """Check commands that leave together; those between MULTI and EXEC must share one slot."""
        self.calls += 1
        block: list[bytes] | None = None
        for args in commands:
            name = args[0].upper() if isinstance(args[0], str) else bytes(args[0]).decode("latin-1").upper()
            if name == "MULTI":
                block = []
            elif name == "EXEC":
                self._require_one_slot("MULTI", block or [])
                block = None
            else:
                keys = self._keys(args)
                if name not in _SPLIT or block is not None:
                    self._require_one_slot(name, keys)
                if block is not None:
                    block += keys

    def check(self) -> None:
        """Fail if any call was refused so far."""
        if self.offences:
            raise AssertionError(f"{len(self.offences)} calls crossed slots: {'; '.join(self.offences[:_SHOWN])}")

    def _keys(self, args: tuple[Any, ...]) -> list[bytes]:
        try:
            return self._places.all(args)
        except Invalid:  # no command this server knows; the server will say so itself
            return []

    def _require_one_slot(self, name: str, keys: Sequence[bytes]) -> None:
        if len({key_slot(key) for key in keys}) > 1:
            shown = ", ".join(dict.fromkeys(key.decode(errors="backslashreplace") for key in keys))
            self.offences.append(f"{name} of {shown}")
            raise AssertionError(f"{name} names keys of different slots: {shown}")
