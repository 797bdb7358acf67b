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
    tag = declaration.tag
    if variable in tag.variables:
        raise DeclarationError(
            f"{declaration.pattern}: its tag depends on {variable}, so a script cannot reach it beside other keys"
        )
    name = declaration.template.fill({**arguments, variable: _HOLE})
    if layout is Layout.TAGGED:
        name = f"{{{tag.of(arguments)}}}{name}"
    head, _, tail = name.partition(_HOLE)
    return head, tail
