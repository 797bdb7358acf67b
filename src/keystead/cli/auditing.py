"""``keystead keys audit``: does a live server hold what is declared, and nothing else?"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.output import Format, FormatOption, console, human_bytes, note, printable, table, write, write_json
from keystead.cli.registries import RegistryOption, load_registry
from keystead.cli.session import connected, run_settings, wait_for

if TYPE_CHECKING:
    from rich.console import RenderableType

    from keystead.keys import AuditReport
    from keystead.settings import Settings

FINDINGS = 1
SHOWN_EXAMPLES = 3
SHOWN_STRAYS = 40


def audit(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", show_default="setting valkey.url",
                       help="Server to audit, such as valkey://localhost:6379."),
    ] = None,
    keys_per_second: Annotated[
        int, typer.Option(min=1, metavar="KEYS", help="Look at no more keys than this in a second.")
    ] = 20_000,
    match: Annotated[
        str | None, typer.Option(metavar="GLOB", show_default=False, help="Only keys that fit, such as 'user:*'.")
    ] = None,
    values: Annotated[
        bool, typer.Option("--values/--no-values", help="Read a small sample of each value to see if it decodes.")
    ] = True,
    registry: RegistryOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Compare a live server with the declarations.

    Reports keys that nothing declares, grouped by what they look like, wrong types, broken expiries, values that do
    not decode, indexes and records that disagree, and count and memory by pattern. Only reads, in small batches, and
    slows down when the server does. Leaves with 0 if all is well, 1 with findings, 2 if it could not run.
    """
    settings = run_settings(context, valkey_url=url)
    report = wait_for(_audit(settings, registry, keys_per_second, match, values))
    if format is Format.JSON:
        write_json(report.as_dict())
    else:
        write(*_shown(report))
        if not report.clean:
            note("`keystead keys explain KEY` tells more about one key")
    if not report.clean:
        raise typer.Exit(FINDINGS)


async def _audit(
    settings: "Settings", sources: list[str] | None, keys_per_second: int, match: str | None, values: bool
) -> "AuditReport":
    from keystead.operations import audit

    async with connected(settings) as valkey:
        registry = load_registry(sources, valkey.layout)
        with _progress() as on_progress:
            return await audit(valkey, registry, keys_per_second=keys_per_second, match=match, read_values=values,
                               on_progress=on_progress)


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


def _shown(report: "AuditReport") -> "Iterator[RenderableType]":
    if report.patterns:
        uses = table("pattern", "type", "keys", "memory", "findings", title="Declared",
                     right=("keys", "memory", "findings"))
        for use in report.patterns:
            uses.add_row(use.pattern, use.type, f"{use.keys:,}", human_bytes(use.memory_bytes),
                         f"[red]{use.findings:,}[/red]" if use.findings else "")
        yield uses
    if report.undeclared:
        strays = table("looks like", "types", "keys", "memory", "no ttl", "for example",
                       title="Not declared", right=("keys", "memory", "no ttl"))
        for stray in report.undeclared[:SHOWN_STRAYS]:
            strays.add_row(_plain(stray.pattern), ", ".join(stray.types), f"{stray.keys:,}",
                           human_bytes(stray.memory_bytes), f"{stray.without_ttl:,}" if stray.without_ttl else "",
                           _plain(stray.examples[0] if stray.examples else ""))
        yield strays
        if len(report.undeclared) > SHOWN_STRAYS:
            yield f" and {len(report.undeclared) - SHOWN_STRAYS:,} more kinds; --format json has them all"
    if report.findings:
        findings = table("finding", "pattern", "keys", "for example", "why", title="Not as declared", right=("keys",))
        for group in report.findings:
            head = f"[red]{group.kind}[/red]", group.pattern, f"{group.keys:,}"
            for example in group.examples[:SHOWN_EXAMPLES]:
                findings.add_row(*head, _plain(example["key"]), _plain(example["says"]))
                head = "", "", ""
        yield findings
    yield _verdict(report)


def _verdict(report: "AuditReport") -> str:
    total = f"{report.keys:,} {'key' if report.keys == 1 else 'keys'} ({human_bytes(report.memory_bytes)})"
    if report.clean:
        return f"[green]Clean[/green]: {total}, all as declared."
    wrong = sum(group.keys for group in report.findings)
    return f"[red]Drift[/red]: {total}, {report.undeclared_keys:,} not declared, {wrong:,} findings in declared ones."


def _plain(text: str) -> str:
    """Names come from the server; what looks like markup in them is not."""
    from rich.markup import escape

    return escape(printable(text))
