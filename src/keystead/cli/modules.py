"""Importing a module of the user's program, with every failure told in one line."""

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType

from keystead.errors import Invalid, KeysteadError


def import_users_module(name: str, *, takes: str, wanted: str) -> ModuleType:
    """The module of this name; the working directory is looked at first.

    ``takes`` says what the option or argument takes, ``wanted`` what the module is wanted for.
    """
    if not all(part.isidentifier() for part in name.split(".")):
        raise Invalid(f"{name or 'an empty name'} is not the name of a module; {takes}")
    # The console script does not have the working directory on its path, and that is where a user's program lies.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name == missing or name.startswith(missing + "."):
            hint = f"; leave out .py: {name.removesuffix('.py')}" if name.endswith(".py") else ""
            raise Invalid(f"there is no module {name} to take {wanted} from; it is looked for in the "
                          f"working directory and in the installed packages{hint}") from error
        raise Invalid(f"module {name} cannot be imported: it needs {missing}, which is not installed") from error
    except Exception as error:  # a user's module may raise anything while it is imported
        raise Invalid(f"module {name} cannot be imported: {_told(error)}") from error


def users_program(modules: str) -> list[ModuleType]:
    """The modules that the setting ``program.modules`` names."""
    return [
        import_users_module(name.strip(), takes="program.modules takes names such as shop.stats", wanted="declarations")
        for name in modules.split(",") if name.strip()
    ]


def _told(error: Exception) -> str:
    """What went wrong in a user's module and where, in one line."""
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({error.filename}, line {error.lineno})"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    what = str(error) if isinstance(error, KeysteadError) else f"{type(error).__name__}: {error}"
    return f"{what} ({frame.filename}, line {frame.lineno})"
