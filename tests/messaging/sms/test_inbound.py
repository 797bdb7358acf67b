"""Texts of people: STOP and START by whole words, and nothing else changes anything."""

from xml.etree import ElementTree

import pytest
from sqlalchemy import insert, select

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.ids import UserSub
from keystead.jobs import JobBook
from keystead.members import Contacts, Suppression
from keystead.members.contact_tables import SUPPRESSED_PHONE_NUMBERS
from keystead.members.tables import USERS
from keystead.messaging.sms.inbound import Inbound, Wish, reply_xml, wish_of
from keystead.messaging.sms.suppressed import Suppressed
from keystead.store import Database, SqlOutbox
from keystead.testing.clock import MovableClock

NUMBER = "+14155550100"
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.mark.parametrize("word", ["stop", "STOP", " Stop \n", "stopall", "unsubscribe", "cancel", "end", "quit"])
def test_a_word_of_its_own_ends_texts(word: str) -> None:
    assert wish_of(word) is Wish.STOP


@pytest.mark.parametrize("body", [
    "I can't stop smiling", "stop it", "please stop", "stop.", "the end", "nonstop", "", "yes please", "startup",
])
def test_a_word_among_others_asks_for_nothing(body: str) -> None:
    """Defect 10: the word was looked for anywhere, so people were unsubscribed by accident."""
    assert wish_of(body) is Wish.NOTHING


def test_other_words_and_what_the_provider_says() -> None:
    assert [wish_of(word) for word in ("START", "yes", "unstop", "help", "Info")] == [Wish.START] * 3 + [Wish.HELP] * 2
    assert wish_of("whatever", "STOP") is Wish.STOP and wish_of("stop", "START") is Wish.START
    assert wish_of("whatever", "HELP") is Wish.HELP and wish_of("whatever", "ELSE") is Wish.NOTHING


def test_the_answer_is_escaped() -> None:
    xml = reply_xml("a <b> & c")
    root = ElementTree.fromstring(xml.encode())
    assert root.tag == "Response" and [child.text for child in root.findall("Message")] == ["a <b> & c"]


class People:
    def __init__(self, valkey: Valkey, database: Database, clock: Clock) -> None:
        outbox = SqlOutbox(database, valkey, JobBook())
        self.database = database
        self.suppression = Suppression(database, outbox, clock)
        self.contacts = Contacts(database, outbox, clock)
        self.suppressed = Suppressed(self.suppression, clock)
        self.inbound = Inbound(self.suppression, sender_name="Tea & Co", suppressed=self.suppressed)

    async def person(self, sub: str) -> None:
        async with self.database.transaction() as sql:
            await sql.execute(insert(USERS).values(sub=sub, created_at=1.0))
        await self.contacts.add_phone(UserSub(sub), NUMBER, verified=True)

    async def listed(self) -> list[tuple[str, str]]:
        rows = SUPPRESSED_PHONE_NUMBERS.c
        async with self.database.reading() as sql:
            return [(number, reason) for number, reason in await sql.execute(select(rows.phone_number, rows.reason))]


@pytest.fixture
def people(valkey: Valkey, database: Database) -> People:
    return People(valkey, database, MovableClock(now=1_800_000_000.0))


async def test_stop_ends_texts_and_start_begins_them_again(people: People) -> None:
    await people.person("one")
    assert not await people.suppressed.has(NUMBER)
    assert "no more texts" in await people.inbound.take(NUMBER, "Stop")
    assert await people.listed() == [(NUMBER, "Stop")] and await people.suppressed.has(NUMBER)
    assert await people.inbound.take(NUMBER, "STOP") and await people.listed() == [(NUMBER, "Stop")]
    assert (await people.inbound.take(NUMBER, "start")).startswith("Tea & Co: you get our texts again")
    assert await people.listed() == [] and not await people.suppressed.has(NUMBER)


@on_sqlite
async def test_start_changes_nothing_where_it_is_not_known_whose_wish_it_is(people: People) -> None:
    await people.inbound.take(NUMBER, "stop")
    assert await people.inbound.take(NUMBER, "start") == "" and await people.listed()
    await people.person("one")
    await people.person("two")
    assert await people.inbound.take(NUMBER, "start") == "" and await people.listed() == [(NUMBER, "Stop")]


@on_sqlite
async def test_the_provider_that_answered_itself_is_not_answered_twice(people: People) -> None:
    await people.person("one")
    assert await people.inbound.take(NUMBER, "arrêt", "STOP") == "" and await people.listed() == [(NUMBER, "Stop")]
    assert await people.inbound.take(NUMBER, "", "HELP") == "" and await people.inbound.take(NUMBER, "help") != ""


@on_sqlite
async def test_other_texts_and_senders_change_nothing(people: People) -> None:
    for number, body in ((NUMBER, "I can't stop smiling"), ("12345", "STOP"), ("", "STOP"), ("Bank", "STOP")):
        assert await people.inbound.take(number, body) == ""
    assert await people.listed() == []
