"""A keyspace and what every declaration in it says.

Declaring attaches to the keyspace object and does nothing else; ``Registry`` collects and checks.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Required, TypedDict, Union

import msgspec

from keystead.errors import DeclarationError
from keystead.keys.codecs import Codec
from keystead.keys.executor import Command, Reply
from keystead.keys.layout import Layout
from keystead.keys.tags import LanedTag, Tag, tag_of
from keystead.keys.template import Template
from keystead.keys.ttl import NO_TTL, Ttl, Until
from keystead.keys.variables import Kind, Value

if TYPE_CHECKING:
    from keystead.keys.references import Reference

# What an audit reads of a value at most, to see whether it decodes.
SAMPLE_BYTES = 64 * 1024


class Keyspace:
    """The keys of one room. ``tag`` is what its keys share on a cluster, unless a declaration says otherwise.

    ``laned``: on a cluster the keys exist once for each lane, under the tags ``tag:0``, ``tag:1``…; which lane is meant
    is said by the connection (``valkey.lane(n)``). On one server all lanes are one. A declaration with a tag of its own
    has no lanes.
    """

    def __init__(self, name: str, *, tag: str | Tag | None = None, laned: bool = False) -> None:
        if not name:
            raise DeclarationError("a keyspace needs a name")
        self.name = name
        self.tag: str | Tag = name if tag is None else tag
        self.laned = laned
        self.declarations: list[Declaration] = []

    def __iter__(self) -> "Iterator[Declaration]":
        return iter(self.declarations)

    def __repr__(self) -> str:
        return f"<keyspace {self.name}, {len(self.declarations)} declarations>"


@dataclass(frozen=True, slots=True)
class Personal:
    """Which variables of the pattern, or fields of the payload, name the person whose data this is."""

    variable: str | tuple[str, ...] = ()
    field: str | tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.variable,) if isinstance(self.variable, str) else self.variable

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.field,) if isinstance(self.field, str) else self.field


class OnCorrupt(Enum):
    """What becomes of a stored value that does not decode, where no dead-letter list is named."""

    ERROR = "error"
    MISS = "counts as absent"


DeadLetter = Union[OnCorrupt, "Declaration"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Each member of this index must have a record: ``variable`` of the record's pattern is the member.

    Other variables of the record's pattern are taken from the index's own arguments.
    """

    record: "Declaration"
    variable: str = ""

    @property
    def by(self) -> str:
        return self.variable or self.record.template.names[-1]

    def record_of(self, member: str, arguments: Mapping[str, str]) -> "Reference":
        """The record that ``member`` must have."""
        names = self.record.template.names
        given = {name: arguments[name] for name in names if name in arguments and name != self.by}
        return self.record.reference({**given, self.by: member})


class Facts(TypedDict, total=False):
    """What may be said of any declaration; see ``Declaration``."""

    purpose: Required[str]
    ttl: Ttl
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    personal: Personal | bool
    scripts: tuple[str, ...]
    tag: str | Tag | None
    kinds: Mapping[str, Kind] | None
    dead_letter: DeadLetter
    pairs_with: "Pair | Declaration | None"


class Declaration:
    """What is known of one pattern.

    ``pattern`` is the documented spelling. ``kind`` is key, channel or opaque; ``type`` the declared type;
    ``server_type`` what the server's TYPE answers for it, or None; ``codec`` what one value, element, member or
    field value is. ``writers``, ``readers`` and ``scripts`` name code.
    """

    kind: ClassVar[str] = "key"
    type: ClassVar[str]
    server_type: ClassVar[str | None] = None
    codec: Codec[Any] | None = None

    def __init__(
        self,
        keyspace: Keyspace,
        pattern: str,
        *,
        purpose: str,
        ttl: Ttl = NO_TTL,
        writers: tuple[str, ...] = (),
        readers: tuple[str, ...] = (),
        personal: Personal | bool = False,
        scripts: tuple[str, ...] = (),
        tag: str | Tag | None = None,
        kinds: Mapping[str, Kind] | None = None,
        dead_letter: DeadLetter = OnCorrupt.ERROR,
        pairs_with: "Pair | Declaration | None" = None,
    ) -> None:
        self.template = Template(pattern, kinds)
        self.pattern = self.template.spelling
        self.room = keyspace.name
        self.tag = (
            tag_of(keyspace.tag, self.template, laned=keyspace.laned) if tag is None else tag_of(tag, self.template)
        )
        self.purpose = purpose
        self.ttl = ttl
        self.writers, self.readers, self.scripts = _names(writers), _names(readers), _names(scripts)
        self.personal = personal
        self.dead_letter = dead_letter
        self.pairs_with = Pair(pairs_with) if isinstance(pairs_with, Declaration) else pairs_with
        self._check()
        keyspace.declarations.append(self)

    def __repr__(self) -> str:
        return f"<{self.type} {self.pattern} of {self.room}>"

    @property
    def laned(self) -> bool:
        """Whether its keys are there once for each lane of a cluster."""
        return isinstance(self.tag, LanedTag)

    @property
    def payload(self) -> str:
        """What the value is, in words; empty where the type alone says it."""
        return "" if self.codec is None else self.codec.name

    def payload_fields(self) -> frozenset[str] | None:
        """The fields that a value has, where its type says so."""
        of = getattr(self.codec, "of", None)
        if isinstance(of, type) and issubclass(of, msgspec.Struct):
            return frozenset(field.encode_name for field in msgspec.structs.fields(of))
        return None

    def reference(self, arguments: Mapping[str, str]) -> "Reference":
        """The same as ``at`` with named arguments, for code that does not know the type."""
        raise DeclarationError(f"{self.pattern} is {self.type} and has no keys of its own to name")

    def key(self, layout: Layout, *positional: Value, **named: Value) -> bytes:
        """The physical name for these variables."""
        return self.reference(self.template.bind(positional, named)).name(layout)

    def sample(self, rng: random.Random) -> dict[str, str]:
        """Arguments that fit the pattern, for documents, tests and benchmarks."""
        while True:
            arguments = self.template.sample(rng)
            if not any("}" in arguments[name] for name in self.tag.variables):
                return arguments

    def probe(self, raw_key: bytes) -> Command | None:
        """One cheap command that reads a sample of the value; None if there is nothing to decode."""
        return None

    def judge_sample(self, reply: Reply) -> str | None:
        """Why the reply to ``probe`` does not decode; None if it does, or if the sample cannot tell."""
        return None

    def sample_members(self, reply: Reply) -> list[str]:
        """The members in the reply to ``probe``, for a declaration with ``pairs_with``."""
        return []

    def _check(self) -> None:
        if not self.purpose:
            raise DeclarationError(f"{self.pattern}: say its purpose")
        if isinstance(self.personal, Personal):
            unknown = [name for name in self.personal.variables if name not in self.template.names]
            if unknown:
                raise DeclarationError(f"{self.pattern}: personal= names {', '.join(unknown)}, not in the pattern")
            if not self.personal.variables and not self.personal.fields:
                raise DeclarationError(f"{self.pattern}: personal= names nothing; use True for data without a name")
            self._check_fields("personal=", self.personal.fields)
        if isinstance(self.ttl, Until) and self.ttl.field is not None:
            self._check_fields("ttl=", (self.ttl.field,))
        if isinstance(self.dead_letter, Declaration) and (
            self.dead_letter.type != "list" or self.dead_letter.tag.describe() != self.tag.describe()
        ):
            raise DeclarationError(
                f"{self.pattern}: dead letters go to {self.dead_letter.pattern}, which must be a list of the same tag"
            )
        if self.pairs_with is not None:
            pair = self.pairs_with
            missing = [name for name in pair.record.template.names if name not in (*self.template.names, pair.by)]
            if missing or pair.by not in pair.record.template.names:
                raise DeclarationError(
                    f"{self.pattern}: pairs with {pair.record.pattern}, but cannot fill "
                    f"{', '.join(missing) or pair.by}"
                )

    def _check_fields(self, where: str, fields: tuple[str, ...]) -> None:
        """Refuse fields that the payload does not have; ``user.email`` is a field within a field."""
        known = self.payload_fields()
        unknown = [] if known is None else [field for field in fields if field.partition(".")[0] not in known]
        if unknown:
            raise DeclarationError(f"{self.pattern}: {where} names {', '.join(unknown)}, not a field of the payload")


def _names(given: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise DeclarationError(f"writers, readers and scripts are tuples of names; write ({given!r},)")
    return tuple(given)
