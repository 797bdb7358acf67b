"""``keystead keys move``: carry keys to another server, or to another layout of names."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keystead.cli.keys_erase import open_any
from keystead.cli.keys_looking import progress
from keystead.cli.output import Format, FormatOption, fact_grid, note, write, write_json
from keystead.cli.registries import RegistryOption, load_registry
from keystead.cli.session import run_settings, wait_for
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.custody import MoveReport
    from keystead.settings import Settings


def move(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Server that has the keys.")],
    target: Annotated[
        str | None,
        typer.Argument(metavar="TARGET", show_default="the same server, with --to-layout",
                       help="Server that gets them."),
    ] = None,
    to_layout: Annotated[
        str | None,
        typer.Option(metavar="LAYOUT", show_default="names stay as they are",
                     help="Give keys their plain or their tagged name, by the declarations of --registry."),
    ] = None,
    lanes: Annotated[int, typer.Option(min=1, metavar="LANES", help="Lanes of the tagged layout.")] = 1,
    really: Annotated[bool, typer.Option("--really", help="Do it. Without this, only say what would be done.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the way at the target.")] = False,
    delete_source: Annotated[
        bool, typer.Option("--delete-source", help="Delete each key at the source once it is at the target.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False,
                     help="Note progress in this file; the same command with it goes on where it stopped."),
    ] = None,
    match: Annotated[
        str | None, typer.Option(metavar="GLOB", show_default=False, help="Only keys that fit, such as 'user:*'.")
    ] = None,
    keys_per_second: Annotated[
        int, typer.Option(min=1, metavar="KEYS", help="Look at no more keys than this in a second.")
    ] = 5000,
    registry: RegistryOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Carry keys with their expiries from one server to another, or to another layout. A dry run unless --really.

    Never replaces a key at the target and never deletes one at the source unless told. Afterwards every key is looked
    for at the target. Writes that happen during the move are not followed: run it again with --overwrite when they have
    ended.
    """
    if target is None and to_layout is None:
        raise Invalid("say where to: keystead keys move SOURCE TARGET, or SOURCE --to-layout tagged")
    rename = _renaming(to_layout, lanes, registry)
    settings = run_settings(context)
    options: dict[str, Any] = {
        "really": really, "overwrite": overwrite, "delete_source": delete_source, "state": state,
        "match": match.encode() if match else None, "names": f"{to_layout} {lanes}" if to_layout else "",
        "keys_per_second": keys_per_second,
    }
    report = wait_for(_move(settings, source, target, rename, options))
    if format is Format.JSON:
        write_json(asdict(report) | {"clean": report.clean, "dry_run": not really})
    else:
        facts = [(name.replace("_", " "), f"{value:,}") for name, value in asdict(report).items()
                 if isinstance(value, int) and not isinstance(value, bool) and (value or name in ("seen", "moved"))]
        write(fact_grid(facts if really else [("would be moved" if name == "moved" else name, value)
                                              for name, value in facts]))
        for example in report.examples:
            note(example)
        if not really:
            note("nothing was changed; add --really to do it")
    if not report.clean:
        raise typer.Exit(1)


def _renaming(to_layout: str | None, lanes: int, sources: list[str] | None) -> Callable[[bytes], bytes | None]:
    from keystead.keys import Layout

    if to_layout is None:
        return lambda key: key
    if to_layout not in ("plain", "tagged"):
        raise Invalid(f"there is no layout {to_layout}; --to-layout takes plain or tagged")
    from keystead.custody.renaming import renaming

    plain, tagged = Layout.PLAIN, Layout.tagged(lanes)
    before, after = (plain, tagged) if to_layout == "tagged" else (tagged, plain)
    return renaming(load_registry(sources, before), after)


async def _move(settings: "Settings", source: str, target: str | None, rename: Callable[[bytes], bytes | None],
                options: dict[str, Any]) -> "MoveReport":
    from keystead.custody import Move

    first = await open_any(settings, source)
    try:
        second = first if target is None else await open_any(settings, target)
        try:
            with progress("Moving" if options["really"] else "Looking") as told:
                return await Move(first, second, rename, progress=told, **options).run()
        finally:
            if second is not first:
                await second.aclose()
    finally:
        await first.aclose()
