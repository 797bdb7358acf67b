"""The block list as an operator sees it: who is blocked, take a block away, pin one."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from keystead.edge.addresses import UNKNOWN, Networks, client_address
from keystead.edge.keys import BLOCKED_IP, PIN_MOST_SECONDS, VIOLATIONS
from keystead.edge.paging import Page, PageRequest, page_of
from keystead.engine import Valkey, scan
from keystead.errors import Invalid
from keystead.keys import Registry
from keystead.keys.globs import glob_of
from keystead.telemetry import logger

_log = logger("edge")


@dataclass(frozen=True, slots=True)
class Block:
    """One blocked address. ``seconds_left`` is None for a block without an end, which only a foreign hand can set."""

    address: str
    reason: str
    seconds_left: float | None
    violations: int


class Blocks:
    """Reads and changes the block list. Every change is logged, without the address: that is personal data."""

    def __init__(self, valkey: Valkey, registry: Registry) -> None:
        self._valkey = valkey
        self._registry = registry

    async def page(self, request: PageRequest) -> Page[Block]:
        """Blocks by address, page by page; one that ends meanwhile is missing from its page.

        Walks the whole keyspace for each page, in small steps that never hold the server up.
        """
        after = request.position(str) or ""
        addresses = sorted({address async for address in self._addresses() if address > after})
        page = page_of(addresses[: request.limit + 1], request, str)
        found: list[Block] = []
        for address in page.items:
            mark = await BLOCKED_IP.at(address).get(self._valkey)
            if mark is None:
                continue
            left = await BLOCKED_IP.at(address).remaining_seconds(self._valkey)
            violations = await VIOLATIONS.at(address).get(self._valkey)
            found.append(Block(address, mark.partition(":")[2], left, violations or 0))
        return Page(tuple(found), page.next_cursor)

    async def unblock(self, address: str) -> bool:
        """Forget the block and the violations of an address; says whether there was anything to forget."""
        bucket = bucket_of(address)
        async with self._valkey.pipeline(transaction=True) as pipeline:
            blocked = BLOCKED_IP.at(bucket).delete(pipeline)
            counted = VIOLATIONS.at(bucket).delete(pipeline)
            await pipeline.execute()
        there = bool(await blocked) or bool(await counted)
        _log.warning("address unblocked", there=there)
        return there

    async def pin(self, address: str, *, lasts_seconds: int) -> None:
        """Block an address by hand for exactly that long, whatever block it had."""
        if not 1 <= lasts_seconds <= PIN_MOST_SECONDS:
            raise Invalid(f"a block lasts 1 to {PIN_MOST_SECONDS} seconds, not {lasts_seconds}")
        await BLOCKED_IP.at(bucket_of(address)).lasting(lasts_seconds).set(self._valkey, "blocked:manual")
        _log.warning("address blocked", reason="manual", blocked_seconds=lasts_seconds)

    async def _addresses(self) -> AsyncIterator[str]:
        async for batch in scan(self._valkey, match=glob_of(BLOCKED_IP, self._valkey.layout)):
            for raw_key in batch:
                match = self._registry.resolve(raw_key)
                if match is not None and match.declaration is BLOCKED_IP:
                    yield match.arguments["ip"]


def bucket_of(address: str) -> str:
    """What an address that an operator typed is counted under."""
    found = client_address(address, (), Networks())
    if found.exact is None and address.strip() != UNKNOWN:
        raise Invalid(f"{address[:60]!r} is not an IP address")
    return found.bucket
