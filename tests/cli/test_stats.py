"""``keystead stats``: what is counted, drawn in a terminal."""

import asyncio
import csv
import io
import json
import os
import pty
import subprocess
import sys
import time
from zoneinfo import ZoneInfo

import pytest

from keystead import dates
from keystead.cli import entry
from keystead.cli.stats_shown import bars
from keystead.engine import connect

from .command import Outcome, environment

PROGRAM = '''
"""What a user's program counts."""

from keystead.keys import Keyspace
from keystead.patterns import Cohorts, DailyFamily, DaySet, DimensionViews, RowsByDay

SHOP = Keyspace("shop", tag="shop")
SAYS = {"writers": ("shop",), "readers": ("shop",)}
ORDERS = DailyFamily(SHOP, "shop_orders", counts=("placed",), breakdowns={"refused": "reason"}, held_days=2, zone="UTC",
                     table="shop_order_stats", purpose="orders of the shop", **SAYS)
BUYERS = DaySet(SHOP, "stats:shop_buyers", zone="UTC", monthly=True, table="shop_buyer_stats", purpose="who bought",
                **SAYS)
BACK = Cohorts(SHOP, "stats:shop_back", zone="UTC", table="shop_back_stats", purpose="who came back", **SAYS)
SEEN = DimensionViews(SHOP, "stats:shop_seen", dimension="shelf", zone="UTC", table="shop_seen_stats",
                      purpose="what was looked at", **SAYS)
CAME = RowsByDay(SHOP, rows="stats:shop_from:daily:{unix_date}:utms", earliest="stats:shop_from:daily:earliest",
                 counts="stats:shop_from:daily:{utm}:{unix_date}:counts", fields=("visits",), zone="UTC",
                 table="shop_from_stats", purpose="where they came from", **SAYS)
'''
DECLARED: dict[str, object] = {}
exec(PROGRAM, DECLARED)
ORDERS, BUYERS, BACK, SEEN, CAME = (DECLARED[name] for name in ("ORDERS", "BUYERS", "BACK", "SEEN", "CAME"))


@pytest.fixture
def program(tmp_path, monkeypatch, server):
    """A directory with a program that counts, and a database of its own."""
    (tmp_path / "shop_counts.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEYSTEAD_STORE_URL", f"sqlite:///{tmp_path / 'shop.sqlite'}")
    monkeypatch.setenv("KEYSTEAD_VALKEY_URL", server.url)
    monkeypatch.delitem(sys.modules, "shop_counts", raising=False)
    return tmp_path


@pytest.fixture
def stats(program, capsys):
    """Run ``keystead stats ARGUMENTS`` in this process."""

    def run(*arguments: str) -> Outcome:
        code = entry.run(["stats", *arguments, "--program", "shop_counts"])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return run


@pytest.fixture
def today(server) -> int:
    """Counts something of every kind; the day on which that was."""

    async def count(day: int) -> None:
        valkey = await connect(server.url)
        try:
            tally = ORDERS.tally()
            for ago in range(10):
                tally.incr("placed", amount=10 - ago, unix_date=day - ago)
            tally.incr("refused", "price", 3, unix_date=day - 1).incr("refused", "\x1b[31m=1+1", unix_date=day - 1)
            await tally.store(valkey)
            month = dates.date_to_unix_month(dates.unix_date_to_date(dates.UnixDate(day)))
            await BUYERS.add(valkey, "a", "b", day=month)
            await BACK.join(valkey, "a", day=day - 20)
            await BACK.active(valkey, "a", joined_day=day - 20, day=day - 10)
            await SEEN.viewed(valkey, "tea", "a", day=day)
            await CAME.add(valkey, [("utm_source=ad", "visits", 4)], day=day)
        finally:
            await valkey.aclose()

    day = int(dates.unix_date(time.time(), ZoneInfo("UTC")))
    asyncio.run(count(day))
    return day


def label(day: int) -> str:
    return dates.unix_date_to_date(dates.UnixDate(day)).isoformat()


def test_everything_that_is_counted_is_listed(stats):
    shown = stats("list")
    assert shown.code == 0 and "orders of the shop" in shown.out and "sms_events" in shown.out
    listed = {one["name"]: one for one in json.loads(stats("list", "--format", "json").out)}
    assert listed["shop_orders"]["breakdowns"] == {"refused": "reason"}
    assert listed["sms_events"]["zone"] == "America/Los_Angeles"


def test_a_family_is_drawn_with_its_days(stats, today):
    shown = stats("show", "shop_orders", "--from", label(today - 9), "--to", label(today))
    assert shown.code == 0, shown.err
    rows = {line.split()[0]: line for line in shown.out.splitlines() if line.strip()}
    assert rows["placed"].split()[1:4] == ["55", "10", "10"]
    assert "zone  UTC" in shown.out and f"{label(today - 9)} to {label(today)}" in shown.out
    # Nothing was rotated yet, so every day may still change.
    assert f"still live  {label(today - 9)} to {label(today)}" in shown.out
    assert "▂" in rows["placed"] and rows["placed"].rstrip().endswith("█")


def test_values_of_an_event_are_drawn_and_cannot_steer_the_terminal(stats, today):
    shown = stats("show", "shop_orders", "--from", label(today - 9), "--breakdown", "refused")
    assert "price" in shown.out and "\\x1b[31m=1+1" in shown.out and "\x1b" not in shown.out
    assert "placed" not in shown.out and "reason" in shown.out


def test_days_are_written_for_programs(stats, today):
    asked = ("shop_orders", "--from", label(today - 2), "--to", label(today))
    series = json.loads(stats("show", *asked, "--event", "placed", "--format", "json").out)
    assert series["counts"] == {"placed": [8, 9, 10]} and series["zone"] == "UTC"
    rows = list(csv.DictReader(io.StringIO(stats("show", *asked, "--format", "csv").out)))
    assert [row["date"] for row in rows] == series["labels"]
    assert [row["refused[price]"] for row in rows] == ["0", "3", "0"]


def test_every_kind_is_shown(stats, today):
    day = ("--from", label(today), "--to", label(today))
    assert stats("show", "shop_buyers", *day, "--format", "csv").out.splitlines()[1].endswith(",1,2,0")
    back = stats("show", "shop_back").out
    assert "joined from" in back and "100%" in back
    seen = stats("show", "shop_seen", *day).out
    assert next(line for line in seen.splitlines() if "tea" in line).split()[:4] == ["tea", "1", "1", "1"]
    came = stats("show", "shop_from", *day).out
    assert "utm_source=ad" in came and "still live" in came


def test_what_cannot_be_shown_is_refused_in_one_line(stats, today):
    assert "did you mean shop_orders?" in stats("show", "shop_order").refused()
    assert "has no event 'x'" in stats("show", "shop_orders", "--event", "x").refused()
    assert "placed has no breakdown" in stats("show", "shop_orders", "--breakdown", "placed").refused()
    assert "has no events" in stats("show", "shop_buyers", "--event", "x").refused()
    assert "is no date" in stats("show", "shop_orders", "--from", "monday").refused()
    assert "--to needs --from" in stats("show", "shop_orders", "--to", label(today)).refused()
    assert "is the newest" in stats("show", "shop_orders", "--from", label(today), "--to", label(today + 5)).refused()


def test_rotation_runs_on_demand_and_tells_what_it_did(stats, today):
    report = json.loads(stats("rotate", "shop_orders", "--format", "json").out)
    # Days that are two days old are due at two in the morning, older ones at once.
    assert report["families"]["shop_orders"]["days"] in (7, 8, 9) and report["problems"] == []
    again = stats("rotate", "shop_orders")
    assert again.code == 0 and "days and 0 late counts were carried into the database" in again.err
    series = json.loads(stats("show", "shop_orders", "--from", label(today - 9), "--to", label(today), "--format",
                              "json").out)
    assert series["counts"]["placed"] == list(range(1, 11)) and len(series["live"]) in (1, 2, 3)
    assert "did you mean" in stats("rotate", "shop_order").refused()


def test_bars_show_what_is_small_and_where_live_days_begin():
    assert bars([0, 1, 50, 100], 3) == " ▁▄|█"
    assert bars([0, 0], 2) == "  "
    assert len(bars([1] * 365, 364)) <= 62
    assert bars([0] * 100 + [5] * 20, 200, most=60) == " " * 50 + "█" * 10


def test_a_terminal_gets_a_table_that_fits(program, today):
    """Drawn by a process of its own on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "keystead.cli", "stats", "show", "shop_orders", "--days", "30", "--program",
               "shop_counts"]
    where = {name: os.environ[name] for name in ("KEYSTEAD_STORE_URL", "KEYSTEAD_VALKEY_URL")}
    env = environment(**where, COLUMNS="80", PYTHONUTF8="1", NO_COLOR="1")
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=env)
    os.close(theirs)
    out = b""
    while True:
        try:
            some = os.read(ours, 65536)
        except OSError:
            break
        if not some:
            break
        out += some
    os.close(ours)
    assert process.wait(timeout=60) == 0
    lines = out.decode().replace("\r", "").splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert any(line.lstrip().startswith("placed") and "█" in line for line in lines)


@pytest.mark.parametrize("arguments", [("show", "sms_send"), ("rotate",)])
def test_without_sql_it_says_what_to_install(arguments, tmp_path):
    program = "import sys; sys.modules['sqlalchemy'] = None\nfrom keystead.cli import main\n"
    program += f"main({['stats', *arguments]})"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "keystead[sql]" in done.stderr, done.stderr
