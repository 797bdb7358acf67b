"""The program of the demonstration, run by the server: a small shop's jobs, two keys and a family of its own.

It shows what a program looks like beside Keystead: `keystead up --program keystead.demo.program` runs these jobs, shows
these keys and charts this family. Nothing here knows the people of the town; they ask for jobs by name, over HTTP.
"""

import asyncio
import random
from typing import Final

import msgspec

from keystead.dates import LOS_ANGELES
from keystead.jobs import GiveUp, Recurring, RecurringList, Retry, cron, current_job, job
from keystead.keys import Exactly, Keyspace, RecordKey, StringKey
from keystead.keys.variables import TEXT
from keystead.patterns import DailyFamily

SHOP = Keyspace("demo.shop", tag="demo_shop")
_JOBS: Final = ("demo.program",)


class Stock(msgspec.Struct, frozen=True):
    """How much of something a shop has."""

    left: int
    counted_at: float


class Report(msgspec.Struct, frozen=True):
    """What the last report said."""

    items: int
    written_at: float


STOCK: RecordKey[Stock] = RecordKey(
    SHOP, "demo:stock:{item}", Stock, kinds={"item": TEXT}, ttl=Exactly(86_400),
    purpose="what a shop of the town has on its shelves", writers=_JOBS, readers=_JOBS,
)
REPORT: StringKey[Report] = StringKey(
    SHOP, "demo:report:last", Report, purpose="the last report that was written", writers=_JOBS, readers=_JOBS,
)
ORDERS = DailyFamily(
    SHOP, "demo_orders", counts=("paid", "receipts_sent", "flyers_printed", "photos_resized"),
    breakdowns={"failed": "reason"}, held_days=2, zone=LOS_ANGELES, table="demo_order_stats",
    purpose="what the shops of the town did", writers=_JOBS, readers=("stats.charts", "stats.rotation"),
)

_ONCE_MORE: Final = Retry(tries=2, first_seconds=5)
_MENDED_SECONDS: Final = 1800.0


class CardRefused(Exception):
    """The bank said no."""


class WarehouseSilent(Exception):
    """The warehouse did not answer."""


# -- work that tells how far it is ------------------------------------------------------------------------------------


@job(name="demo.rebuild_search", progress=True, keep_seconds=3600)
async def rebuild_search(items: int) -> str:
    """Index every article anew."""
    await _step_by_step("indexing articles", items, 0.12)
    return f"{items} articles indexed"


@job(name="demo.import_photos", progress=True, keep_seconds=3600)
async def import_photos(items: int) -> str:
    """Fetch the photos of a supplier; sometimes one of them cannot be read."""
    await _step_by_step("importing photos", items, 0.08)
    if items % 7 == 0:
        raise GiveUp("photo 3 of the supplier's archive is damaged: not a JPEG, it begins with <!DOCTYPE html>")
    return f"{items} photos imported"


@job(name="demo.monthly_report", progress=True, keep_seconds=3600)
async def monthly_report(items: int) -> str:
    """Add everything up and remember what came out."""
    await _step_by_step("adding up orders", items, 0.2)
    here = current_job()
    await REPORT.at().set(here.valkey, Report(items, here.now()))
    return f"{items} orders added up"


# -- work that fails now and then, and why ----------------------------------------------------------------------------


@job(name="demo.charge_card", retry=_ONCE_MORE)
async def charge_card(order: int) -> None:
    """Take the money for an order."""
    await asyncio.sleep(0.1)
    if order % 3 == 0:
        await _count("failed", "card refused")
        raise CardRefused("the bank refused the card: insufficient funds")
    await _count("paid")


@job(name="demo.sync_stock", retry=_ONCE_MORE)
async def sync_stock(order: int) -> None:
    """Ask the warehouse what is left."""
    await asyncio.sleep(0.3)
    if order % 2 == 0 and not _much_later():
        await _count("failed", "warehouse silent")
        raise WarehouseSilent("warehouse.example.com did not answer within 5 s")
    here = current_job()
    await STOCK.at(str(order)).set(here.valkey, Stock(order % 50, here.now()))


@job(name="demo.fetch_exchange_rates", retry=Retry(tries=3, first_seconds=10))
async def fetch_exchange_rates(order: int) -> None:
    """Fetch today's rates; the provider is there again at the next try, most of the time."""
    await asyncio.sleep(0.05)
    if (order % 5 == 0 and not _much_later()) or (current_job().attempt == 1 and order % 5 < 3):
        raise ConnectionError("rates.example.com refused the connection")


@job(name="demo.read_invoice")
async def read_invoice(order: int) -> None:
    """Read what a supplier sent."""
    await asyncio.sleep(0.05)
    if order % 4 == 0:
        await _count("failed", "unreadable invoice")
        raise GiveUp("the invoice cannot be read: its total is '12,5O', which is no number")


# -- what the tenants want --------------------------------------------------------------------------------------------


@job(name="demo.tenant.print_flyer")
async def print_flyer(page: int, of: int) -> None:
    """One page of the noisy one."""
    await asyncio.sleep(1.5 * (1 + random.random()))
    await _count("flyers_printed")


@job(name="demo.tenant.resize_photo")
async def resize_photo(item: int) -> None:
    """A photo of an article."""
    await asyncio.sleep(0.2)
    if item % 97 == 0 and not _much_later():
        raise GiveUp("the photo has 0 x 0 pixels")
    await _count("photos_resized")


@job(name="demo.tenant.send_receipt")
async def send_receipt(item: int) -> None:
    """A receipt for a customer."""
    await asyncio.sleep(0.1)
    await _count("receipts_sent")


@job(name="demo.tenant.update_stock")
async def update_stock(item: int) -> None:
    """Count a shelf."""
    await asyncio.sleep(0.1)
    here = current_job()
    await STOCK.at(str(item)).set(here.valkey, Stock(item % 50, here.now()))


# -- by the calendar --------------------------------------------------------------------------------------------------


@job(name="demo.tidy_up")
async def tidy_up() -> None:
    """What every shop does once an hour."""
    await asyncio.sleep(0.05)


CALENDAR = RecurringList([Recurring(tidy_up, cron("0 * * * *", "UTC"))])


def _much_later() -> bool:
    """Whether somebody lets it be tried again long after it was wanted: by then others have mended what was wrong."""
    here = current_job()
    return here.now() - here.record.queued_at >= _MENDED_SECONDS


async def _step_by_step(what: str, items: int, pause_seconds: float) -> None:
    here = current_job()
    for done in range(items):
        await here.progress(what, done, items)
        await asyncio.sleep(pause_seconds * random.uniform(0.5, 1.5))
    await here.progress(what, items, items)


async def _count(event: str, reason: str | None = None) -> None:
    here = current_job()
    await ORDERS.incr(here.valkey, event, reason, at=here.now())
