"""Finding and erasing what the server holds of one person."""

import json

import pytest

from keystead.app import App
from keystead.errors import Conflict
from keystead.messaging.touches.keys import DAY_COUNT, ERASED
from keystead.settings import load_settings
from keystead.web.person_erasure import by_pattern, erase_person, find_keys, identifiers

EMAIL, NUMBER = "ann@example.com", "+14155550123"


@pytest.fixture
async def running(valkey, valkey_server, tmp_path):
    app = App(load_settings({
        "valkey.url": valkey_server.url, "store.url": f"sqlite:///{tmp_path}/people.sqlite",
        "store.files_url": f"file://{tmp_path}/files",
    }, environment={}))
    app.data_directory = tmp_path
    async with app.running() as found:
        yield found


async def joined(running):
    ann = await running.users.ensure("test", "ann", given_name="Ann")
    await running.switchboard.contacts.add_email(ann.sub, EMAIL, verified=True)
    await running.switchboard.contacts.add_phone(ann.sub, NUMBER, verified=True)
    await DAY_COUNT.at(ann.sub, "email", 20_000).increment(running.valkey)
    return ann.sub


async def test_a_search_names_patterns_and_changes_nothing(running):
    sub = await joined(running)
    assert await identifiers(running, sub) == (sub, EMAIL, NUMBER)
    found = await find_keys(running, sub)
    held = {each.pattern: each for each in by_pattern(found)}
    assert held[DAY_COUNT.pattern].keys == 1 and held[DAY_COUNT.pattern].parts == 0
    assert not found.really and await DAY_COUNT.at(sub, "email", 20_000).get(running.valkey) == 1


async def test_nothing_is_taken_while_the_job_that_owns_the_rows_has_not_run(running):
    sub = await joined(running)
    with pytest.raises(Conflict, match="nobody runs"):
        await erase_person(running, sub, rows_seconds=0.3)
    assert await DAY_COUNT.at(sub, "email", 20_000).get(running.valkey) == 1
    assert await identifiers(running, sub) == (sub,), "addresses go at once"


async def test_who_has_no_rows_any_more_is_erased_from_keys_with_a_receipt(running, tmp_path):
    sub = await joined(running)
    await running.users.remove(sub)
    done = await erase_person(running, sub)
    assert done.erasure.really and await DAY_COUNT.at(sub, "email", 20_000).get(running.valkey) is None
    kept = json.loads(done.file.read_text())
    assert kept == done.receipt and done.file.parent == tmp_path / "receipts"
    assert sub not in done.file.read_text() and EMAIL not in done.file.read_text()
    assert await ERASED.at(sub).is_raised(running.valkey), "nothing under way is tried again"
    left = {each.pattern for each in by_pattern(await find_keys(running, sub))}
    assert left == {ERASED.pattern}
