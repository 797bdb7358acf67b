"""Where messages lie: reading lists and sorted sets of them page by page, and finding those that somebody looks for."""

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from keystead.engine import Valkey
from keystead.keys import ListRef, SortedSetRef, Undecodable
from keystead.patterns import WorkList

PAGE: Final = 500
MOST: Final = 100_000  # elements that are looked at in one place

Place = ListRef[Any] | SortedSetRef[Any]


async def read(valkey: Valkey, place: Place, most: int = MOST) -> AsyncIterator[tuple[bytes, Any]]:
    """Elements with their bytes, the newest page first; what does not decode is left out.

    Pages are counted from the end, since elements leave at the front while we read: none is missed for that.
    """
    word, last = "LRANGE" if isinstance(place, ListRef) else "ZRANGE", -1
    while last > -most:
        command = (word, place.name(valkey.layout), last - PAGE + 1, last)
        raws: list[bytes] = await valkey.run(command, list, repeat=True)
        for raw in raws:
            try:
                yield raw, place.codec.decode(raw)
            except Undecodable:
                continue
        if len(raws) < PAGE:
            return
        last -= PAGE


async def find(valkey: Valkey, place: Place, wanted: Callable[[Any], bool]) -> dict[bytes, Any]:
    """Every element that is wanted, by its bytes."""
    return {raw: value async for raw, value in read(valkey, place) if wanted(value)}


async def purgatories(valkey: Valkey, work: WorkList[Any]) -> list[ListRef[Any]]:
    """Where workers keep what they have taken: the default worker, and each with a name."""
    arguments = work.arguments
    names = await work.workers_key.at(**arguments).members(valkey)
    return [work.purgatory_key.at(**arguments), *(work.worker_key.at(**arguments, worker=name) for name in names)]


async def whereabouts(valkey: Valkey, work: WorkList[Any], uid: str, more: dict[str, Place] | None = None) -> str:
    """Where the item of a work list with this uid is now: waits, taken, dead, or in one of ``more``; or empty."""

    def ours(value: Any) -> bool:
        return getattr(value, "uid", None) == uid

    places: dict[str, Place] = {"waits in the queue": work.queue, **(more or {})}
    for name, place in places.items():
        if await find(valkey, place, ours):
            return name
    for place in await purgatories(valkey, work):
        if await find(valkey, place, ours):
            return "taken by a worker"
    decode = work.queue_key.codec.decode
    async for _, letter in read(valkey, work.dead):
        try:
            if ours(decode(letter.raw)):
                return f"dead: {letter.error}"
        except Undecodable:
            continue
    return ""
