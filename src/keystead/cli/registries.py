"""Which declarations a command works with: Keystead's own rooms, or those of the user's program."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.modules import import_users_module
from keystead.errors import Invalid

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
    module = import_users_module(
        module_name, wanted="declarations",
        takes="--registry takes one such as shop.keys, or one of its objects as shop.keys:SHOP",
    )
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
