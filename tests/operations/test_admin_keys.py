"""Keys of programs."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import select

from keystead.edge import PageRequest, make_cursor
from keystead.errors import Invalid, NotFound
from keystead.operations import AdminKeys
from keystead.operations.tables import ADMIN_KEYS
from keystead.store import Database
from keystead.testing.clock import MovableClock


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock(now=1_800_000_000.0)


async def test_a_key_is_found_by_its_text_alone(database: Database, clock: MovableClock) -> None:
    keys = await AdminKeys.open(database, clock)
    made = await keys.create("shop", ["jobs", "users"])
    found = keys.find(made.text)
    assert found is not None and (found.id, found.name, found.scopes) == (made.id, "shop", frozenset({"jobs", "users"}))
    other = await keys.create("other", ["*"])
    swapped = f"ksk_{made.id}_{other.text.rpartition('_')[2]}"
    for wrong in ("", "ksk_", "ksk_x", made.text[:-1], made.text + "x", swapped, f"ksk_{made.id}_", made.text[4:],
                  f"ksk_{made.id}", "ksk_" + "é" * 90, f"ksk_{made.id}_\udcff"):
        assert keys.find(wrong) is None, wrong


async def test_only_a_hash_of_the_secret_is_kept_and_nothing_shows_it(database: Database, clock, capfd) -> None:
    keys = await AdminKeys.open(database, clock)
    made = await keys.create("shop", ["jobs"])
    secret = made.text.removeprefix(f"ksk_{made.id}_")
    async with database.reading() as sql:
        row = (await sql.execute(select(ADMIN_KEYS))).one()
    assert len(secret) >= 43 and not any(secret in str(column) for column in row)
    keys.find(made.text)
    await keys.refresh()
    assert secret not in repr(made) + str(await keys.list()) + "".join(capfd.readouterr())


async def test_a_revoked_key_ends_here_at_once_and_elsewhere_with_the_next_look(database: Database, clock) -> None:
    here, elsewhere = await AdminKeys.open(database, clock), await AdminKeys.open(database, clock)
    made = await here.create("shop", ["jobs"])
    assert elsewhere.find(made.text) is None
    await elsewhere.refresh()
    assert elsewhere.find(made.text) is not None
    clock.advance(5)
    assert (await here.revoke(made.id)).revoked_at == clock.now()
    assert here.find(made.text) is None and not here.works(made.id) and elsewhere.works(made.id)
    await elsewhere.refresh()
    assert elsewhere.find(made.text) is None and not elsewhere.works(made.id)
    again = await here.revoke(made.id)
    assert again.revoked_at == clock.now() and again.state(clock.now()) == "revoked"
    with pytest.raises(NotFound):
        await here.revoke("nobody")


async def test_a_process_that_runs_learns_by_itself(database: Database, clock) -> None:
    here, elsewhere = await AdminKeys.open(database, clock), await AdminKeys.open(database, clock)
    looking = asyncio.create_task(elsewhere.run())
    try:
        made = await here.create("shop", ["jobs"])
        async with asyncio.timeout(30):
            while elsewhere.find(made.text) is None:
                await asyncio.sleep(0.05)
            await here.revoke(made.id)
            while elsewhere.find(made.text) is not None:
                await asyncio.sleep(0.05)
    finally:
        looking.cancel()


async def test_a_key_ends_by_itself(database: Database, clock) -> None:
    keys = await AdminKeys.open(database, clock)
    made = await keys.create("shop", ["jobs"], lasts_seconds=60)
    assert keys.find(made.text) is not None
    clock.advance(60)
    assert keys.find(made.text) is None
    assert [each.state(clock.now()) for each in await keys.list()] == ["expired"]


async def test_keys_that_ended_are_not_read_again_and_again(database: Database, clock) -> None:
    keys = await AdminKeys.open(database, clock)
    made = [await keys.create("shop", ["jobs"], lasts_seconds=60) for _ in range(3)]
    lasting, longer = await keys.create("shop", ["jobs"]), await keys.create("shop", ["jobs"], lasts_seconds=61)
    clock.advance(60)
    await keys.refresh()
    assert set(keys._known) == {lasting.id, longer.id}
    assert keys.find(lasting.text) is not None and keys.find(longer.text) is not None
    assert not any(keys.find(each.text) or keys.works(each.id) for each in made)
    assert len(await keys.list()) == 5


async def test_when_it_was_used_is_written_down_about_once_a_minute(database: Database, clock) -> None:
    keys = await AdminKeys.open(database, clock)
    made = await keys.create("shop", ["jobs"])
    keys.find(made.text)
    await keys.refresh()
    assert [each.last_used_at for each in await keys.list()] == [clock.now()]
    first = clock.now()
    await keys.refresh()
    clock.advance(30)
    keys.find(made.text)
    await keys.refresh()
    assert [each.last_used_at for each in await keys.list()] == [first]
    clock.advance(31)
    keys.find(made.text)
    await keys.refresh()
    assert [each.last_used_at for each in await keys.list()] == [clock.now()]


@pytest.mark.parametrize(("name", "scopes", "seconds"), [
    ("", ["jobs"], None), (" ", ["jobs"], None), ("x" * 101, ["jobs"], None), ("a\nb", ["jobs"], None),
    ("shop", [], None), ("shop", ["everything"], None), ("shop", ["jobs"], 0), ("shop", ["jobs"], -1),
    ("shop", ["jobs"], float("nan")), ("shop", ["jobs"], 1e12),
])
async def test_nonsense_is_refused(database: Database, clock, name, scopes, seconds) -> None:
    with pytest.raises(Invalid):
        await AdminKeys(database, clock).create(name, scopes, lasts_seconds=seconds)


async def test_rows_read_before_a_change_do_not_undo_it(database: Database, clock, monkeypatch) -> None:
    """A refresh that is under way while a key is made and another is revoked."""
    keys = await AdminKeys.open(database, clock)
    old = await keys.create("old", ["jobs"])
    plain, made = Database.reading, []

    @asynccontextmanager
    async def slow(self):
        async with plain(self) as sql:
            yield sql
        if not made:  # the rows are read, and not yet known
            made.append(None)
            await keys.revoke(old.id)
            made.append(await keys.create("new", ["jobs"]))

    monkeypatch.setattr(Database, "reading", slow)
    await keys.refresh()
    assert keys.find(old.text) is None, "a key that was taken back works no more"
    assert keys.find(made[1].text) is not None


async def test_a_key_made_elsewhere_is_found_when_it_first_comes_by_one_look_for_all_who_ask(
    database: Database, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = await AdminKeys.open(database, clock), await AdminKeys.open(database, clock)
    made = await here.create("shop", ["jobs"])
    looks = 0
    refresh = elsewhere.refresh

    async def counted() -> None:
        nonlocal looks
        looks += 1
        await refresh()

    monkeypatch.setattr(elsewhere, "refresh", counted)
    await asyncio.gather(*(elsewhere.look_again() for _ in range(50)))
    assert elsewhere.find(made.text) is not None and looks == 1


async def test_keys_come_page_by_page_the_newest_first(database: Database, clock: MovableClock) -> None:
    keys = await AdminKeys.open(database, clock)
    for number in range(7):
        await keys.create(f"shop {number}", ["jobs"])
        clock.advance(number % 2)  # some in the same moment
    seen, cursor = [], None
    while True:
        page = await keys.page(PageRequest(3, cursor))
        seen += page.items
        await keys.create("newer", ["jobs"])
        if (cursor := page.next_cursor) is None:
            break
        assert len(page.items) == 3
    assert seen == [key for key in await keys.list() if key.name != "newer"]
    for wrong in (7, ["x", 7], [1e308, "a", "b"], [1.0, "a\0"]):
        with pytest.raises(Invalid):
            await keys.page(PageRequest(3, make_cursor(wrong)))


async def test_one_key_is_looked_up_whether_it_works_or_not(database: Database, clock: MovableClock) -> None:
    keys = await AdminKeys.open(database, clock)
    made = await keys.create("shop", ["jobs"])
    assert await keys.get(made.id) == made.key
    revoked = await keys.revoke(made.id)
    assert await keys.get(made.id) == revoked
    with pytest.raises(NotFound):
        await keys.get("nobody")
