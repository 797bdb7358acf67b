"""Clicks and links are written down once, and the counts are those of a plain account."""

import asyncio
import random
from collections import Counter

import pytest
from sqlalchemy import func, select, update

from keystead.errors import Invalid
from keystead.members import Recorded, Utm
from keystead.members.attribution import click_uid
from keystead.members.conversion import Click
from keystead.members.models import VisitorClick, VisitorLink
from keystead.members.stats import CONVERSION
from keystead.members.tables import UTMS, VISITOR_USERS, VISITOR_UTMS, VISITORS

from .campaigns import Account
from .room import NOON, TODAY, Room, on_sqlite

DAY = 86400.0
day_of = CONVERSION.day_of


def as_click(entry: VisitorClick) -> Click:
    utm = Utm.of_click(entry)
    return Click(entry.clicked_at, click_uid(entry, utm), utm.canonical)


@on_sqlite
async def test_a_later_link_moves_the_last_click(wide_room: Room) -> None:
    """Day 0 K clicks A; day 1 V clicks B; day 2 somebody joins elsewhere; day 3 K is theirs; day 4 V is theirs."""
    room, a, b = wide_room, "utm_source=A", "utm_source=B"
    k, v = await room.device(), await room.device()
    sub = await room.person("user_x", NOON + 2 * DAY)
    await room.attribution.record_clicks([VisitorClick(k, "A", NOON)])
    await room.attribution.record_clicks([VisitorClick(v, "B", NOON + DAY)])
    assert await room.attribution.record_links([VisitorLink(k, sub, NOON + 3 * DAY)]) == Recorded(1, 0, 0)
    assert await room.attribution.record_links([VisitorLink(v, sub, NOON + 4 * DAY)]) == Recorded(1, 0, 0)
    assert await room.attribution.record_links([VisitorLink(v, sub, NOON + 5 * DAY)]) == Recorded(0, 1, 0)
    await room.settle(times=2)
    assert await room.conversions(range(TODAY, TODAY + 7)) == {
        (TODAY, a, "visits"): 1, (TODAY + 1, b, "visits"): 1,
        (TODAY + 3, a, "holdover_last_click_signups"): 1, (TODAY + 3, a, "holdover_any_click_signups"): 1,
        (TODAY + 4, a, "holdover_last_click_signups"): -1, (TODAY + 4, b, "holdover_last_click_signups"): 1,
        (TODAY + 4, b, "holdover_any_click_signups"): 1,
    }
    async with room.database.reading() as sql:
        assert (await sql.execute(select(VISITOR_USERS.c.last_seen_at).order_by(VISITOR_USERS.c.id))).all() == [
            (NOON + 3 * DAY,), (NOON + 5 * DAY,)]
        assert set(await sql.scalars(select(VISITORS.c.version))) == {2}, "a click and a link each"


async def test_devices_and_people_that_do_not_exist_stop_nobody(room: Room) -> None:
    device = await room.device()
    await room.person("user_x", NOON)
    clicks = [VisitorClick(uid, "A", NOON) for uid in ("v_nobody", device)]
    assert await room.attribution.record_clicks(clicks) == Recorded(1, 0, 1)
    pairs = [("v_nobody", "user_x"), (device, "user_nobody"), (device, "user_x"), (device, "user_x")]
    links = [VisitorLink(uid, sub, NOON) for uid, sub in pairs]
    assert await room.attribution.record_links(links) == Recorded(1, 1, 2)
    with pytest.raises(Invalid, match="utm_source"):
        await room.attribution.record_clicks([VisitorClick(device, "B", NOON), VisitorClick(device, " ", NOON)])
    async with room.database.reading() as sql:
        assert await sql.scalar(select(func.count()).select_from(VISITOR_UTMS)) == 1


async def test_verified_campaigns_are_told_apart(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONVERSION, "most_rows", 1)
    devices = [await room.device() for _ in range(3)]
    for round_ in range(2):
        await room.attribution.record_clicks([
            VisitorClick(device, name, NOON + round_ * DAY) for device, name in zip(devices, "abc", strict=True)])
        await room.settle()
        async with room.database.transaction() as sql:
            await sql.execute(update(UTMS).where(UTMS.c.utm_source != "a").values(verified=True))
    found = await room.conversions([TODAY, TODAY + 1])
    assert {(day, utm): amount for (day, utm, _), amount in found.items() if utm == "utm_source=other"} == {
        (TODAY, "utm_source=other"): 2}
    assert {utm for day, utm, _ in found if day == TODAY + 1} == {"utm_source=a", "utm_source=b", "utm_source=c"}


async def test_counts_are_those_of_a_plain_account(room: Room) -> None:
    """Several per transaction, entries that come again, in no order; jobs that run twice."""
    for seed in range(4):
        rng = random.Random(seed)
        await room.valkey.flushall()
        account = Account()
        devices = [await room.device() for _ in range(4)]
        for number in range(3):
            sub = await room.person(f"user_{seed}_{number}", NOON + rng.uniform(0, 5) * DAY)
            account.joined[sub] = (await room.users.get(sub)).created_at
        past: list[VisitorClick | VisitorLink] = []
        for _ in range(10):
            at = NOON + rng.uniform(0, 6) * DAY
            some = rng.sample(past, min(len(past), rng.randint(0, 2)))
            if rng.random() < 0.6:
                clicks = [one for one in some if isinstance(one, VisitorClick)] + [
                    VisitorClick(rng.choice(devices), rng.choice("ABC"), at + rng.uniform(-1, 1) * DAY)
                    for _ in range(rng.randint(1, 4))]
                rng.shuffle(clicks)
                recorded = await room.attribution.record_clicks(clicks)
                new = [one for one in clicks if one not in past]
                for one in new:
                    account.click(one.visitor_uid, as_click(one), day_of)
            else:
                links = [one for one in some if isinstance(one, VisitorLink)] + [
                    VisitorLink(rng.choice(devices), rng.choice(list(account.joined)), at + rng.uniform(-1, 1) * DAY)
                    for _ in range(rng.randint(1, 3))]
                recorded = await room.attribution.record_links(links)
                new = []
                for one in links:
                    if (one.user_sub, one.visitor_uid) not in account.links:
                        account.link(one.user_sub, one.visitor_uid, one.seen_at, day_of)
                        new.append(one)
            assert recorded.inserted == len(new) and recorded.lost == 0
            past += new
        await room.settle(times=2)
        assert await room.conversions(range(TODAY - 3, TODAY + 10)) == account.nonzero(), f"seed {seed}"
        account.check_sums()


async def test_those_who_write_at_once_never_give_the_last_click_twice(room: Room) -> None:
    rng = random.Random(5)
    account = Account()
    devices = [await room.device() for _ in range(6)]
    subs = [await room.person(f"user_{number}", NOON + DAY) for number in range(3)]
    account.joined = dict.fromkeys(subs, NOON + DAY)
    clicks = [VisitorClick(rng.choice(devices), rng.choice("ABC"), NOON + number) for number in range(40)]
    pairs = [(device, sub) for device in devices for sub in subs]
    links = [VisitorLink(device, sub, NOON + 2 * DAY) for device, sub in pairs]
    rng.shuffle(links)
    work = [room.attribution.record_clicks(clicks[first : first + 4]) for first in range(0, 40, 4)]
    work += [room.attribution.record_links(links[first : first + 3]) for first in range(0, 18, 3)]
    rng.shuffle(work)
    recorded = await asyncio.gather(*work)
    assert sum(one.inserted for one in recorded) == 58
    await room.settle()
    for click in clicks:
        account.click(click.visitor_uid, as_click(click), day_of)
    account.links = {(sub, device) for device, sub in pairs}
    expected = Counter((click.utm, name) for _, _, name, click in account.credit())
    sums: Counter[tuple[str, str]] = Counter()
    for (_, utm, name), amount in (await room.conversions([TODAY, TODAY + 2])).items():
        if name != "visits":
            sums[utm, name.removeprefix("holdover_")] += amount
    assert {place: amount for place, amount in sums.items() if amount} == dict(expected)
    async with room.database.reading() as sql:
        assert await sql.scalar(select(func.sum(VISITORS.c.version))) == 58
