"""A whole installation on the six-node cluster with two lanes: people of both lanes are written to on every channel."""

from collections import Counter

import pytest

from keystead.app import App, Running
from keystead.jobs import JobRef, job_list
from keystead.messaging.sandbox import Outbox
from keystead.messaging.touches.stats import SENDS as TOUCHES
from keystead.settings import load_settings
from tests.scenarios.test_a_reminder_goes_out import until
from tests.web.test_serving import serving

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]

CHANNELS = ("sms", "email", "push")


async def test_people_of_both_lanes_are_reached_and_counted(valkey_cluster, tmp_path, monkeypatch):
    valkey_cluster.heal()
    valkey_cluster.flush()
    monkeypatch.chdir(tmp_path)
    app = App(load_settings({
        "valkey.url": valkey_cluster.url, "store.url": f"sqlite:///{tmp_path}/test.sqlite",
        "store.files_url": (tmp_path / "files").as_uri(), "http.port": 0, "messaging.lanes": 2,
        "push.cold_seconds": 1, "messaging.quiet_from_hour": 0, "messaging.quiet_until_hour": 0,
    }, environment={}))

    async def walk(ready):
        async with app.running(public_url=ready.url) as running:
            await _walk(running)

    await serving(app, walk, seconds=240)


async def _walk(running: Running) -> None:
    board, valkey = running.switchboard, running.valkey
    assert len(valkey.lanes) == 2
    people = await _two_people(running)
    for number, sub in people.items():
        await board.contacts.add_phone(sub, f"+1415555012{number}", verified=True)
        await board.contacts.add_email(sub, f"p{number}@example.com", verified=True)
        await board.tokens.register(sub, f"ExponentPushToken[person{number}]", "ios")
    uids = {}
    for number, sub in people.items():
        uids[number] = await board.messaging.touch(
            sub, "daily_reminder", parameters={"name": f"P{number}", "url": "https://example.com/l/x"},
            on_success=JobRef("scenario.reached", {"lane": number}), on_failure=JobRef("scenario.failed"),
        )
        assert len(uids[number]) == len(CHANNELS)
    await board.messaging.text("+14155550199", "for nobody in particular")

    async def all_are_called_back() -> bool:
        jobs = [record async for record in _jobs(running)]
        assert {record.name for record in jobs} <= {"scenario.reached"}
        return Counter(record.kwargs["lane"] for record in jobs) == {0: 3, 1: 3}

    await until(all_are_called_back)
    outbox = Outbox(valkey)
    for number in people:
        for channel, address in zip(CHANNELS, (f"+1415555012{number}", f"p{number}@example.com",
                                               f"ExponentPushToken[person{number}]"), strict=True):
            assert len(await outbox.messages(channel, address)) == 1, (number, channel)
    await until(lambda: outbox.messages("sms", "+14155550199"))

    # Counted by lane, shown as one.
    by_lane = [(await TOUCHES.read(lane, await TOUCHES.earliest(lane))).counts["queued"] for lane in valkey.lanes]
    assert by_lane == [3, 3]
    assert sum((await running.charts.recent(TOUCHES.name, 2)).counts["queued"]) == 6
    assert sum((await running.charts.recent("sms_send", 2)).counts["queued"]) == 3
    for number in people:
        for uid in uids[number]:
            steps = [event.what for event in await board.tracer.trace(uid)]
            assert "queued" in steps and "ended" in steps, steps
    await until(lambda: _nothing_waits(board))
    for sub in people.values():
        await until(lambda sub=sub: _has_history(board, sub))

    lanes, strays = Counter(), []
    for node in await valkey.nodes():
        async for raw in node.scan_iter(count=1000):
            match = running.registry.resolve(raw)
            if match is None:
                strays.append(raw)
            elif match.declaration.laned:
                lanes[match.lane] += 1
    assert not strays, "keys that nothing declares"
    assert set(lanes) == {0, 1} and min(lanes.values()) > 10


async def _two_people(running: Running) -> dict[int, str]:
    """Somebody of each lane."""
    found: dict[int, str] = {}
    for number in range(100):
        person = await running.users.ensure("scenario", f"p{number}", given_name=f"P{number}")
        found.setdefault(running.valkey.layout.lane_of(person.sub), person.sub)
        if len(found) == 2:
            return found
    raise AssertionError("a hundred people in one lane")


async def _jobs(running: Running):
    for record in await job_list("").range(running.valkey):
        yield record


async def _has_history(board, sub: str) -> bool:
    return [touch.status for touch in await board.history.of(sub)] == ["arrived"] * len(CHANNELS)


async def _nothing_waits(board) -> bool:
    return not (await board.queues.to_send()).length and not (await board.queues.to_log()).length
