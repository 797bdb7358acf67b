"""Touches over HTTP: for programs with the scope, and nobody else."""

from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from keystead.edge import ANONYMOUS, Caller, CallerKind
from keystead.messaging.touches.door import Messaging
from keystead.messaging.touches.history import History
from keystead.messaging.touches.queues import Queues
from keystead.messaging.touches.routes import routes
from keystead.messaging.touches.tracing import Tracer
from keystead.messaging.touches.trials import Trials
from tests.members.door import Visit, visiting

from .room import HELLO, NOON, SCHEMA, Room, on_sqlite

pytestmark = on_sqlite
POINT = {"event_slug": "hello_there", "event_schema": SCHEMA, "selection_strategy": "fixed",
         "messages": msgspec.to_builtins(HELLO)}


@pytest_asyncio.fixture
async def visit(room: Room) -> AsyncIterator[Visit]:
    messaging = Messaging(room.touches, room.points, room.outlets, room.sms, room.email, room.push)
    router = routes(
        messaging, room.points, Trials(messaging, room.outlets), History(room.valkey, room.database),
        Tracer(room.valkey, room.database, room.outlets), Queues(room.valkey, room.clock),
    )
    async with visiting(router) as found:
        yield found


@pytest.mark.parametrize("caller, status", [
    (ANONYMOUS, 401), (Caller(CallerKind.USER, "ada"), 403),
    (Caller(CallerKind.PROGRAM, "shop", frozenset({"users"})), 403),
])
async def test_everything_needs_the_scope(visit: Visit, caller: Caller, status: int):
    visit.caller = caller
    trial = {"user_sub": "ada", "message": {}}
    asked = [
        ("POST", "/touches", {"user_sub": "ada", "event_slug": "hello_there"}), ("GET", "/touches/x/trace", None),
        ("GET", "/touches", None), ("GET", "/users/ada/touches", None), ("GET", "/admin/touch/send_queue_info", None),
        ("GET", "/admin/touch/log_queue_info", None), ("GET", "/admin/touch/pending_sorted_set_info", None),
        ("GET", "/admin/touch/last_send_job", None), ("POST", "/touch_points/", POINT), ("GET", "/touch_points/", None),
        ("GET", "/touch_points/x", None), ("PATCH", "/touch_points/x", {}), ("DELETE", "/touch_points/x", None),
        *(("POST", f"/touch_points/send_test_{channel}", trial) for channel in ("sms", "push", "email")),
    ]
    assert [(await visit.ask(*one))[0] for one in asked] == [status] * len(asked)


async def test_a_touch_is_sent_traced_and_found_in_the_history(visit: Visit, room: Room):
    visit.caller = Caller(CallerKind.PROGRAM, "shop", frozenset({"messaging"}))
    await room.point()
    await room.person("ada", phones=["+15005550001"])
    given = {"user_sub": "ada", "event_slug": "hello_there", "event_parameters": {"name": "Ada"}, "uid": "mine",
             "on_failure": {"name": "shop.missed", "kwargs": {"codes": []}}}
    for _ in range(2):
        assert await visit.ask("POST", "/touches", given) == (202, {"uids": ["mine_sms"]})
    assert await visit.ask("GET", "/admin/touch/send_queue_info") == (200, {"length": 1, "oldest_at": NOON})
    await room.dispatcher.run()
    status, info = await visit.ask("GET", "/admin/touch/pending_sorted_set_info")
    assert info == {"length": 1, "oldest_at": NOON, "num_overdue": 0}
    assert (await visit.ask("GET", "/admin/touch/log_queue_info"))[1]["length"] == 2
    run = (await visit.ask("GET", "/admin/touch/last_send_job"))[1]
    assert run["attempted"] == 1 and run["in_purgatory"] == 0 and run["stop_reason"] == "list_exhausted"
    assert (await visit.ask("GET", "/admin/touch/last_tea_break"))[0] == 404
    status, events = await visit.ask("GET", "/touches/mine_sms/trace")
    assert status == 200 and {event["source"] for event in events} == {"step", "count", "now"}
    (past,) = (await visit.ask("GET", "/users/ada/touches"))[1]["items"]
    assert past["uid"] == "mine_sms" and past["waits"]
    assert (await visit.ask("GET", "/touches/unknown/trace"))[0] == 404


@pytest.mark.parametrize("given, status", [
    ({"event_slug": "nobody_knows"}, 404), ({"event_parameters": {}}, 400), ({"channel": "pigeon"}, 422),
    ({"on_success": {"name": "members.erased", "kwargs": {"user_sub": "ben"}, "queue": "keystead"}}, 400),
    ({"uid": "a:b"}, 422), ({"lane": "fast"}, 422), ({"user_sub": ""}, 422),
])
async def test_what_cannot_be_sent_is_refused(visit: Visit, room: Room, given, status):
    await room.point()
    whole = {"user_sub": "ada", "event_slug": "hello_there", "event_parameters": {"name": "Ada"}, **given}
    assert (await visit.ask("POST", "/touches", whole))[0] == status
    assert not await room.touches.waiting()


async def test_touch_points_are_made_changed_over_what_was_read_found_and_removed(visit: Visit):
    status, made = await visit.ask("POST", "/touch_points/", POINT)
    assert status == 201 and made["event_slug"] == "hello_there"
    assert (await visit.ask("POST", "/touch_points/", POINT))[0] == 409
    path, etag = f"/touch_points/{made['uid']}", made["messages_etag"]
    new = {"messages": {"sms": made["messages"]["sms"]}, "messages_etag": etag}
    status, changed = await visit.ask("PATCH", path, new)
    assert status == 200 and changed["messages"]["email"] == []
    assert (await visit.ask("PATCH", path, new))[0] == 409, "the etag is that of other messages now"
    assert (await visit.ask("PATCH", path, {"event_slug": "a1"}))[0] == 400
    assert (await visit.ask("PATCH", path, {"messages": {"sms": [{"uid": 3}]}, "messages_etag": "x"}))[0] == 400
    assert (await visit.ask("GET", path))[1] == changed
    assert (await visit.ask("GET", "/touch_points/?slug=hello"))[1] == {"items": [changed], "next_cursor": None}
    assert await visit.ask("GET", "/touch_points/?slug=%00") == (200, {"items": [], "next_cursor": None})
    assert (await visit.ask("POST", "/touch_points/", {**POINT, "event_slug": "hello_you"}))[0] == 201
    first = (await visit.ask("GET", "/touch_points/?limit=1"))[1]
    rest = (await visit.ask("GET", f"/touch_points/?limit=1&cursor={first['next_cursor']}"))[1]
    assert [point["event_slug"] for point in (*first["items"], *rest["items"])] == ["hello_there", "hello_you"]
    assert rest["next_cursor"] is None and (await visit.ask("GET", "/touch_points/?cursor=x"))[0] == 400
    assert [(await visit.ask("DELETE", path))[0] for _ in range(2)] == [204, 404]


async def test_a_message_is_tried_out_on_at_most_three_addresses(visit: Visit, room: Room):
    await room.person("ada", phones=[f"+1500555000{number}" for number in range(5)], emails=["ada@example.com"],
                      tokens=["ExponentPushToken[abcdefghij]"])
    words, sent = {"event_parameters": {"name": "Ada"}, "user_sub": "ada"}, {}
    for channel in ("sms", "push", "email"):
        (message,) = POINT["messages"][channel]
        status, answer = await visit.ask("POST", f"/touch_points/send_test_{channel}", {**words, "message": message})
        assert status == 202
        sent[channel] = len(answer["uids"])
    assert sent == {"sms": 3, "push": 1, "email": 1}
    assert [sms.body for sms in await room.texts()] == ["Hi Ada"] * 3
    (message,) = POINT["messages"]["sms"]
    nobody = {**words, "user_sub": "nobody", "message": message}
    assert (await visit.ask("POST", "/touch_points/send_test_sms", nobody))[0] == 404
    assert (await visit.ask("POST", "/touch_points/send_test_sms", {**words, "message": {}}))[0] == 400
    unfilled = {**words, "event_parameters": {}, "message": message}
    assert (await visit.ask("POST", "/touch_points/send_test_sms", unfilled))[0] == 400


@pytest.mark.parametrize("path", ["/touches/a:b/trace", "/touches/a%0Ab/trace"])
async def test_of_what_can_have_no_name_nothing_is_known(visit: Visit, path: str):
    visit.caller = Caller(CallerKind.PROGRAM, "shop", frozenset({"messaging"}))
    assert (await visit.ask("GET", path))[0] == 404


async def test_who_can_be_nobody_got_nothing(visit: Visit):
    visit.caller = Caller(CallerKind.PROGRAM, "shop", frozenset({"messaging"}))
    assert await visit.ask("GET", "/users/a:b/touches") == (200, {"items": [], "next_cursor": None})


async def test_new_messages_without_the_etag_of_the_old_are_refused_for_that(visit: Visit):
    visit.caller = Caller(CallerKind.PROGRAM, "shop", frozenset({"messaging"}))
    _, made = await visit.ask("POST", "/touch_points/", POINT)
    status, said = await visit.ask("PATCH", f"/touch_points/{made['uid']}", {"messages": made["messages"]})
    assert status == 400 and "messages_etag" in str(said)
