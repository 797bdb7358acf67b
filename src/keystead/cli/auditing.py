"""``keystead keys audit``: do the inventory, a live server and the code say the same?"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.auditing_shown import shown
from keystead.cli.inventories import InventoryOption, chosen_inventory
from keystead.cli.output import Format, FormatOption, console, note, write, write_json
from keystead.cli.place import given_url
from keystead.cli.registries import RegistryOption, load_registry
from keystead.cli.session import connected, run_settings, wait_for
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.inventory import Inventory
    from keystead.settings import Settings
    from keystead.survey import Audit, Finding, Live, Severity

FINDINGS = 1
UNFINISHED = 2


class FailOn(StrEnum):
    """Which findings make the command fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    NEVER = "never"


def audit(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", show_default="setting valkey.url; none with --code",
                       help="Server to audit, such as redis://localhost:6379."),
    ] = None,
    inventory: InventoryOption = None,
    code: Annotated[
        list[Path] | None,
        typer.Option("--code", metavar="PATH", show_default=False,
                     help="Source code that uses the keys: files or folders; may be given several times."),
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Leave with 1 if there is a finding as bad as this.")
    ] = FailOn.WARNING,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Findings in this file are known, and do not count."),
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default=False, help="Write all findings of now into this file.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Also write a report with pictures, one HTML file."),
    ] = None,
    sarif: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default=False, help="Also write SARIF, for code scanning.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default=False, help="Also write JUnit XML, for build servers.")
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", envvar="GITHUB_STEP_SUMMARY", show_default="$GITHUB_STEP_SUMMARY",
                     help="Also append a summary in Markdown."),
    ] = None,
    keys_per_second: Annotated[
        int | None,
        typer.Option(min=1, metavar="KEYS", show_default="100000; 20000 where values are read",
                     help="Look at no more keys than this in a second."),
    ] = None,
    match: Annotated[
        str | None, typer.Option(metavar="GLOB", show_default=False, help="Only keys that fit, such as 'user:*'.")
    ] = None,
    values: Annotated[
        bool, typer.Option("--values/--no-values",
                           help="With declarations: read a small sample of each value to see if it decodes.")
    ] = True,
    primary: Annotated[
        bool, typer.Option("--primary", help="With an inventory: look at the primary although there is a replica.")
    ] = False,
    notes: Annotated[bool, typer.Option("--notes", help="Show notes too, not only how many there are.")] = False,
    registry: RegistryOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Compare an inventory with a live server and with the code that uses it.

    The inventory is a file (`--inventory redis-keys.md`: the hand-kept document itself, or TOML or YAML) or the
    declarations of a program. Finds keys that nobody described, wrong types, missing and late expiries, code that
    does otherwise, unmarked personal data, and what is nowhere to be found. Only reads, in small batches, from a
    replica if there is one, and slows down when the server does. Leaves with 0 if all is well, 1 with findings, 2 if
    it could not run or the server went away before everything was seen.
    """
    from keystead.clock import SystemClock

    clock = SystemClock()
    began, known = clock.now(), _read_baseline(baseline)
    # Code alone can be compared without any server.
    needs_server = url is not None or given_url(context) is not None or not code
    settings = run_settings(context, valkey_url=url) if needs_server else None
    described = chosen_inventory(inventory, registry)
    if described is not None:
        outcome = wait_for(_audit_inventory(settings, described, code, keys_per_second, match, primary))
    else:
        outcome = wait_for(_audit_declarations(settings, registry, code, keys_per_second, match, values))
    from keystead.survey import Severity
    from keystead.survey import write_baseline as keep

    if write_baseline is not None:
        with _writing():
            keep(write_baseline, outcome.findings)
    outcome = _without_known(replace(outcome, at=clock.now(), seconds=clock.now() - began), known)
    bound = _severity(fail_on)
    _write_reports(outcome, html=html, sarif=sarif, junit=junit, summary=summary, bound=bound)
    if format is Format.JSON:
        write_json(outcome.as_dict())
    else:
        write(*shown(outcome, notes=notes))
        if described is None and url is not None and settings is not None and not registry:
            program = f" and those of {settings.program.modules}" if settings.program.modules else ""
            note(f"compared with Keystead's own declarations{program}; --inventory FILE names yours, and "
                 "`keystead keys learn URL --out keystead.toml` drafts one")
        if outcome.server and outcome.failing(Severity.WARNING):
            note("`keystead keys explain KEY` tells more about one key")
    if code_of_exit := _exit_code(outcome, bound):
        raise typer.Exit(code_of_exit)


def _exit_code(outcome: "Audit", bound: "Severity | None") -> int:
    """What was not seen whole may not pass for clean."""
    if outcome.failing(bound):
        return FINDINGS
    return UNFINISHED if outcome.unfinished and bound is not None else 0


async def _audit_inventory(
    settings: "Settings | None", inventory: "Inventory", code: list[Path] | None, keys_per_second: int | None,
    match: str | None, primary: bool,
) -> "Audit":
    from keystead.engine import lookout
    from keystead.survey import KEYS_PER_SECOND, Stride, look_at

    used = _read_code(code)
    if settings is None:
        return _judged(inventory, None, used, code, "", ())
    async with lookout(settings.valkey.url, settings=settings.valkey, primary=primary) as look:
        with _progress() as progress:
            stride = Stride(keys_per_second or KEYS_PER_SECOND)
            live, reasons = await look_at(look, inventory, match=match, stride=stride, progress=progress)
        return _judged(inventory, live, used, code, look.name, reasons)


async def _audit_declarations(
    settings: "Settings | None", sources: list[str] | None, code: list[Path] | None, keys_per_second: int | None,
    match: str | None, values: bool,
) -> "Audit":
    from keystead.inventory import from_registry
    from keystead.keys import Layout
    from keystead.survey import VALUES_PER_SECOND, look_at_declared

    used = _read_code(code)
    if settings is None:
        return _judged(from_registry(load_registry(sources, Layout.PLAIN)), None, used, code, "", ())
    async with connected(settings, only_looks=True) as valkey:
        registry = load_registry(sources, valkey.layout, settings)
        inventory = from_registry(registry)
        with _progress() as progress:
            live, reasons, found = await look_at_declared(
                valkey, registry, inventory, keys_per_second=keys_per_second or VALUES_PER_SECOND, match=match,
                read_values=values, progress=progress,
            )
        server = valkey.address.display if valkey.address is not None else ""
        return _judged(inventory, live, used, code, server, reasons, found)


def _judged(
    inventory: "Inventory", live: "Live | None", used: "Inventory | None", code: list[Path] | None, server: str,
    reasons: tuple[str, ...], more: "tuple[Finding, ...]" = (),
) -> "Audit":
    from keystead.survey import Audit, compare, in_order

    findings = in_order([*compare(inventory, live, used), *more])
    reasons = (inventory.partial, used.partial if used is not None else "", *reasons)
    return Audit(inventory, findings, server=server, code=", ".join(map(str, code or ())),
                 partial=tuple(filter(None, reasons)), tally=live.tally if live is not None else None,
                 unfinished=live is not None and live.unfinished, code_notes=used.notes if used is not None else ())


def _read_code(paths: list[Path] | None) -> "Inventory | None":
    if not paths:
        return None
    from keystead.inventory.code import read_code

    return read_code(paths)


def _read_baseline(path: Path | None) -> frozenset[str]:
    if path is None:
        return frozenset()
    from keystead.survey import read_baseline

    return read_baseline(path)


def _without_known(outcome: "Audit", known: frozenset[str]) -> "Audit":
    from keystead.survey import split

    new, old = split(outcome.findings, known)
    return replace(outcome, findings=new, known=old)


def _severity(fail_on: FailOn) -> "Severity | None":
    from keystead.survey import Severity

    return None if fail_on is FailOn.NEVER else Severity(fail_on.value)


def _write_reports(
    outcome: "Audit", *, html: Path | None, sarif: Path | None, junit: Path | None, summary: Path | None,
    bound: "Severity | None",
) -> None:
    from importlib.metadata import version

    from keystead.survey import to_html, to_junit, to_markdown, to_sarif

    with _writing():
        if html is not None:
            html.write_text(to_html(outcome), encoding="utf-8")
        if sarif is not None:
            sarif.write_text(to_sarif(outcome, version("keystead")), encoding="utf-8")
        if junit is not None:
            junit.write_text(to_junit(outcome, bound), encoding="utf-8")
        if summary is not None:
            with summary.open("a", encoding="utf-8") as file:
                file.write(to_markdown(outcome))


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Invalid(f"a report cannot be written: {error.filename}: {os.strerror(error.errno or 0)}") from error


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error while someone watches; nothing otherwise."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("Auditing"), BarColumn(), MofNCompleteColumn(), TextColumn("keys"), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bars:
        bar = bars.add_task("", total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)
