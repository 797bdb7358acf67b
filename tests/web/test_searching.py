"""One box that understands what an operator has at hand."""

import pytest

from keystead.edge.keys import API_IP
from keystead.errors import Unavailable
from keystead.jobs import EndedJob, FairJobs, Jobs
from keystead.jobs.keys import ENDED_LATELY
from keystead.web import searching
from keystead.web.searching import find, masked_word, patterns_like, settings_like


async def found(running, text, **options):
    return [(hit.kind, hit.title, hit.sure) for hit in await find(running, text, **options)]


async def test_a_key_that_is_there_is_sure_and_masked(running, valkey):
    assert ("key", "api_ip:20•••", False) in await found(running, "api_ip:203.0.113.7")
    await API_IP.at("203.0.113.7").set(valkey, 1)
    [hit] = await find(running, " api_ip:203.0.113.7 ")
    assert (hit.kind, hit.title, hit.sure) == ("key", "api_ip:20•••", True)
    assert hit.address == "/key?key=api_ip%3A203.0.113.7"
    await valkey.set("stray", "x")
    [stray] = await find(running, "stray")
    assert (stray.kind, stray.says, stray.sure) == ("key", "nothing declares it", True)


async def test_patterns_are_found_by_name_and_by_words(running):
    [exact, *_] = await find(running, "api_ip:{ip}")
    assert (exact.kind, exact.sure, exact.address) == ("pattern", True, "/pattern?name=api_ip%3A%7Bip%7D")
    hits = patterns_like(running.registry, "api ip")
    assert hits[0].title == "api_ip:{ip}" and not any(hit.sure for hit in hits)
    assert len(patterns_like(running.registry, "ip")) <= searching.MOST_OF_A_KIND


@pytest.mark.parametrize(("uid", "kind", "address"), [
    ("tch_abc", "message", "/messages/trace?uid=tch_abc"), ("sms_abc", "message", "/messages/trace?uid=sms_abc"),
])
async def test_a_uid_leads_straight_there(running, uid, kind, address):
    [hit] = await find(running, uid)
    assert (hit.kind, hit.address, hit.sure) == (kind, address, True)


async def test_a_job_is_found_by_its_state_and_otherwise_where_it_waits(running, valkey):
    jobs = Jobs(valkey, clock=running.clock)
    kept, plain = await jobs.options(keep_seconds=60).enqueue("x.y"), await jobs.enqueue("x.y")
    for thorough in (True, False):
        assert await found(running, kept.uid, thorough=thorough) == [("job", kept.uid, True)]
    assert await found(running, plain.uid) == [("job", plain.uid, True)]
    assert await found(running, plain.uid, thorough=False) == [], "queues are not searched for every keystroke"
    assert await found(running, "nosuchjob123") == []
    ended = EndedJob("endedjob123", "x.y", "hot", "succeeded", 1000.0)
    await ENDED_LATELY.at(status="succeeded").add(valkey, ended, 1000.0)
    assert await found(running, ended.uid) == [("job", ended.uid, True)]


async def test_people_are_found_by_what_is_known_and_masked(running):
    ada = await running.users.ensure("test", "ada", given_name="Ada", family_name="Lovelace", timezone="Europe/Berlin")
    await running.users.ensure("test", "adam", given_name="Adam", family_name="Smith")
    await running.switchboard.contacts.add_email(ada.sub, "ada@example.com")
    for text in (ada.sub, "ADA@example.com"):
        [hit] = await find(running, text)
        assert (hit.kind, hit.title, hit.sure, hit.address) == ("person", "Ad••• Lo•••", True, f"/people/{ada.sub}")
        assert "Lovelace" not in hit.says and "example.com" not in hit.says
    assert [kind for kind, _, _ in await found(running, "ada")].count("person") == 2
    assert await found(running, "ada love") == [("person", "Ad••• Lo•••", False)]
    assert await found(running, "100%") == [], "what means something in SQL is only text"


async def test_a_tenant_is_found_once_it_asked_for_something(running, valkey):
    assert await found(running, "acme-corp") == []
    await FairJobs(Jobs(valkey, clock=running.clock)).enqueue("acme-corp", "x.y", {})
    [hit] = await find(running, "acme-corp")
    assert (hit.kind, hit.sure, hit.address) == ("tenant", True, "/tenants?tenant=acme-corp")


def test_settings_are_found_as_file_and_environment_spell_them():
    assert [(hit.title, hit.sure) for hit in settings_like("KEYSTEAD_HTTP_PORT")] == [("http.port", True)]
    assert settings_like("http.port")[0].sure and settings_like("http.port")[0].address == "/settings#http.port"
    assert {hit.title for hit in settings_like("timeout")} >= {"valkey.connect_timeout_seconds"}


async def test_nobody_is_told_of_what_they_may_not_touch(running, valkey):
    await running.users.ensure("test", "ada", given_name="Ada")
    await API_IP.at("203.0.113.7").set(valkey, 1)
    assert {kind for kind, _, _ in await found(running, "ada", may=lambda scope: scope == "keys")} <= {
        "pattern", "setting", "key"}
    assert await found(running, "api_ip:203.0.113.7", may=lambda scope: scope == "stats") == []


@pytest.mark.parametrize("text", ["", "  ", "x" * 301, "a\0b"])
async def test_what_can_mean_nothing_finds_nothing(running, text):
    assert await find(running, text) == []


async def test_a_part_that_is_away_takes_nothing_from_the_rest(running, monkeypatch):
    async def away(*_):
        raise Unavailable("away")

    monkeypatch.setattr(searching, "_people", away)
    monkeypatch.setattr(searching, "_key", away)
    assert ("pattern", "api_ip:{ip}", True) in await found(running, "api_ip:{ip}")


def test_a_mask_tells_apart_and_tells_little():
    assert (masked_word("Ada"), masked_word("Li"), masked_word("")) == ("Ad•••", "•••", "•••")
