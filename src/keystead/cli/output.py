"""What reaches the terminal: results on standard output, everything said about them on standard error.

Colours appear only on a terminal and never under ``NO_COLOR``. Off a terminal nothing is wrapped or cut, so that
``grep`` and ``awk`` see whole rows.
"""

import json
import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.errors import Invalid
from keystead.lengths import in_two_units

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

_UNWRAPPED_COLUMNS = 10_000


class Format(StrEnum):
    """How a result is written."""

    TABLE = "table"
    JSON = "json"


FormatOption = Annotated[
    Format, typer.Option("--format", help="Write a table for people or JSON for programs.", show_choices=True)
]


def console(*, stderr: bool = False) -> "Console":
    """A console on the standard stream as it is now."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        file=stream,
        width=None if stream.isatty() else _UNWRAPPED_COLUMNS,
        # Rich itself would keep bold and dim under NO_COLOR.
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        emoji=False,
    )


def emit(text: str) -> None:
    """Text on standard output, now; a full disk is a refusal, a reader that went away ends the command."""
    try:
        _write_whole(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        silence()
        raise Invalid(f"the result cannot be written: {error.strerror}") from error


def _write_whole(text: str) -> None:
    """Python's own text layer loses the rest of a piece that the pipe took only in part, under PYTHONUNBUFFERED."""
    screen = sys.stdout
    if not hasattr(screen, "buffer"):  # somebody put another object in its place
        screen.write(text)
    else:
        screen.flush()
        left = memoryview(text.encode(screen.encoding or "utf-8", screen.errors or "strict"))
        while left:
            left = left[screen.buffer.write(left) :]
    screen.flush()


def silence() -> None:
    """Let nothing more reach standard output: the interpreter flushes it on its way out, and that would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write(*parts: "RenderableType") -> None:
    """Results on standard output; off a terminal without the spaces that fill a table's rows."""
    screen = console()
    if screen.is_terminal:
        for part in parts:
            screen.print(part)
        return
    with screen.capture() as captured:
        for part in parts:
            screen.print(part)
    emit("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def table(*columns: str, title: str | None = None, right: tuple[str, ...] = ()) -> "Table":
    """An empty table in the house style; columns named in ``right`` hold numbers."""
    from rich import box
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def fact_grid(facts: Iterable[tuple[str, object]]) -> "Table":
    """Names and what they are, one under the other; what is empty is left out. Texts are shown as they are."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        if value not in (None, "", (), {}):
            grid.add_row(name, value if isinstance(value, Text) else Text(printable(str(value))))
    return grid


def printable(text: str) -> str:
    """The text without anything that would steer a terminal: what is not printable is shown as an escape.

    Names and values come from a server that anyone may have written to. Line breaks stay.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == "\n"
                   else "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", "surrogateescape"))
                   for letter in text)


def write_json(value: object) -> None:
    """One JSON document on standard output, readable by any parser whatever the terminal's encoding."""
    only_ascii = (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"
    emit(json.dumps(value, indent=2, ensure_ascii=only_ascii) + "\n")


def note(message: str) -> None:
    """One line about the result, on standard error, so that it never mixes with the result."""
    print(f"keystead: {message}", file=sys.stderr)


def human_bytes(count: float) -> str:
    """``1536`` as ``1.5 KiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def human_seconds(seconds: float) -> str:
    """``90061`` as ``1 d 1 h``: the two largest units that matter."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else in_two_units(round(seconds))
