"""Which declarations a command works with: those of an installation and its program, or of modules that are named."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.modules import import_users_module, users_program
from keystead.cli.place import is_demo, with_demo_program
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.keys import Keyspace, Layout, Registry
    from keystead.settings import Settings

OWN_ROOMS = "keystead"

RegistryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--registry",
        metavar="MODULE[:NAME]",
        envvar="KEYSTEAD_REGISTRY",
        help="Use the declarations of this module and no others; may be given several times. "
        f"The word {OWN_ROOMS} stands for Keystead's own rooms.",
    ),
]


def load_registry(sources: Iterable[str] | None, layout: "Layout", settings: "Settings | None" = None) -> "Registry":
    """Build the registry from what ``--registry`` named. When it named nothing, from Keystead's own rooms and, with
    ``settings``, from the program of that installation too."""
    from keystead.app import App
    from keystead.keys import Registry

    if not sources and settings is not None:
        return App(settings, users_program(_modules_of(settings))).registry(layout)
    keyspaces: list[Keyspace] = []
    for source in sources or (OWN_ROOMS,):
        keyspaces += [found for found in _load(source) if not any(found is known for known in keyspaces)]
    return Registry(keyspaces, layout=layout)


def _modules_of(settings: "Settings") -> str:
    """Those of the program whose keys lie beside the rooms'. That a demonstration has one needs no setting."""
    given = settings.program.modules
    return with_demo_program(given) if is_demo(settings) else given


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
