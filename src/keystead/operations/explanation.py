"""What one key is: what its declaration says, what the server holds, and whether the two agree."""

import re
from dataclasses import asdict, dataclass, replace

from keystead.engine import Valkey
from keystead.keys import Command, Declaration, Match, Registry, Reply, describe, key_slot, spell_key
from keystead.operations.preview import Preview, read_preview

AS_DECLARED = "as declared"
_PLACEHOLDER = re.compile(r"\{[A-Za-z_][^{}]*\}")


@dataclass(frozen=True, slots=True)
class Explanation:
    """One key. ``declaration`` is its row of the inventory, None if nothing declares it.

    What only a server can tell (``type`` to ``problem``) is None where ``exists`` is false. ``value`` can be written
    as JSON and holds the beginning of a large value, ``truncated`` says so; ``note`` says why there is none.
    ``findings`` are the ways in which server and declaration disagree; ``problem`` is why the value does not decode.
    """

    key: str
    kind: str
    exists: bool
    pattern: str | None
    purpose: str | None
    room: str | None
    declaration: dict[str, object] | None
    arguments: dict[str, str]
    personal: bool
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    scripts: tuple[str, ...]
    slot: int
    type: str | None = None
    ttl_seconds: float | None = None
    ttl_verdict: str | None = None
    memory_bytes: int | None = None
    length: int | None = None
    value: object = None
    truncated: bool = False
    problem: str | None = None
    note: str | None = None
    findings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The same as JSON has it."""
        return asdict(self)


async def explain(valkey: Valkey, registry: Registry, raw_key: bytes) -> Explanation:
    """Look at one key. A key that is not there is explained from the registry alone: what it would be.

    Reads a bounded part of the value, whatever its size, and never writes. A documented name is understood on a
    tagged layout too, in the first lane that has the key, and a declared channel is explained as one.
    """
    asked = raw_key
    raw_key, match = _find(registry, asked)
    known = _from_registry(raw_key, match)
    if known.kind == "channel":
        return known
    server_type, ttl_ms, memory_bytes = await _look(valkey, raw_key)
    if server_type == "none" and match is not None and match.declaration.laned and asked != raw_key:
        for lane in range(1, registry.layout.lanes):
            name = match.reference.name(registry.layout.in_lane(lane))
            found = await _look(valkey, name)
            if found[0] != "none":
                raw_key, match, (server_type, ttl_ms, memory_bytes) = name, registry.resolve(name), found
                known = _from_registry(raw_key, match)
                break
    if server_type == "none":
        return known
    declaration = match.declaration if match is not None else None
    preview = await read_preview(valkey, raw_key, server_type, declaration, memory_bytes)
    if declaration is not None and preview.problem is None and preview.note is None:
        preview = replace(preview, problem=await _judge(valkey, declaration, raw_key, server_type))
    ttl_seconds = ttl_ms / 1000 if ttl_ms >= 0 else None
    return _judged(known, match, server_type, ttl_seconds, memory_bytes, preview)


def explain_without_server(registry: Registry, raw_key: bytes) -> Explanation:
    """What the key would be, from the registry alone."""
    return _from_registry(*_find(registry, raw_key))


def looks_like_pattern(spelled: str) -> bool:
    """Whether a name holds placeholders, as ``user:{id}`` does; the hash tag in front of a tagged key is none."""
    _, tag_end, name = spelled.partition("}") if spelled.startswith("{") else ("", "", spelled)
    return _PLACEHOLDER.search(name if tag_end or not spelled.startswith("{") else spelled) is not None


def _find(registry: Registry, raw_key: bytes) -> tuple[bytes, Match | None]:
    """The physical key that was meant and what it is."""
    match = registry.resolve(raw_key)
    if match is not None:
        return raw_key, match
    match = registry.resolve_logical(raw_key.decode("utf-8", "surrogateescape"))
    if match is not None and match.declaration.kind == "key":
        return match.reference.name(registry.layout), match
    return raw_key, registry.resolve_channel(raw_key)


def _from_registry(raw_key: bytes, match: Match | None) -> Explanation:
    declaration = match.declaration if match is not None else None
    return Explanation(
        key=spell_key(raw_key),
        kind="key" if declaration is None else declaration.kind,
        exists=False,
        pattern=declaration.pattern if declaration else None,
        purpose=declaration.purpose if declaration else None,
        room=declaration.room if declaration else None,
        declaration=describe(declaration) if declaration else None,
        arguments=dict(match.arguments) if match else {},
        personal=bool(declaration.personal) if declaration else False,
        writers=declaration.writers if declaration else (),
        readers=declaration.readers if declaration else (),
        scripts=declaration.scripts if declaration else (),
        slot=key_slot(raw_key),
    )


async def _look(valkey: Valkey, raw_key: bytes) -> tuple[str, int, int | None]:
    commands: list[Command] = [("TYPE", raw_key), ("PTTL", raw_key), ("MEMORY", "USAGE", raw_key)]
    kind, ttl_ms, memory_bytes = await valkey.call_block(commands, repeat=True)
    for reply in (kind, ttl_ms):
        if isinstance(reply, Exception):
            raise reply
    # Some users may not ask for the memory; the rest is worth showing all the same.
    return _text(kind), ttl_ms, memory_bytes if isinstance(memory_bytes, int) else None


async def _judge(valkey: Valkey, declaration: Declaration, raw_key: bytes, server_type: str) -> str | None:
    """What an audit would say of the value, so that both say the same."""
    probe = declaration.probe(raw_key) if declaration.server_type == server_type else None
    if probe is None:
        return None
    (reply,) = await valkey.call_block([probe], repeat=True)
    return None if isinstance(reply, Exception) else declaration.judge_sample(reply)


def _judged(
    known: Explanation, match: Match | None, server_type: str, ttl_seconds: float | None, memory_bytes: int | None,
    preview: Preview,
) -> Explanation:
    findings: list[str] = []
    verdict = None
    if match is None:
        findings.append("nothing declares this key")
    elif match.declaration.kind == "key":
        declared = match.declaration
        if server_type != declared.server_type:
            findings.append(f"is a {server_type}, but declared as {declared.type}")
        broken = declared.ttl.check(ttl_seconds)
        verdict = broken or AS_DECLARED
        if broken:
            findings.append(broken)
        if preview.problem:
            findings.append(f"does not decode: {preview.problem}")
    return replace(
        known, exists=True, type=server_type, ttl_seconds=ttl_seconds, ttl_verdict=verdict, memory_bytes=memory_bytes,
        length=preview.length, value=preview.value, truncated=preview.truncated, problem=preview.problem,
        note=preview.note, findings=tuple(findings),
    )


def _text(reply: Reply) -> str:
    return reply.decode() if isinstance(reply, bytes) else str(reply)
