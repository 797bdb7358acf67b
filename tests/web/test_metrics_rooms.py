"""What waits in the rooms, as Prometheus reads it."""

from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from keystead.engine import connect
from keystead.jobs import Jobs
from keystead.web import metrics_rooms
from keystead.web.metrics_rooms import GAUGES, room_samples


async def read(client) -> dict[str, dict[tuple, float]]:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    return {family.name: {tuple(sorted(sample.labels.items())): sample.value for sample in family.samples}
            for family in text_string_to_metric_families(answer.text)}


async def test_queues_alerts_and_rotation_have_numbers(running, program):
    await Jobs(running.valkey, clock=running.clock).enqueue("shop.pack", order=1)
    await Jobs(running.valkey, clock=running.clock).options(delay_seconds=60).enqueue("shop.pack", order=2)
    await running.alerts.raise_("queue_stuck", "jobs hot", "it is", "critical")
    found = await read(program("metrics"))
    items = found["keystead_queue_items"]
    assert items[("place", "queued"), ("queue", "hot")] == 1
    assert items[("place", "delayed"), ("queue", "hot")] == 1
    assert 0 <= found["keystead_queue_oldest_seconds"][("queue", "hot"),] < 60
    assert found["keystead_queue_oldest_seconds"][("queue", "sms"),] == 0
    assert found["keystead_waiting_items"][("place", "touches"),] == 0
    assert found["keystead_alerts_open"] == {(("severity", "critical"),): 1, (("severity", "warning"),): 0}
    assert found["keystead_stats_families_late"] == {(): 0} and found["keystead_reminders_queued"] == {(): 0}


async def test_every_number_is_declared_with_its_labels(running):
    samples = await room_samples(running)
    assert {sample.name for sample in samples} <= set(GAUGES)
    for sample in samples:
        assert tuple(name for name, _ in sample.labels) == GAUGES[sample.name][0]


async def test_requests_are_measured_by_route_and_never_by_address(program, visitor):
    client = program("metrics", "jobs")
    for uid in ("ann@example.com", "another"):
        await client.get(f"/api/1/jobs/{uid}")
    await visitor().get("/nowhere/ann@example.com")
    await visitor().get("/health")
    text = (await client.get("/metrics")).text
    assert 'route="/api/1/jobs/{uid}"' in text and "ann@" not in text
    found = await read(client)
    rows = found["keystead_http_request_seconds"]
    routes = {dict(labels)["route"] for labels in rows}
    assert "/health" in routes and "(none)" in routes
    assert all(route == "(none)" or route.startswith("/") for route in routes)


async def test_a_server_that_is_away_leaves_gaps_and_no_zeros(running, fault_proxy, monkeypatch):
    monkeypatch.setattr(metrics_rooms, "ANSWER_SECONDS", 0.3)
    proxy = await fault_proxy()
    away = await connect(proxy.url)
    try:
        proxy.half_open()
        found = {sample.name for sample in await room_samples(replace(running, valkey=away))}
        assert not found - {"alerts_open"}, "alerts are read on a connection of their own"
    finally:
        await away.aclose()
