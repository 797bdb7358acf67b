"""Where the command begins and ends: every failure becomes one line and an exit code, never a traceback.

Exit codes: 0 done and clean, 1 done with findings, 2 could not be done, 130 interrupted, 141 the reader of the output
went away.
"""

import sys
from collections.abc import Sequence

import typer

from keystead.cli.commands import program
from keystead.cli.output import note, printable, silence
from keystead.errors import KeysteadError

COULD_NOT = 2
INTERRUPTED = 130
READER_GONE = 141

# Typer has no public name for the parent of its usage errors, and where it lives differs between versions.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave the process with its exit code."""
    code = run(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _reader_gone()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    try:
        code = program(args=list(arguments), prog_name="keystead", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except KeysteadError as error:
        return _refuse(str(error))
    except _UsageError as error:
        return _refuse(_usage(error))
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_gone()
    except BaseExceptionGroup as group:
        # Work in a task group fails as a group; one reason is what a user can act on.
        reasons = _reasons(group)
        if not all(isinstance(reason, KeysteadError) for reason in reasons):
            raise
        return _refuse(str(reasons[0]))
    except SystemExit as leaving:
        # Typer leaves by itself when the pipe breaks, with the code that means findings here.
        if isinstance(leaving.__context__, BrokenPipeError):
            return _reader_gone()
        raise
    except Exception as error:
        # Only the engine may import redis-py, so a server's refusal is known here by the name of its family.
        if any(kind.__module__.startswith("redis.") for kind in type(error).__mro__):
            return _refuse(f"the server refused: {error}")
        raise


def _reasons(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [reason for inner in error.exceptions for reason in _reasons(inner)]
    return [error]


def _refuse(message: str) -> int:
    note(printable(" ".join(message.split())))
    return COULD_NOT


def _usage(error: Exception) -> str:
    message: str = error.format_message() if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    if not message:
        return "no command given; keystead --help lists them"
    message = message[0].lower() + message[1:]
    return f"{message.rstrip('.')}; see {context.command_path} --help" if context is not None else message


def _reader_gone() -> int:
    silence()
    return READER_GONE
