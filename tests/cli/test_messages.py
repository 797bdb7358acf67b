"""``keystead message`` and ``keystead contacts``: writing to people from a terminal."""

import asyncio
import json
import signal
import subprocess
import sys

import pytest

from keystead.app import App
from keystead.cli import entry
from keystead.engine import connect
from keystead.messaging.links.keys import DELAYED, TO_PERSIST
from keystead.messaging.sms.keys import SENDING
from keystead.messaging.touches.keys import TO_SEND
from keystead.patterns import DeadLetter
from keystead.reminders.keys import QUEUED
from keystead.settings import load_settings

from .command import Outcome


@pytest.fixture
def run(tmp_path, monkeypatch, server, capsys):
    """Run ``keystead ARGUMENTS`` in this process, on a database of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEYSTEAD_STORE_URL", f"sqlite:///{tmp_path / 'people.sqlite'}")
    monkeypatch.setenv("KEYSTEAD_VALKEY_URL", server.url)

    def command(*arguments: str) -> Outcome:
        code = entry.run(list(arguments))
        said = capsys.readouterr()
        return Outcome(code, said.out, said.err)

    return command


@pytest.fixture
def ada(run) -> str:
    """Somebody who can be reached, and what they can be told of."""

    async def join() -> str:
        async with App(load_settings({})).running() as running:
            person = await running.users.ensure("test", "ada")
            await running.switchboard.contacts.add_phone(person.sub, "+14155550123", verified=True)
            await running.switchboard.points.ensure_built_in()
            return str(person.sub)

    return asyncio.run(join())


def test_the_latest_messages_are_listed_without_words_and_addresses(run, ada):
    assert "Nothing was sent yet." in run("message", "list").out
    uids = [run("message", "send", ada, "daily_reminder", "-p", "name=Ada", "-p", f"url=https://example.com/{each}")
            .out.strip() for each in "ab"]
    found = json.loads(run("message", "list", "--format", "json", "--channel", "sms").out)
    assert sorted(touch["uid"] for touch in found["touches"]) == sorted(uids) and found["before"] is None
    assert {touch["status"] for touch in found["touches"]} == {"queued"}
    shown = run("message", "list", "--most", "1")
    assert shown.code == 0 and ada in shown.out and "daily_reminder" in shown.out and "example.com" not in shown.out
    assert "Nothing is found." in run("message", "list", "--failed").out
    refused = run("message", "list", "--channel", "pigeon")
    assert refused.code != 0 and refused.err == (
        "keystead: there is no channel 'pigeon'; there are push, sms, email\n"), refused.err


def test_a_touch_is_queued_and_its_life_can_be_followed(run, ada):
    sent = run("message", "send", ada, "daily_reminder", "-p", "name=Ada", "-p", "url=https://example.com")
    assert sent.code == 0, sent.err
    uid = sent.out.strip()
    assert uid.startswith("tch_") and uid.endswith("_sms")
    life = run("message", "trace", uid)
    assert life.code == 0 and "queued" in life.out and "touch_send.queued" in life.out
    events = json.loads(run("message", "trace", uid, "--format", "json").out)
    assert events[0]["what"] == "queued" and events[0]["facts"]["channel"] == "sms"


@pytest.mark.parametrize(("arguments", "says"), [
    (("send", "USER", "nothing_like_it"), "there is no touch point"),
    (("send", "USER", "daily_reminder"), "name"),
    (("send", "USER", "daily_reminder", "-p", "name"), "NAME=VALUE"),
    (("send", "USER", "daily_reminder", "--channel", "pigeon"), "there are push, sms, email"),
    (("trace", "tch_nothing"), "nothing is known of tch_nothing"),
])
def test_what_cannot_be_is_one_line_that_says_why(run, ada, arguments, says):
    refused = run("message", *(ada if each == "USER" else each for each in arguments))
    assert refused.code != 0 and says in refused.err and refused.err.count("\n") == 1


def test_couriers_work_beside_the_server_until_they_are_told_to_stop(run, ada, tmp_path, server):
    run("message", "send", ada, "daily_reminder", "-p", "name=Ada", "-p", "url=https://example.com", "--lane", "high")
    worker = subprocess.Popen([sys.executable, "-m", "keystead.cli", "message", "work"], stderr=subprocess.PIPE)

    async def is_taken_up() -> None:
        valkey = await connect(server.url)
        async with asyncio.timeout(60):
            while await TO_SEND.length(valkey) or not await valkey.exists("stats:touch_send:send_job"):
                await asyncio.sleep(0.1)
        await valkey.aclose()

    try:
        asyncio.run(is_taken_up())
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait()


def test_what_was_given_up_is_shown_by_reason_and_tried_again(run, ada, server):
    assert "Nothing was given up." in run("message", "dead").out

    async def break_one() -> None:
        valkey = await connect(server.url)
        await SENDING.work.push_raw(valkey, b"this is no text")
        await SENDING.work.worker("test").take(valkey, 10, now=1.0)
        await valkey.aclose()

    asyncio.run(break_one())
    shown = run("message", "dead")
    assert "sms:to_send" in shown.out and "does not decode" in shown.out
    again = run("message", "dead", "--replay", "10")
    assert "1 of sms:to_send are tried again" in again.err and "Nothing was given up." in again.out


def test_links_and_reminders_that_were_given_up_are_shown_and_tried_again(run, ada, server):
    async def give_up() -> None:
        valkey = await connect(server.url)
        for place, member in ((TO_PERSIST, b"a-code"), (DELAYED, b"a-click"), (QUEUED, b"this is no reminder")):
            await place.dead.push_right(valkey, DeadLetter(member, f"no {place.due_key.pattern}", 1.0, 3))
        await valkey.aclose()

    async def waiting() -> list[int]:
        valkey = await connect(server.url)
        found = [await place.size(valkey) for place in (TO_PERSIST, DELAYED, QUEUED)]
        await valkey.aclose()
        return found

    asyncio.run(give_up())
    shown = json.loads(run("message", "dead", "--format", "json").out)
    assert {letter["queue"] for letter in shown} == {
        "touch_links:to_persist", "touch_links:delayed_clicks", "daily_reminders:queued"}
    again = run("message", "dead", "--replay", "10")
    assert "1 of touch_links:to_persist are tried again" in again.err and "Nothing was given up." in again.out
    assert asyncio.run(waiting()) == [1, 1, 1]


def test_contacts_of_a_file_are_imported_and_wrong_lines_told(run, ada, tmp_path):
    file = tmp_path / "contacts.csv"
    file.write_text(f"user_sub,email,phone,verified\n{ada},ada@example.com,+14155550199,yes\n"
                    f"nobody,x@example.com,,no\n{ada},not an address,,no\n")
    imported = run("contacts", "import", str(file), "--format", "json")
    assert imported.code == 1
    result = json.loads(imported.out)
    assert (result["lines"], result["created"], result["broken"]) == (3, 2, 2)
    assert sorted(line["line"] for line in result["first_broken"]) == [3, 4]
    assert "line 3: there is no such person" in imported.err
    assert run("contacts", "import", str(tmp_path / "none.csv")).err.startswith("keystead:")
    nowhere = run("contacts", "import", str(file), "--region", "XX")
    assert nowhere.code != 0 and "no phone numbers are known of a country 'XX'" in nowhere.err
