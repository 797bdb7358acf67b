"""What the server holds of one person, and taking it away: rows first, through the rooms that own them, then whatever
key still bears one of their names."""

import asyncio
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from keystead.app import Running
from keystead.custody import Erasing, Erasure, Person
from keystead.errors import Conflict, NotFound
from keystead.ids import UserSub
from keystead.inventory import Inventory, from_registry
from keystead.keys import Registry
from keystead.messaging.touches.keys import ERASED
from keystead.telemetry import logger

RECEIPTS_DIRECTORY: Final = "receipts"
ROWS_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 0.2
KEYS_PER_SECOND: Final = 20_000

_log = logger("web")


@dataclass(frozen=True, slots=True)
class PatternHeld:
    """What one pattern holds of them: whole keys that go, parts of others, and bytes in all."""

    pattern: str
    keys: int
    parts: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ErasedPerson:
    """What was done. ``receipt`` names patterns and hashes, and nothing of the person; ``file`` is where it lies."""

    erasure: Erasure
    receipt: dict[str, Any]
    file: Path


@cache
def _inventory(registry: Registry) -> Inventory:
    return from_registry(registry)


async def identifiers(running: Running, sub: UserSub) -> tuple[str, ...]:
    """Everything we know them by: sub, addresses, numbers and devices."""
    contacts = running.switchboard.contacts
    emails, phones, devices = await asyncio.gather(
        contacts.listed_emails(sub), contacts.listed_phones(sub), contacts.listed_devices(sub))
    return (sub, *(each.address for each in (*emails, *phones)), *(each.token for each in devices))


async def find_keys(running: Running, sub: UserSub) -> Erasure:
    """Which keys hold them: a dry run over every key of the server, at a bounded pace. Changes nothing."""
    return await _erasing(running, await identifiers(running, sub), really=False)


def by_pattern(found: Erasure) -> list[PatternHeld]:
    """What would go, or went, by pattern; most bytes first."""
    held: dict[str, PatternHeld] = {}
    for act in found.acts:
        before = held.get(act.pattern, PatternHeld(act.pattern, 0, 0, 0))
        held[act.pattern] = replace(before, keys=before.keys + 1, parts=before.parts + act.parts,
                                    bytes=before.bytes + act.bytes)
    return sorted(held.values(), key=lambda each: (-each.bytes, each.pattern))


async def erase_person(running: Running, sub: UserSub, *, rows_seconds: float = ROWS_SECONDS) -> ErasedPerson:
    """Take a person out of the installation, for good, and leave a receipt in the data directory.

    Addresses, identities and names go at once; the rooms let go of the rest by a job that is waited for; then every
    key is searched. Somebody whose rows are gone already is only searched for by their sub. ``Conflict`` when the job
    does not run: nothing may be taken from its queue then, and it can be done again.
    """
    known = await identifiers(running, sub)
    try:
        await running.switchboard.contacts.erase(sub)
        await running.users.leave(sub)
    except NotFound:
        pass
    else:
        await _until_gone(running, sub, rows_seconds)
    erasure = await _erasing(running, known, really=True)
    # What a courier held in its hands just now must not be tried again; the mark expires by itself.
    await ERASED.at(sub).raise_flag(running.valkey.lane_for(sub))
    receipt = erasure.receipt()
    file = await asyncio.to_thread(_kept, running.data_directory, erasure)
    _log.info("a person was erased", keys=len(erasure.acts), leftovers=len(erasure.leftovers), receipt=file.name)
    return ErasedPerson(erasure, receipt, file)


async def _until_gone(running: Running, sub: UserSub, seconds: float) -> None:
    for _ in range(max(1, round(seconds / LOOK_SECONDS))):
        if await running.users.created_at(sub) is None:
            return
        await asyncio.sleep(LOOK_SECONDS)
    raise Conflict("their addresses and names are gone, and the rest waits for a job that nobody runs now; let a "
                   "worker run, then do it again")


async def _erasing(running: Running, known: tuple[str, ...], *, really: bool) -> Erasure:
    work = Erasing(running.valkey, _inventory(running.registry), Person(known), really=really)
    return await work.run(keys_per_second=KEYS_PER_SECOND)


def _kept(directory: Path, erasure: Erasure) -> Path:
    folder = directory / RECEIPTS_DIRECTORY
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"erasure-{erasure.at:%Y%m%dT%H%M%S}-{erasure.person.sha256[:12]}.json"
    file.write_text(json.dumps(erasure.receipt(), indent=2) + "\n", encoding="utf-8")
    return file
