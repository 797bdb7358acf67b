"""Declarations as an inventory, so that every command works with either."""

from keystead.inventory.models import Entry, Expiry, Fact, Inventory, Rule
from keystead.keys import (
    KINDS,
    AtMost,
    Declaration,
    Exactly,
    Kind,
    NoneUntilEnded,
    OneOf,
    Registry,
    Sliding,
    Ttl,
    Until,
    personal_marks,
)


def from_registry(registry: Registry, name: str = "declarations") -> Inventory:
    """Everything that the declarations of a program say, in their order; their rooms are the sections.

    The names are those of the plain layout. ``Matcher`` finds tagged ones too.
    """
    return Inventory(name, tuple(_entry(declaration) for declaration in registry))


def _entry(declaration: Declaration) -> Entry:
    marks = personal_marks(declaration)
    is_key = declaration.kind == "key"
    extra = (
        ("tag", declaration.tag.describe() if is_key else ""),
        ("scripts", ", ".join(declaration.scripts)),
        ("every member has", declaration.pairs_with.record.pattern if declaration.pairs_with else ""),
    )
    return Entry(
        pattern=declaration.pattern,
        kind=declaration.kind,
        type=Fact(declaration.type) if is_key else None,
        ttl=Fact(expiry_of(declaration.ttl)) if is_key else None,
        purpose=Fact(declaration.purpose),
        payload=Fact(declaration.payload) if declaration.payload else None,
        writers=tuple(Fact(name) for name in declaration.writers),
        readers=tuple(Fact(name) for name in declaration.readers),
        personal=Fact(bool(marks), words=", ".join(marks)),
        variables=tuple((variable.name, _kind(variable.kind)) for variable in declaration.template.variables),
        section=(declaration.room,),
        extra=tuple(pair for pair in extra if pair[1]),
    )


def _kind(kind: Kind) -> str:
    """A kind in words that an inventory knows; one of the program's own is a word or a text there."""
    if isinstance(kind, OneOf):
        return "|".join(kind.values)
    return kind.name if kind.name in KINDS else "text" if kind.spans_colons else "word"


def expiry_of(ttl: Ttl) -> Expiry:
    """A declared rule in the words of an inventory."""
    match ttl:
        case Exactly(seconds):
            return Expiry(Rule.EXACTLY, seconds)
        case AtMost(seconds):
            return Expiry(Rule.AT_MOST, seconds)
        case Sliding(seconds):
            return Expiry(Rule.SLIDING, seconds, "" if ttl.reads else "after the last write")
        case Until(field, at_most):
            return Expiry(Rule.UNTIL, at_most, f"{field} of the payload" if field else "an instant given by the writer")
        case NoneUntilEnded(seconds):
            return Expiry(Rule.NONE, seconds, "while it is in use")
    return Expiry(Rule.NONE)
