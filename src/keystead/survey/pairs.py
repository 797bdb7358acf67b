"""Do indexes and their records agree? Checked in batches, both ways, while the server goes on changing them.

An index member without its record, or a record that its index does not name, is reported only if it is still so
after a moment: whoever changes a pair may have been in the middle of it.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.keys import Command, Declaration, Match, Reference, Registry, Reply, Undecodable
from keystead.survey.findings import Drift
from keystead.survey.values import Faults

PAGE_MEMBERS = 200
INDEXES_AT_ONCE = 20
QUESTIONS_AT_ONCE = 500
SECOND_LOOK_SECONDS = 0.05

_IS_MEMBER = {"zset": "ZSCORE", "set": "SISMEMBER"}
_PAGES = {"list": "LRANGE", "set": "SSCAN", "zset": "ZSCAN"}


@dataclass(frozen=True, slots=True)
class _Claim:
    """One link between an index and a record, and the two questions that show whether it holds."""

    match: Match
    index: Declaration
    member: str
    in_index: Command | None
    has_record: Command


@dataclass(frozen=True, slots=True)
class _Page:
    """Some members of one index: from ``start``, which is a place in a list and a cursor otherwise."""

    raw_key: bytes
    match: Match
    start: int

    @property
    def command(self) -> Command:
        name = _PAGES[self.match.declaration.server_type or ""]
        if name == "LRANGE":
            return name, self.raw_key, self.start, self.start + PAGE_MEMBERS - 1
        return name, self.raw_key, self.start, "COUNT", PAGE_MEMBERS

    def read(self, reply: Reply) -> tuple[list[bytes], int | None]:
        """The members, and where the next page starts; None if this was the last."""
        kind = self.match.declaration.server_type
        if kind == "list":
            return list(reply), self.start + PAGE_MEMBERS if len(reply) == PAGE_MEMBERS else None
        cursor = int(reply[0])
        return list(reply[1][::2] if kind == "zset" else reply[1]), cursor or None


class Pairs:
    """Checks the pairs of one walk."""

    def __init__(self, valkey: Valkey, registry: Registry, faults: Faults, keys_per_second: float) -> None:
        self._valkey = valkey
        self._faults = faults
        self._layout = registry.layout
        self._keys_per_second = keys_per_second
        self._indexes_of: dict[Declaration, list[Declaration]] = {}
        for declaration in registry:
            if declaration.pairs_with is not None and declaration.server_type in _IS_MEMBER:
                self._indexes_of.setdefault(declaration.pairs_with.record, []).append(declaration)

    async def check(self, keys: Sequence[tuple[bytes, Match]]) -> None:
        """Check those of a batch of existing keys that are an index or a record."""
        await self._check_records(keys)
        await self._check_indexes([_Page(raw_key, match, 0) for raw_key, match in keys
                                   if match.declaration.pairs_with is not None
                                   and match.declaration.server_type in _PAGES])

    async def _check_indexes(self, pages: list[_Page]) -> None:
        """Some members of several indexes at a time, until all members of all of them were asked for."""
        while pages:
            began = time.monotonic()
            now, pages = pages[:INDEXES_AT_ONCE], pages[INDEXES_AT_ONCE:]
            claims: list[_Claim] = []
            for page, reply in zip(now, await self._valkey.call_block([page.command for page in now], repeat=True),
                                   strict=True):
                if isinstance(reply, Exception):
                    continue
                raw_members, following = page.read(reply)
                claims += self._claims(page, raw_members)
                if following is not None:
                    pages.append(_Page(page.raw_key, page.match, following))
            for claim in await self._broken(claims, "has_record"):
                self._no_record(claim.match, claim.member)
            await asyncio.sleep(max(0.0, len(claims) / self._keys_per_second - (time.monotonic() - began)))

    def _claims(self, page: _Page, raw_members: list[bytes]) -> list[_Claim]:
        index = page.match.declaration
        raw_of = {member: raw for raw in raw_members for member in index.sample_members([raw])}
        return [_Claim(page.match, index, member, _membership(index, page.raw_key, raw_of[member]),
                       ("EXISTS", reference.name(self._layout.in_lane(page.match.lane))))
                for member, reference in self._expected(page.match, raw_members).items()]

    def _expected(self, match: Match, raw_members: list[bytes]) -> dict[str, Reference]:
        """The record that each member of an index must have, by member."""
        pair = match.declaration.pairs_with
        assert pair is not None
        found: dict[str, Reference] = {}
        for member in match.declaration.sample_members(raw_members):
            try:
                found[member] = pair.record_of(member, match.arguments)
            except DeclarationError:
                # A member that cannot even be named in the record's pattern has no record.
                self._no_record(match, member)
        return found

    def _no_record(self, match: Match, member: str) -> None:
        pair = match.declaration.pairs_with
        pattern = pair.record.pattern if pair is not None else ""
        self._faults.add(Drift.BROKEN_PAIR, match.declaration.pattern, match.reference.logical,
                         f"member {member[:80]!r} has no {pattern}")

    async def _check_records(self, keys: Sequence[tuple[bytes, Match]]) -> None:
        claims: list[_Claim] = []
        for raw_key, match in keys:
            for index in self._indexes_of.get(match.declaration, ()):
                question = self._named_by(index, match)
                if question is not None:
                    claims.append(_Claim(match, index, match.arguments[_by(index)], question, ("EXISTS", raw_key)))
        for claim in await self._broken(claims, "in_index"):
            self._faults.add(Drift.BROKEN_PAIR, claim.match.declaration.pattern, claim.match.reference.logical,
                             f"is not a member of {claim.index.pattern}")

    async def _broken(self, claims: list[_Claim], side: str) -> list[_Claim]:
        """The claims of which one side is there and ``side`` is not, on two looks a moment apart."""
        broken = await self._look(claims, side)
        if broken:
            await asyncio.sleep(SECOND_LOOK_SECONDS)
            broken = await self._look(broken, side)
        return broken

    async def _look(self, claims: list[_Claim], side: str) -> list[_Claim]:
        broken: list[_Claim] = []
        for start in range(0, len(claims), QUESTIONS_AT_ONCE):
            piece = claims[start : start + QUESTIONS_AT_ONCE]
            questions: list[Command] = []
            for claim in piece:
                questions += [claim.in_index or ("PING",), claim.has_record]
            replies = await self._valkey.call_block(questions, repeat=True)
            for claim, in_index, has_record in zip(piece, replies[::2], replies[1::2], strict=True):
                # An error reply says nothing about the pair.
                if isinstance(in_index, Exception) or isinstance(has_record, Exception):
                    continue
                there = _is_there(in_index), _is_there(has_record)
                if there == ((False, True) if side == "in_index" else (True, False)):
                    broken.append(claim)
        return broken

    def _named_by(self, index: Declaration, record: Match) -> Command | None:
        """The question whether ``index`` names a record; None if that cannot be asked."""
        by = _by(index)
        if any(name not in record.arguments or name == by for name in index.template.names):
            return None
        member = record.arguments[by].encode()
        try:
            # A codec that writes members differently than they stand in the record's name cannot be asked.
            if index.codec is None or str(index.codec.decode(member)) != record.arguments[by]:
                return None
            reference = index.reference({name: record.arguments[name] for name in index.template.names})
        except (Undecodable, DeclarationError):
            return None
        return _membership(index, reference.name(self._layout.in_lane(record.lane)), member)


def _by(index: Declaration) -> str:
    """The variable of the record's pattern that is the member of the index."""
    assert index.pairs_with is not None
    return index.pairs_with.by


def _membership(index: Declaration, raw_key: bytes, raw_member: bytes) -> Command | None:
    command = _IS_MEMBER.get(index.server_type or "")
    return None if command is None else (command, raw_key, raw_member)


def _is_there(reply: Reply) -> bool:
    """ZSCORE answers a number that may be zero, the others zero for absent; PING stands for a list, and for yes."""
    if isinstance(reply, float):
        return True
    return reply not in (None, 0, False)
