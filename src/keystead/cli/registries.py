"""Which declarations a command works with: Keystead's own rooms, or those of the user's program."""

import importlib
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.errors import Invalid, KeysteadError

if TYPE_CHECKING:
    from keystead.keys import Keyspace, Layout, Registry

OWN_ROOMS = "keystead"

RegistryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--registry",
        metavar="MODULE[:NAME]",
        envvar="KEYSTEAD_REGISTRY",
        help="Use the declarations of this module instead of Keystead's own rooms; may be given several times. "
        f"The word {OWN_ROOMS} stands for Keystead's own rooms.",
    ),
]


def load_registry(sources: Iterable[str] | None, layout: "Layout") -> "Registry":
    """Build the registry from what ``--registry`` named, or from Keystead's own rooms when it named nothing."""
    from keystead.keys import Registry

    keyspaces: list[Keyspace] = []
    for source in sources or (OWN_ROOMS,):
        keyspaces += [found for found in _load(source) if not any(found is known for known in keyspaces)]
    return Registry(keyspaces, layout=layout)


def _load(source: str) -> list["Keyspace"]:
    if source == OWN_ROOMS:
        from keystead.app import App
        from keystead.settings import Settings

        return list(App(Settings()).keyspaces())
    module_name, _, attribute = source.partition(":")
    module = _import(module_name)
    if not attribute:
        found = _keyspaces(vars(module).values())
        if not found:
            raise Invalid(f"module {module_name} holds no Keyspace; name a module that does, or one object as "
                          f"{module_name}:NAME")
        return found
    if not hasattr(module, attribute):
        raise Invalid(f"module {module_name} has no {attribute}; give --registry MODULE:NAME of a Keyspace, "
                      "a Registry or a list of Keyspaces")
    found = _keyspaces([getattr(module, attribute)])
    if not found:
        raise Invalid(f"{source} is not a Keyspace, a Registry or a list of Keyspaces")
    return found


def _import(module_name: str) -> object:
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise Invalid(f"{module_name or 'an empty name'} is not the name of a module; --registry takes one such as "
                      "shop.keys, or one of its objects as shop.keys:SHOP")
    # The console script does not have the working directory on its path, and that is where a user's program lies.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        if module_name == missing or module_name.startswith(missing + "."):
            raise Invalid(f"there is no module {module_name} to take declarations from; it is looked for in the "
                          "working directory and in the installed packages") from error
        raise Invalid(f"module {module_name} cannot be imported: it needs {missing}, which is not installed") from error
    except Exception as error:  # a user's module may raise anything while it is imported
        raise Invalid(f"module {module_name} cannot be imported: {_told(error)}") from error


def _told(error: Exception) -> str:
    """What went wrong in a user's module and where, in one line."""
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({error.filename}, line {error.lineno})"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    what = str(error) if isinstance(error, KeysteadError) else f"{type(error).__name__}: {error}"
    return f"{what} ({frame.filename}, line {frame.lineno})"


def _keyspaces(values: Iterable[object]) -> list["Keyspace"]:
    from keystead.keys import Keyspace, Registry

    found: list[Keyspace] = []
    for value in values:
        if isinstance(value, Keyspace):
            candidates = [value]
        elif isinstance(value, Registry):
            candidates = list(value.keyspaces)
        elif isinstance(value, list | tuple | set | frozenset):
            candidates = [item for item in value if isinstance(item, Keyspace)]
        else:
            continue
        found += [candidate for candidate in candidates if not any(candidate is known for known in found)]
    return found
