"""Who shares the fair queue: what each tenant holds, asks for and gets; and pausing one of them."""

import builtins
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from keystead.clock import Clock, real
from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.jobs.keys import ASKED, FAIR, SERVED
from keystead.jobs.tenants_shares import MINUTE_SECONDS
from keystead.patterns.fairqueue_keys import LONGEST_BLACKLIST_SECONDS, SHARD, BlacklistReason
from keystead.patterns.fairqueue_values import Counts

if TYPE_CHECKING:
    from keystead.edge import Page, PageRequest

PAUSED: Final = "paused by an operator"
EVERYBODY: Final = "!all"
MOST_BUSIEST: Final = 500
RETRIED_AT_ONCE: Final = 100
# Of a cursor, which anybody can make up: another number the server would refuse.
_Scanned = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, slots=True)
class Pause:
    """Why a tenant is not served, and until when."""

    reason: str
    until: float


@dataclass(frozen=True, slots=True)
class TenantView:
    """One tenant at one moment.

    ``running`` are in workers' hands, ``dead`` were given up. ``asked`` and ``served`` are costs of about the last
    minute; ``share`` is what of all that was served went to this tenant, from 0 to 1.
    """

    tenant: str
    ready: int = 0
    delayed: int = 0
    running: int = 0
    parked: int = 0
    dead: int = 0
    asked: float = 0.0
    served: float = 0.0
    share: float = 0.0
    pauses: tuple[Pause, ...] = ()

    @property
    def paused(self) -> bool:
        return bool(self.pauses)

    @property
    def known(self) -> bool:
        """Whether anything is known of it: it holds, asked for or got something, or is paused."""
        return any((self.ready, self.delayed, self.running, self.parked, self.dead, self.asked, self.served,
                    self.pauses))

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "paused": self.paused}


class Tenants:
    """Reads and steps in. Nothing here costs more with more jobs, and a page costs the same with any number of tenants.
    """

    def __init__(self, valkey: Valkey, clock: Clock) -> None:
        self._valkey, self._clock = valkey, clock

    async def totals(self) -> Counts:
        """How many jobs of all tenants are where, and how many there ever were."""
        return await FAIR.length(self._valkey)

    async def get(self, tenant: str) -> TenantView:
        """One tenant; ask ``known`` whether there is anything to tell. ``Invalid`` for what can be no tenant."""
        _check(tenant)
        return (await self._views([tenant]))[0]

    async def list(self, request: "PageRequest | None" = None) -> "Page[TenantView]":
        """Tenants that hold something or are paused, page by page, in no order that means anything.

        One that stays as it is comes exactly once; one that begins or ends something meanwhile may come twice.
        """
        from keystead.edge import Page, PageRequest, make_cursor  # not for workers, which have this module too

        request = request or PageRequest()
        found = await FAIR.shards.page(self._valkey, request.position(tuple[_Scanned, _Scanned, str]), request.limit)
        cursor = None if found.position is None else make_cursor(found.position)
        return Page(tuple(await self._views(list(found.shards))), cursor)

    async def busiest(self, most: int = 20) -> builtins.list[TenantView]:
        """Those that got or asked for most in about the last minute, and those that are paused; greatest share first.
        """
        if not 1 <= most <= MOST_BUSIEST:
            raise Invalid(f"ask for 1 to {MOST_BUSIEST} tenants, not {most}")
        now = self._clock.now()
        minute = int(real(self._clock).now()) // MINUTE_SECONDS
        async with self._valkey.pipeline(transaction=False) as pipeline:
            for key in (SERVED, ASKED):
                for each in (minute, minute - 1):
                    key.at(each).range(pipeline, 0, most, descending=True)
            FAIR.blacklist.page(pipeline, 0, most, now=now)
            *tops, paused = await pipeline.execute()
        names = {tenant: None for top in tops for tenant, _ in top if tenant != EVERYBODY}
        names |= {tenant: None for tenant, reasons in paused.shards if reasons}
        views = await self._views(list(names))
        if len(views) < most:
            # With nothing moving, whoever waits is still worth seeing.
            waiting = await FAIR.shards.page(self._valkey, None, most)
            views += await self._views([each for each in waiting.shards if each not in names])
        return sorted(views, key=lambda each: (-each.share, -each.asked, -each.ready, each.tenant))[:most]

    async def pause(self, tenant: str, *, lasts_seconds: float = LONGEST_BLACKLIST_SECONDS) -> None:
        """Run nothing more for a tenant until ``resume``, or until the time is over (90 days at most).

        What runs goes on; what waits stays, in order; what is enqueued is taken, up to the tenant's limit.
        """
        _check(tenant)
        await FAIR.blacklist.add(self._valkey, [(tenant, PAUSED, lasts_seconds)], now=self._clock.now())

    async def resume(self, tenant: str) -> bool:
        """Serve a tenant again; False if it was not paused here. Other reasons for which it is not served stay."""
        _check(tenant)
        now = self._clock.now()
        if not any(each.value == PAUSED for each in await FAIR.blacklist.of(self._valkey, tenant, now=now)):
            return False
        await FAIR.blacklist.clear(self._valkey, tenant, PAUSED, now=now)
        return True

    async def retry_dead(self, tenant: str) -> int:
        """Run up to a hundred of the tenant's dead jobs again, the oldest first; says how many."""
        _check(tenant)
        ids = [item for item, _ in await FAIR.upkeep.dead(self._valkey, tenant, RETRIED_AT_ONCE)]
        return await FAIR.upkeep.retry_dead(self._valkey, tenant, ids, now=self._clock.now()) if ids else 0

    async def _views(self, tenants: Sequence[str]) -> builtins.list[TenantView]:
        """Two round trips for any number."""
        if not tenants:
            return []
        now, counted_at = self._clock.now(), real(self._clock).now()
        minute = int(counted_at) // MINUTE_SECONDS
        left = 1 - (counted_at - minute * MINUTE_SECONDS) / MINUTE_SECONDS  # how much of the minute before counts still
        async with self._valkey.pipeline(transaction=False) as pipeline:
            for tenant in (EVERYBODY, *tenants):
                for key in (SERVED, ASKED):
                    key.at(minute).score(pipeline, tenant)
                    key.at(minute - 1).score(pipeline, tenant)
            for tenant in tenants:
                FAIR.blacklist.of(pipeline, tenant, now=now)
            replies = await pipeline.execute()
        scores = [(each or 0.0) for each in replies[:4 * (len(tenants) + 1)]]
        of_each = [
            (scores[at] + left * scores[at + 1], scores[at + 2] + left * scores[at + 3])
            for at in range(0, len(scores), 4)
        ]
        everything = of_each[0][0]
        reasons: list[tuple[BlacklistReason, ...]] = replies[4 * (len(tenants) + 1):]
        counts = await FAIR.shards.counts(self._valkey, tenants)
        return [
            TenantView(
                tenant, held.ready, held.delayed, held.leased, held.parked, held.dead, round(asked, 3),
                round(served, 3), round(served / everything, 4) if everything else 0.0,
                tuple(Pause(each.value, each.until / 1000) for each in why),
            )
            for tenant, held, (served, asked), why in zip(tenants, counts, of_each[1:], reasons, strict=True)
        ]


def _check(tenant: str) -> None:
    if not SHARD.accepts(tenant):
        raise Invalid(f"a tenant is {SHARD.says}")
