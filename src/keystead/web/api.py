"""The HTTP interface of the registry: what is declared, and what a key is."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from keystead.app import Running
from keystead.edge import Caller
from keystead.keys import Declaration, read_key
from keystead.operations import Census, explain

SCOPE = "keys"
MOST_KEY_CHARACTERS = 4096


class PatternShown(BaseModel):
    """One declared pattern, and what the last walk over the server found of it."""

    pattern: str
    kind: str = Field(description="key, channel or opaque")
    type: str
    ttl: str
    room: str
    purpose: str
    personal: bool
    tag: str
    writers: list[str]
    readers: list[str]
    scripts: list[str]
    keys: int | None = Field(description="live keys; null before the first count, and for channels")
    memory_bytes: int | None = Field(description="their memory, estimated from a sample where there are many")


class PatternList(BaseModel):
    """All declared patterns."""

    items: list[PatternShown]
    counted_at: float | None = Field(description="unix time of the last count")
    undeclared_keys: int | None = Field(description="live keys that nothing declares")
    undeclared_memory_bytes: int | None


class KeyExplained(BaseModel):
    """One key: what its declaration says, what the server holds, and where the two disagree."""

    key: str
    kind: str
    exists: bool
    pattern: str | None
    purpose: str | None
    room: str | None
    declaration: dict[str, object] | None
    arguments: dict[str, str]
    personal: bool
    writers: list[str]
    readers: list[str]
    scripts: list[str]
    slot: int
    type: str | None
    ttl_seconds: float | None
    ttl_verdict: str | None
    memory_bytes: int | None
    length: int | None
    value: object
    truncated: bool
    problem: str | None
    note: str | None
    findings: list[str]


def routes(running: Running, census: Census) -> APIRouter:
    router = APIRouter(tags=["keys"])

    @router.get("/keys")
    async def list_keys(request: Request) -> PatternList:
        """Every declared pattern with its live count and memory. Needs the scope ``keys``."""
        _caller(request).require(SCOPE)
        counts = census.counts
        return PatternList(
            items=[_pattern(each, census) for each in running.registry],
            counted_at=census.counted_at,
            undeclared_keys=counts.undeclared_keys if counts else None,
            undeclared_memory_bytes=counts.undeclared_memory_bytes if counts else None,
        )

    @router.get("/keys/explain")
    async def explain_key(
        request: Request,
        key: Annotated[str, Query(min_length=1, max_length=MOST_KEY_CHARACTERS,
                                  description="the key; bytes that are no text are written \\xNN")],
    ) -> KeyExplained:
        """What one key is. Holds the value, personal data included. Needs the scope ``keys``."""
        _caller(request).require(SCOPE)
        found = await explain(running.valkey, running.registry, read_key(key))
        return KeyExplained.model_validate(found.as_dict())

    return router


def _pattern(declaration: Declaration, census: Census) -> PatternShown:
    count = census.counts.of(declaration) if census.counts and declaration.kind != "channel" else None
    return PatternShown(
        pattern=declaration.pattern, kind=declaration.kind, type=declaration.type, ttl=declaration.ttl.describe(),
        room=declaration.room, purpose=declaration.purpose, personal=bool(declaration.personal),
        tag=declaration.tag.describe(), writers=list(declaration.writers), readers=list(declaration.readers),
        scripts=list(declaration.scripts), keys=count.keys if count else None,
        memory_bytes=count.memory_bytes if count else None,
    )


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller
