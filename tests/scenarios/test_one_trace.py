"""One trace joins a request, its touch, the message, the call of the provider and the jobs that follow."""

import asyncio
import time
from itertools import pairwise

import httpx

from keystead.messaging.sandbox import Outbox
from keystead.web.links import program_token
from tests.tracing_at_hand import Listener
from tests.web.test_serving import installation, serving

PATIENCE_SECONDS = 90.0
PHONE = "+14155550123"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


async def test_a_touch_is_one_trace_from_the_request_to_the_callback(tmp_path):
    app = installation(tmp_path, **{"messaging.quiet_from_hour": 0, "messaging.quiet_until_hour": 0})
    with Listener() as listener:

        async def walk(ready):
            async with app.running(public_url=ready.url) as running, httpx.AsyncClient(
                timeout=60, base_url=ready.url
            ) as client:
                person = await running.users.ensure("scenario", "ada", given_name="Ada")
                await running.switchboard.contacts.add_phone(person.sub, PHONE, verified=True)
                token = program_token(app, "shop", ("messaging",), lasts_seconds=600)
                answer = await client.post("/api/1/touches", headers={
                    "authorization": f"Bearer {token}", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01",
                }, json={
                    "user_sub": person.sub, "event_slug": "daily_reminder", "channel": "sms",
                    "event_parameters": {"name": "Ada", "url": "https://app.example.com/a/abc", "unsubscribe_url":
                                         "https://app.example.com/u"},
                })
                assert answer.status_code == 202, answer.text
                outbox = Outbox(running.valkey)
                await _until(lambda: outbox.messages("sms", PHONE))
                await _until(lambda: _names(listener) >= WANTED)

        await serving(app, walk, seconds=240)
    mine = {span.name: span for span in listener.spans if f"{span.context.trace_id:032x}" == TRACE}
    chain = ["POST /api/1/touches", "touch", "send sms", "POST 127.0.0.1"]
    for above, below in pairwise(chain):
        assert mine[below].parent.span_id == mine[above].context.span_id, (above, below)
    assert f"{mine[chain[0]].parent.span_id:016x}" == "00f067aa0ba902b7", "it goes on with the caller's trace"
    assert mine["touch"].attributes["keystead.outcome"] == "reachable"
    told = "".join(span.to_json() for span in listener.spans)
    assert PHONE not in told and "Ada" not in told


WANTED = {"POST /api/1/touches", "touch", "send sms", "POST 127.0.0.1"}


def _names(listener):
    return {span.name for span in listener.spans if f"{span.context.trace_id:032x}" == TRACE}


async def _until(what):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = what()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it did not come true in time")
