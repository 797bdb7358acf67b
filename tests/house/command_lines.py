"""Whether our command would take a command line, without running it."""

import re
import shlex
from pathlib import Path
from typing import Any

import typer

from keystead.cli.commands import program


def accepted(arguments: list[str]) -> str:
    """The words of the command that takes these arguments; fails as the command itself would."""
    command: Any = typer.main.get_command(program)
    context, words, rest = None, [], list(arguments)
    while hasattr(command, "resolve_command"):
        context = command.make_context(words[-1] if words else "keystead", rest, parent=context)
        # Where a group keeps what is for its commands differs between versions of Typer.
        rest = [*getattr(context, "_protected_args", ()), *context.args]
        if not rest:
            return " ".join(words)
        name, command, rest = command.resolve_command(context, rest)
        words.append(str(name))
    command.make_context(words[-1], rest, parent=context)
    return " ".join(words)


def command_lines(page: Path) -> list[list[str]]:
    """The arguments of every `keystead` that a reader of this page is told to type."""
    found = []
    for block in re.findall(r"```(?:console|sh|bash)\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
        for line in block.replace("\\\n", " ").splitlines():
            typed = re.match(r"[$#] (?:\w+=\S+ )*(?:sudo -u \w+ )?(?:\S*/)?keystead (.+)", line)
            if typed is None or "..." in typed[1] or "…" in typed[1]:
                continue
            words = shlex.split(typed[1], comments=True)
            ends = [words.index(word) for word in ("|", ">", ">>", "&&", ";", "&") if word in words]
            found.append(words[:min(ends, default=len(words))])
    return found
