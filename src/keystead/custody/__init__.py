"""Acting on a server with an inventory: a person's data out or away, keys moved, users given no more than they need."""

from keystead.custody.acl import Service, check_acl, services, write_acl
from keystead.custody.erasing import Act, Erasing, Erasure, erase
from keystead.custody.exporting import export
from keystead.custody.moving import Move, MoveReport
from keystead.custody.person import Person

__all__ = [
    "Act",
    "Erasing",
    "Erasure",
    "Move",
    "MoveReport",
    "Person",
    "Service",
    "check_acl",
    "erase",
    "export",
    "services",
    "write_acl",
]
