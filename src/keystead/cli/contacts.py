"""``keystead contacts``: addresses of people, from a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.output import Format, FormatOption, console, fact_grid, note, printable, write, write_json
from keystead.cli.session import run_settings, wait_for
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.members import BrokenLine, Imported
    from keystead.settings import Settings

FINDINGS = 1
MOST_TOLD = 20


def import_file(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV with a header: user_sub, then email, phone, "
                                                              "verified, receives_notifications as there are.")],
    region: Annotated[
        str | None,
        typer.Option(metavar="CODE", show_default=False,
                     help="Country that numbers without a leading + are dialled in, such as DE."),
    ] = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Give people the addresses of a CSV file, of any length. Lines that are wrong are told and left out.

    Ends with 1 if there were any. The same file may be imported again: what was imported before stays as it is.
    """
    imported = wait_for(_import(run_settings(context), file, region))
    if format is Format.JSON:
        write_json({"lines": imported.lines, "created": imported.created, "verified": imported.verified,
                    "known": imported.known, "broken": imported.broken,
                    "first_broken": [{"line": line.number, "reason": line.problem}
                                     for line in imported.first_broken]})
    else:
        write(fact_grid([(name, f"{getattr(imported, name):,}")
                         for name in ("lines", "created", "verified", "known", "broken")]))
    if imported.broken:
        raise typer.Exit(FINDINGS)


async def _import(settings: "Settings", file: Path, region: str | None) -> "Imported":
    from keystead.app import App
    from keystead.members import ContactsImport

    told = 0

    def broken(line: "BrokenLine") -> None:
        nonlocal told
        told += 1
        if told <= MOST_TOLD:
            note(f"line {line.number}: {printable(line.problem)}")
        elif told == MOST_TOLD + 1:
            note("more lines are wrong; they are counted")

    try:
        opened = file.open("rb")
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}") from None
    with opened, console(stderr=True).status("Importing…") as status:
        async with App(settings).running() as running:
            reading = ContactsImport(running.database, running.outbox, running.clock, running.switchboard.veil)
            return await reading.run(
                opened, region=region, on_broken=broken,
                on_batch=lambda imported: status.update(f"{imported.lines:,} lines"),
            )
