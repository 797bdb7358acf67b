"""``keystead keys explain``: what one concrete key is."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.inventories import InventoryOption, chosen_inventory
from keystead.cli.keys_looking import counted
from keystead.cli.output import Format, FormatOption, fact_grid, human_bytes, human_seconds, write, write_json
from keystead.cli.registries import RegistryOption, load_registry
from keystead.cli.session import connected, run_settings, wait_for
from keystead.errors import Corrupt, Invalid, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rich.console import RenderableType

    from keystead.engine import Valkey
    from keystead.inventory import Entry, Inventory
    from keystead.operations import Explanation
    from keystead.settings import Settings


def explain(
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help=r"The key, as it is on the server; bytes as \xff.")],
    offline: Annotated[
        bool, typer.Option("--offline", help="Tell what is written down of the key, and ask no server.")
    ] = False,
    inventory: InventoryOption = None,
    registry: RegistryOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Say what a key is: its declaration, value, TTL, memory, writers and readers.

    A key that is not there is explained from its declaration alone. Leaves with 1 if the key is not declared or
    breaks its declaration, and with 2 if its value does not decode. With an inventory, what is written there takes
    the place of the declaration. A key that nobody wrote down is compared with its neighbours on the server.
    """
    written = chosen_inventory(inventory, registry)
    looks_like: Entry | None = None
    if offline:
        explanation = _from_declarations(key, registry) if written is None else _from_inventory(key, written)
    else:
        settings = run_settings(context)
        explanation = wait_for(_explain(settings, key, registry, written))
        if explanation.exists and explanation.pattern is None:
            looks_like = wait_for(_neighbours(settings, explanation.key))
    if not explanation.exists and _is_pattern(key):
        raise _pattern_given(key)
    if format is Format.JSON:
        write_json(explanation.as_dict() | ({} if looks_like is None else {"looks_like": _as_dict(looks_like)}))
    else:
        write(*_shown(explanation, offline, looks_like))
    if explanation.problem is not None:
        raise Corrupt(
            f"the value of {explanation.key} does not decode as {explanation.pattern}: {explanation.problem}; "
            "mend whoever wrote it, or delete the key",
            key=explanation.key, declaration=explanation.pattern or "",
        )
    if explanation.findings or explanation.pattern is None:
        raise typer.Exit(1)


async def _explain(
    settings: "Settings", key: str, sources: list[str] | None, written: "Inventory | None"
) -> "Explanation":
    from keystead.keys import read_key

    try:
        async with connected(settings, only_looks=True) as valkey:
            look = _looking(valkey, settings, sources, written)
            explanation = await look(read_key(key))
            if not explanation.exists and "\\" in key:
                # Someone may have typed a backslash that is part of the key.
                literal = await look(key.encode("utf-8", "surrogateescape"))
                return literal if literal.exists else explanation
            return explanation
    except Unavailable:
        # Without a server the more likely mistake is the one that can be seen without it.
        if _is_pattern(key):
            raise _pattern_given(key) from None
        raise


async def _neighbours(settings: "Settings", key: str) -> "Entry | None":
    from keystead.cli.keys_looking import looking
    from keystead.keys import read_key
    from keystead.survey import neighbours

    async with looking(settings, primary=False) as look:
        return await neighbours(look, read_key(key))


def _as_dict(entry: "Entry") -> dict[str, object]:
    seen = entry.observed
    return {"pattern": entry.pattern, "type": entry.type.value if entry.type else None,
            "ttl": _expiry(entry), "keys": seen.keys if seen else 0, "shape": seen.shape if seen else "",
            "examples": list(entry.examples)}


def _expiry(entry: "Entry") -> str:
    from keystead.inventory import spell_expiry

    return "" if entry.ttl is None else spell_expiry(entry.ttl.value)


def _neighbour_facts(entry: "Entry | None") -> list[tuple[str, object]]:
    if entry is None or entry.observed is None:
        return []
    seen = entry.observed
    kind = entry.type.value if entry.type else "of any type"
    like = f"{entry.pattern} (learned: {counted(seen.keys, 'such key')} seen, {kind}"
    return [("looks like", f"{like}, expiry {_expiry(entry) or 'unknown'})"), ("neighbours", ", ".join(entry.examples)),
            ("their values", seen.shape)]


def _looking(
    valkey: "Valkey", settings: "Settings", sources: list[str] | None, written: "Inventory | None"
) -> "Callable[[bytes], Awaitable[Explanation]]":
    from functools import partial

    from keystead.operations import explain, explain_by_inventory

    if written is None:
        return partial(explain, valkey, load_registry(sources, valkey.layout, settings))
    from keystead.inventory import Matcher

    return partial(explain_by_inventory, valkey, Matcher(written))


def _from_inventory(key: str, written: "Inventory") -> "Explanation":
    from keystead.inventory import Matcher
    from keystead.keys import read_key
    from keystead.operations import explain_by_inventory_alone

    return explain_by_inventory_alone(Matcher(written), read_key(key))


def _from_declarations(key: str, sources: list[str] | None) -> "Explanation":
    from keystead.keys import Layout, read_key
    from keystead.operations import explain_without_server

    return explain_without_server(load_registry(sources, Layout.PLAIN), read_key(key))


def _is_pattern(key: str) -> bool:
    from keystead.operations import looks_like_pattern

    return looks_like_pattern(key)


def _pattern_given(key: str) -> Invalid:
    return Invalid(f"{key} looks like a pattern, not a key; fill in its variables, or see the declaration with: "
                   f"keystead keys show '{key}'")


def _shown(
    explanation: "Explanation", offline: bool, looks_like: "Entry | None"
) -> "tuple[RenderableType, RenderableType]":
    from rich.text import Text

    row = explanation.declaration or {}
    there: tuple[str, object] = ("type", explanation.type)
    if not explanation.exists and explanation.kind != "channel" and not offline:
        there = ("on the server", Text("no such key", style="yellow"))
    facts: list[tuple[str, object]] = [
        ("pattern", explanation.pattern or Text("not declared", style="yellow")),
        *_neighbour_facts(looks_like),
        ("purpose", explanation.purpose),
        ("room", explanation.room),
        ("arguments", ", ".join(f"{name} = {value}" for name, value in explanation.arguments.items())),
        ("declared as", ", ".join(dict.fromkeys(str(row[name]) for name in ("type", "payload") if row.get(name)))),
        there,
        ("expires", _ttl(explanation)),
        ("memory", None if explanation.memory_bytes is None else human_bytes(explanation.memory_bytes)),
        ("length", _length(explanation)),
        ("personal data", _joined(row.get("personal"))),
        ("writers", ", ".join(explanation.writers)),
        ("readers", ", ".join(explanation.readers)),
        ("scripts", ", ".join(explanation.scripts)),
        ("stands in", _joined(row.get("sources"))),
        ("slot", explanation.slot),
        ("value", explanation.note or _value(explanation)),
    ]
    facts += [("finding", Text(finding, style="red")) for finding in explanation.findings]
    return Text(explanation.key, style="bold cyan"), fact_grid(facts)


def _joined(names: object) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list | tuple) else ""


def _ttl(explanation: "Explanation") -> str | None:
    declared = (explanation.declaration or {}).get("ttl")
    if not explanation.exists:
        return f"declared: {declared}" if declared else None
    now = "none" if explanation.ttl_seconds is None else f"{human_seconds(explanation.ttl_seconds)} left"
    return f"{now} (declared: {declared})" if explanation.kind == "key" and declared else now


def _length(explanation: "Explanation") -> str | None:
    if explanation.length is None:
        return None
    unit = "bytes" if explanation.type == "string" else "elements"
    return f"{explanation.length} {unit}" + (", of which the first are shown" if explanation.truncated else "")


def _value(explanation: "Explanation") -> str | None:
    if not explanation.exists:
        return None
    value = explanation.value
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
