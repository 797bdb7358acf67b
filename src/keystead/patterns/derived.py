"""Keys that a script finds by reading: the name of a member is put between a head and a tail that the registry gave.

A worker's purgatory, a member's record: the script reads the member off a set or an index and cannot be given its key
beforehand. What stands before and after the member, tag included, is rendered here and handed over as two arguments.
"""

from collections.abc import Mapping

from keystead.errors import DeclarationError
from keystead.keys import Declaration, Layout

_HOLE = "\0"  # no argument of a key may hold it


def around(declaration: Declaration, variable: str, arguments: Mapping[str, str], layout: Layout) -> tuple[str, str]:
    """What stands before and after ``variable`` in the physical name; the other variables are ``arguments``."""
    head, tail = pieces(declaration, (variable,), arguments, layout)
    return head, tail


def pieces(
    declaration: Declaration, variables: tuple[str, ...], arguments: Mapping[str, str], layout: Layout
) -> list[str]:
    """What stands before, between and after ``variables``, which are in the order of the pattern."""
    tag = declaration.tag
    for variable in variables:
        if variable in tag.variables:
            raise DeclarationError(
                f"{declaration.pattern}: its tag depends on {variable}, so a script cannot reach it beside other keys"
            )
    name = declaration.template.fill({**arguments, **dict.fromkeys(variables, _HOLE)})
    if layout is not Layout.PLAIN:
        name = f"{{{tag.of(arguments, layout.lane)}}}{name}"
    return name.split(_HOLE)
