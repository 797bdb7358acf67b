"""Days as pure functions of pages need them."""

from keystead.keys import Keyspace
from keystead.patterns import Cohorts, DailyFamily, DaySet, DimensionViews, RowsByDay
from keystead.stats import Series
from keystead.stats.charts_cohorts import CohortGrid

SHOP = Keyspace("shop", tag="shop")
ORDERS = DailyFamily(
    SHOP, "orders", counts=("placed", "paid"), breakdowns={"failed": "reason"}, held_days=2, zone="Europe/Berlin",
    table="order_stats", identities=["paid + failed = placed"], purpose="orders, and what became of them",
)
ACTIVE = DaySet(SHOP, "stats:active", zone="Europe/Berlin", purpose="who was there")
MONTHLY = DaySet(SHOP, "stats:active_monthly", zone="Europe/Berlin", monthly=True, purpose="who was there, by month")
OWN_DAYS = DailyFamily(SHOP, "calls", counts=("made",), held_days=3, zone=None, purpose="calls")
BACK = Cohorts(SHOP, "stats:back", zone="Europe/Berlin", purpose="who came back")
VIEWS = DimensionViews(SHOP, "stats:views", zone="Europe/Berlin", purpose="what was viewed")
CLICKS = RowsByDay(SHOP, zone="Europe/Berlin", purpose="clicks", fields=("visits", "signups"),
                   rows="stats:clicks:{unix_date}:utms", counts="stats:clicks:{utm}:{unix_date}:counts",
                   earliest="stats:clicks:earliest", name="clicks")
LABELS = ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"]
START = 20513


def orders(placed=(5, 6, 7, 2), paid=(4, 6, 7, 1), failed=(1, 0, 0, 0), *, live=1):
    counts = {"placed": list(placed), "paid": list(paid), "failed": list(failed)}
    reasons = {"card refused": list(failed)} if any(failed) else {}
    end = START + len(placed)
    return Series("orders", "Europe/Berlin", START, end, LABELS[: len(placed)], counts, {"failed": reasons}, end - live)


def grid(*, by="week"):
    """Three rows: for the newest nothing is over, on the oldest nobody joined."""
    return CohortGrid("back", "Europe/Berlin", by, START, START + 21, ["2026-03-01", "2026-03-08", "2026-03-15"],
                      (0, 7), (0, 40, 10), ((0, 0), (30, 10), (None, None)), (0, 2, 0), START + 14)
