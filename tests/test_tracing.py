"""Spans join what belongs together, hold no personal data, and cost nothing while nobody listens."""

import asyncio
import time

import msgspec
import pytest

from keystead import tracing
from keystead.clock import SystemClock
from keystead.errors import Invalid
from keystead.jobs import JobBook, JobRecord, Jobs, Worker, WorkerSettings
from keystead.jobs.book import Job
from keystead.jobs.records import encode_record
from keystead.messaging.touches.models import Touch
from keystead.telemetry import span, traceparent

from .tracing_at_hand import Listener


@pytest.fixture
def listener():
    with Listener() as found:
        yield found


def test_while_nobody_listens_a_span_is_nothing_and_nothing_travels():
    with span("work", uid="1") as here:
        here.set(outcome="fine")
        assert traceparent() == "" and tracing.carried() is msgspec.UNSET
    assert span("a") is span("b")
    assert b"trace" not in encode_record("shop.pack", {}, 1.0)


def test_spans_nest_and_a_traceparent_joins_them_over_processes(listener):
    with span("request", kind="server"):
        handed_on = traceparent()
        with span("inner", uid="1"):
            pass
    with span("elsewhere", parent=handed_on, kind="consumer"):
        pass
    inner, request, elsewhere = listener.spans
    assert {one.context.trace_id for one in listener.spans} == {request.context.trace_id}
    assert inner.parent.span_id == elsewhere.parent.span_id == request.context.span_id
    assert inner.attributes == {"keystead.uid": "1"}


@pytest.mark.parametrize("parent", ["", "nonsense", "00-xyz-1-01", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
def test_what_is_no_traceparent_begins_a_trace(listener, parent):
    with span("work", parent=parent):
        pass
    assert listener.spans[0].parent is None


def test_a_failure_is_told_by_its_kind_alone(listener):
    with pytest.raises(ValueError), span("work"):
        raise ValueError("Ada lives at ann@example.com")
    [found] = listener.spans
    assert not found.status.is_ok and found.status.description == "ValueError" and not found.events
    assert "ann@" not in found.to_json() and "Ada" not in found.to_json()


async def test_tasks_beside_one_another_keep_their_own(listener):
    async def work(name):
        with span(name):
            await asyncio.sleep(0)
            with span(f"{name} inner"):
                await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        for number in range(5):
            tasks.create_task(work(f"task {number}"))
    by_name = {one.name: one for one in listener.spans}
    for number in range(5):
        assert by_name[f"task {number} inner"].parent.span_id == by_name[f"task {number}"].context.span_id


def test_an_address_that_is_none_is_refused_and_no_address_is_no_listener():
    with pytest.raises(Invalid, match="otlp_url"), tracing.exporting("collector:4318"):
        pass
    with tracing.exporting(""):
        assert not tracing.is_listening()


def test_spans_reach_a_collector():
    import http.server
    import threading

    came: list[tuple[str, int]] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            came.append((self.path, len(self.rfile.read(int(self.headers["content-length"])))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with tracing.exporting(f"http://127.0.0.1:{server.server_port}", service_name="shop"), span("work"):
            pass
    finally:
        server.shutdown()
        server.server_close()
    assert came and came[0][0] == "/v1/traces" and came[0][1] > 50
    assert not tracing.is_listening()


def test_nobody_listening_costs_less_than_a_few_dictionary_steps():
    """Compared in one run, so that it says the same on any machine."""
    def spans(times):
        began = time.perf_counter()
        for _ in range(times):
            with span("work", uid="1", channel="sms"):
                pass
        return time.perf_counter() - began

    def steps(times):
        began = time.perf_counter()
        for _ in range(times):
            found = {"uid": "1", "channel": "sms"}
            found.get("uid")
            found["outcome"] = "fine"
        return time.perf_counter() - began

    assert min(spans(20_000) for _ in range(5)) < 20 * min(steps(20_000) for _ in range(5))


async def test_a_job_goes_on_with_the_trace_it_was_queued_in(listener, valkey):
    seen = []

    async def pack() -> None:
        seen.append(traceparent())

    clock = SystemClock()
    book = JobBook.of(Job(pack, name="shop.pack"))
    with span("request", kind="server"):
        await Jobs(valkey, book, clock=clock).enqueue("shop.pack")
        await Jobs(valkey, book, clock=clock).options(keep_seconds=60).enqueue("shop.pack")
    worker = Worker(valkey, book, WorkerSettings(), clock=clock)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        async with asyncio.timeout(30):
            while len(seen) < 2:
                await asyncio.sleep(0.02)
        worker.stop()
    request = next(one for one in listener.spans if one.name == "request")
    jobs = [one for one in listener.spans if one.name == "job shop.pack"]
    assert len(jobs) == 2 and {one.parent.span_id for one in jobs} == {request.context.span_id}


def test_yesterdays_records_are_read_without_a_trace():
    old = msgspec.json.decode(b'{"name": "shop.pack", "kwargs": {}, "queued_at": 1.0}', type=JobRecord)
    assert old.trace == ""
    touch = msgspec.json.decode(
        b'{"uid": "t", "user_sub": "s", "touch_point_event_slug": "e", "channel": "sms", "event_parameters": {}, '
        b'"success_callback": null, "failure_callback": null, "queued_at": 1.0}', type=Touch)
    assert not touch.trace and b"trace" not in msgspec.json.encode(touch)
