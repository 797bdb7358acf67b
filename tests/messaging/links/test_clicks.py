"""A click is answered and written down once, wherever its link and its parent are just then."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.messaging.links import Clicked, ClickOutcome, Style, TrackType
from keystead.messaging.links.clicks import UNGUESSED_CHARACTERS, Clicks
from keystead.messaging.links.delayed_clicks import DelayedClicks
from keystead.messaging.links.keys import (
    CLICK_INDEX,
    CODE_WINDOW,
    DELAYED_CLICK,
    FLOOD_WINDOW,
    LINK,
    LINK_CLICKS,
    TO_PERSIST,
    WARNING_WINDOW,
)
from keystead.messaging.links.leaks import Leaks
from keystead.messaging.links.persister import Persister
from keystead.settings import LinksSettings

from .room import Room, on_sqlite

ON_CLICK, POST_LOGIN = TrackType.ON_CLICK, TrackType.POST_LOGIN
STATES = ("buffered", "queued", "persisting", "held by a worker", "persisted", "abandoned", "leaked")
IN_STATE = {
    "buffered": ClickOutcome.BUFFERED, "queued": ClickOutcome.BUFFERED, "persisting": ClickOutcome.DELAYED,
    "held by a worker": ClickOutcome.DELAYED, "persisted": ClickOutcome.DIRECT_TO_DB,
    "abandoned": ClickOutcome.UNKNOWN_LINK, "leaked": ClickOutcome.DIRECT_TO_DB,
}


async def click(room: Room, code: str, parent: str | None = None) -> Clicked:
    if parent is None:
        return await room.links.click(code, visitor_uid="v_device", limited=False)
    return await room.links.click(code, track_type=POST_LOGIN, user_sub="user_ann", parent_uid=parent)


async def bring(room: Room, code: str, state: str) -> None:
    """Bring a link that is in the buffer into a state."""
    if state == "abandoned":
        await room.links.abandon(code)
    elif state == "leaked":
        room.clock.advance(37 * 3600)
        await Leaks(room.valkey, room.clock, room.database).run()
    elif state != "buffered":
        await room.links.persist(code)
        if state != "queued":
            room.clock.advance(1800)
        if state == "persisting":
            await TO_PERSIST.worker().take(room.valkey, 10, now=room.clock.now())
        if state == "held by a worker":
            await TO_PERSIST.worker("one").take(room.valkey, 10, now=room.clock.now())
        if state == "persisted":
            await Persister(room.valkey, room.clock, room.database).run()


async def drain(room: Room) -> None:
    """Whatever is in Valkey ends in the database."""
    await TO_PERSIST.worker("one").leave(room.valkey)
    await room.valkey.delete(TO_PERSIST.alive_key.at("one").name(room.valkey.layout))
    await TO_PERSIST.adopt(room.valkey, now=room.clock.now())
    for _ in range(2):
        room.clock.advance(1800)
        await Persister(room.valkey, room.clock, room.database).run()
        await DelayedClicks(room.valkey, room.clock, room.database).run()


async def check_counts(room: Room) -> None:
    total: dict[str, int] = {}
    for day in range(20514, 20518):
        for event, amount in (await room.counted(day=day)).items():
            total[event] = total.get(event, 0) + (sum(amount.values()) if isinstance(amount, dict) else amount)
    attempts = total.get("click_attempts", 0)
    assert attempts == sum(total.get(event, 0) for event in (
        "clicks_buffered", "clicks_direct_to_db", "clicks_delayed", "clicks_failed"
    ))


@pytest.mark.parametrize("state", STATES)
async def test_a_click_finds_its_link_in_every_state(room: Room, state: str) -> None:
    await room.touch("tch_1")
    link = await room.link()
    await bring(room, link.code, state)
    found = await click(room, link.code)
    assert found.outcome is IN_STATE[state]
    assert (found.target is None) is (state == "abandoned")
    await check_counts(room)
    if state in ("buffered",):
        await room.links.persist(link.code)
    await drain(room)
    assert set(await room.stored_clicks()) == (set() if state == "abandoned" else {found.click_uid})


@on_sqlite
@pytest.mark.parametrize("later", STATES)
@pytest.mark.parametrize("earlier", ["buffered", "persisting", "persisted"])
async def test_a_login_finds_its_click_wherever_both_are_and_a_click_has_one(
    room: Room, earlier: str, later: str
) -> None:
    """The click came in one state of the link, the login in a later one: so they are in different stores."""
    await room.touch("tch_1")
    link = await room.link()
    await bring(room, link.code, earlier)
    parent = await click(room, link.code)
    if earlier == "persisting":
        # The run that held it died; the click stays delayed whatever becomes of the link.
        await TO_PERSIST.worker().recover(room.valkey, now=room.clock.now())
        if later == "leaked":
            later = "persisted"
    if earlier != "persisted":
        await bring(room, link.code, later)
    login = await click(room, link.code, parent.click_uid)
    second = await click(room, link.code, parent.click_uid)
    await check_counts(room)
    if later == "abandoned" and earlier != "persisted":
        assert login.outcome is second.outcome is ClickOutcome.UNKNOWN_LINK
        return
    assert login.outcome in (ClickOutcome.BUFFERED, ClickOutcome.DELAYED, ClickOutcome.DIRECT_TO_DB)
    assert second.outcome is ClickOutcome.PARENT_HAS_CHILD
    assert login.target is not None and second.target is not None
    await room.links.persist(link.code)
    await drain(room)
    rows = await room.stored_clicks()
    assert {uid: row["parent"] for uid, row in rows.items()} == {
        parent.click_uid: None, login.click_uid: parent.click_uid
    }
    assert rows[parent.click_uid]["child_known"]
    assert (await click(room, link.code, parent.click_uid)).outcome is ClickOutcome.PARENT_HAS_CHILD


@on_sqlite
async def test_a_login_right_after_a_click_on_a_new_link_is_kept(wide_room: Room) -> None:
    """The index of clicks was never written, so that no login found its click."""
    room = wide_room
    link = await room.link()
    first = await click(room, link.code)
    index = await CLICK_INDEX.at(first.click_uid).get(room.valkey)
    assert index is not None and (index.code, index.has_child) == (link.code, False)
    login = await click(room, link.code, first.click_uid)
    assert login.outcome is ClickOutcome.BUFFERED
    index = await CLICK_INDEX.at(first.click_uid).get(room.valkey)
    assert index is not None and index.has_child
    assert [each.uid for each in await LINK_CLICKS.at(link.code).range(room.valkey)] == [
        first.click_uid, login.click_uid
    ]


@on_sqlite
async def test_a_click_while_the_link_is_stored_is_whole(wide_room: Room) -> None:
    """It failed inside the script, after half of it had been written."""
    room = wide_room
    link = await room.link()
    await bring(room, link.code, "persisting")
    found = await click(room, link.code)
    held = await DELAYED_CLICK.at(found.click_uid).get(room.valkey)
    assert held is not None and (held.link_code, held.parent_uid, held.visitor_uid) == (link.code, "", "v_device")
    assert not await room.valkey.keys("*childof*")


@on_sqlite
@pytest.mark.parametrize("state", ["buffered", "persisted"])
async def test_a_login_without_its_click_is_refused_and_still_leads_somewhere(room: Room, state: str) -> None:
    await room.touch("tch_1")
    link, other = await room.link(), await room.link()
    await bring(room, link.code, state)
    elsewhere = await click(room, other.code)
    for parent in ("utlc_0123456789", elsewhere.click_uid, "workers", "childof:utlc_0123456789", "x" * 300):
        found = await click(room, link.code, parent)
        assert found.outcome is ClickOutcome.PARENT_NOT_FOUND
        assert found.target is not None
    source = "buffer" if state == "buffered" else "db"
    assert (await room.counted("clicks_failed"))["clicks_failed"] == {f"post_login:home:{source}:parent_not_found": 5}
    await check_counts(room)


@on_sqlite
@pytest.mark.parametrize("code", ["nothing", "clicks:x", "ünknown", "x" * 256, ""])
async def test_a_code_that_leads_nowhere_is_counted(room: Room, code: str) -> None:
    found = await click(room, code)
    assert (found.outcome, found.target) == (ClickOutcome.UNKNOWN_LINK, None)
    assert await room.links.resolve(code) is None
    assert await room.counted() == {"click_attempts": 1, "clicks_failed": {"dne": 1}}


@pytest.mark.parametrize("state", ["buffered", "persisted"])
async def test_only_the_first_click_within_three_seconds_is_written_down(room: Room, state: str) -> None:
    await room.touch("tch_1")
    link = await room.link()
    await bring(room, link.code, state)
    before = (await room.counted()).get("click_attempts", 0)
    found = [await room.links.click(link.code) for _ in range(3)]
    assert [each.outcome for each in found[1:]] == [ClickOutcome.TOO_SOON] * 2
    assert all(each.target is not None for each in found)
    source = "buffer" if state == "buffered" else "db"
    counted = await room.counted("click_attempts", "clicks_failed")
    assert counted == {"click_attempts": before + 3, "clicks_failed": {f"on_click:home:{source}:too_soon": 2}}
    left = await CODE_WINDOW.at(link.code).remaining_seconds(room.valkey)
    assert left is None or left <= 3
    await CODE_WINDOW.at(link.code).delete(room.valkey)
    assert (await room.links.click(link.code)).outcome is IN_STATE[state]


@on_sqlite
async def test_a_flood_of_guesses_is_refused_with_answers_that_tell_nothing(wide_room: Room) -> None:
    room = wide_room
    link = await room.link(page="share_journey", style=Style.SHORT)
    chances = iter([0.5, 0.05, 0.5])
    clicks = Clicks(room.valkey, room.database, room.clock, settings=LinksSettings(flood_clicks=4),
                    chance=lambda: next(chances))

    async def guess(code: str, **who: str) -> Clicked:
        return await clicks.click(code, limited=True, **who)

    for code in ("a", "b", "c"):
        assert (await guess(code)).outcome is ClickOutcome.UNKNOWN_LINK
    refused, fake, again = [await guess(link.code) for _ in range(3)]
    assert {each.outcome for each in (refused, fake, again)} == {ClickOutcome.FLOOD}
    assert refused.target is None and fake.target is not None and fake.target.page_identifier == "home"
    assert await WARNING_WINDOW.at().get(room.valkey) == 3
    known = await guess(link.code, user_sub="user_ann")
    assert known.outcome is ClickOutcome.BUFFERED
    assert known.target is not None and known.target.page_identifier == "share_journey"
    await FLOOD_WINDOW.at().delete(room.valkey)
    assert (await guess(link.code)).outcome is ClickOutcome.TOO_SOON
    assert await LINK_CLICKS.at(link.code).length(room.valkey) == 1


@on_sqlite
@pytest.mark.parametrize("style", [Style.NORMAL, Style.LONG])
async def test_a_flood_hides_no_link_whose_code_nobody_guesses(room: Room, style: Style) -> None:
    """Or whoever makes a flood would keep everybody from their links, and from unsubscribing."""
    link = await room.link(page="unsubscribe", style=style)
    assert len(link.code) >= UNGUESSED_CHARACTERS
    clicks = Clicks(room.valkey, room.database, room.clock, settings=LinksSettings(flood_clicks=2))
    for _ in range(4):
        await clicks.click("Qm3x", limited=True)
    assert (await clicks.click("Qm3x", limited=True)).outcome is ClickOutcome.FLOOD
    found = await clicks.click(link.code, limited=True)
    assert found.outcome is ClickOutcome.BUFFERED and found.target is not None
    assert await FLOOD_WINDOW.at().get(room.valkey) == 6, "it is counted all the same"


async def test_a_click_on_a_buffered_link_is_one_round_trip(
    valkey: Valkey, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = await room.link()
    await click(room, link.code)
    calls = 0

    def counting(real: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        def call(*args: object, **named: object) -> Awaitable[object]:
            nonlocal calls
            calls += 1
            return real(*args, **named)

        return call

    for name in ("run", "run_block", "run_script"):
        monkeypatch.setattr(valkey, name, counting(getattr(valkey, name)))
    found = await room.links.click(link.code, visitor_uid="v_device")
    assert (found.outcome, calls) == (ClickOutcome.BUFFERED, 1)


@on_sqlite
@pytest.mark.parametrize(("field", "value"), [("page_extra", "{nonsense"), ("page_extra", "[]"), ("uid", b"\xff")])
async def test_a_link_that_cannot_be_read_leads_nowhere(room: Room, field: str, value: str | bytes) -> None:
    link = await room.link()
    await room.valkey.hset(LINK.at(link.code).name(room.valkey.layout), field, value)
    assert (await click(room, link.code)).target is None


async def test_a_login_after_what_can_be_no_click_is_one_without_its_click(room: Room) -> None:
    """Nothing of it reaches the database, which would not take every text."""
    link = await room.link()
    await room.touch("tch_1")
    await bring(room, link.code, "persisted")
    found = await click(room, link.code, "\0")
    assert found.outcome is ClickOutcome.PARENT_NOT_FOUND and found.target is not None


async def test_a_login_needs_a_click_before_it(room: Room) -> None:
    with pytest.raises(DeclarationError):
        await room.links.click("x", track_type=POST_LOGIN)
    with pytest.raises(DeclarationError):
        await room.links.click("x", parent_uid="utlc_0123456789")


@on_sqlite
async def test_counts_of_a_link_belong_to_the_day_it_was_made(wide_room: Room) -> None:
    room = wide_room
    link = await room.link()
    room.clock.advance(86400)
    await click(room, link.code)
    assert await room.counted() == {
        "created": 1, "click_attempts": 1, "clicks_buffered": {"on_click:home:vis=True:user=False": 1}
    }
    await click(room, "nothing")
    assert await room.counted(day=20515) == {"click_attempts": 1, "clicks_failed": {"dne": 1}}


async def test_clicks_beside_running_jobs_are_each_written_down_once(room: Room) -> None:
    """People click and log in while links are stored; the clock moves on, jobs run beside each other."""
    await room.touch("tch_1")
    links = [await room.link() for _ in range(8)]
    made: list[Clicked] = []

    async def clicking(place: int) -> None:
        for turn in range(6):
            code = links[(place + turn) % len(links)].code
            first = await click(room, code)
            login = await click(room, code, first.click_uid)
            assert first.target is not None and login.target is not None, "it resolves at every moment"
            made.extend((first, login))

    async def storing() -> None:
        for link in links:
            await room.links.persist(link.code)
        for _ in range(6):
            room.clock.advance(600)
            await asyncio.gather(
                Persister(room.valkey, room.clock, room.database).run(),
                DelayedClicks(room.valkey, room.clock, room.database).run(),
            )

    await asyncio.gather(storing(), *(clicking(place) for place in range(4)))
    await drain(room)
    tracked = {each.click_uid for each in made if each.outcome not in (
        ClickOutcome.PARENT_HAS_CHILD, ClickOutcome.PARENT_NOT_FOUND
    )}
    assert tracked == {each.click_uid for each in made}
    assert set(await room.stored_clicks()) == tracked
    await check_counts(room)
