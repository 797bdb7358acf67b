"""Health and metrics."""

import time
from dataclasses import replace

import httpx
from prometheus_client.parser import text_string_to_metric_families

from keystead.engine import connect
from keystead.web.server import build

from .conftest import PORT


async def test_health_says_what_the_server_is(visitor):
    answer = await visitor().get("/health")
    assert answer.status_code == 200
    health = answer.json()
    assert health["status"] == "ok" and health["server"].startswith("Valkey ") and health["role"] == "master"
    assert health["uptime_seconds"] >= 0


async def test_health_is_503_soon_while_the_server_is_away(running, fault_proxy):
    proxy = await fault_proxy()
    away = await connect(proxy.url)
    try:
        app = build(replace(running, valkey=away), port=PORT)
        proxy.half_open()
        started = time.monotonic()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            answer = await client.get("/health")
        assert answer.status_code == 503 and answer.json()["status"] == "unavailable"
        assert time.monotonic() - started < away.settings.command_timeout_seconds
    finally:
        await away.aclose()


async def test_metrics_are_readable_by_prometheus(program, visitor):
    await visitor().get("/health")
    answer = await program("metrics").get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert families["keystead_server_up"].samples[0].value == 1
    assert families["keystead_server_memory_bytes"].samples[0].value > 100_000
    assert families["keystead_server_info"].samples[0].labels["product"] == "Valkey"
    assert any(sample.labels == {"status": "2xx"} for sample in families["keystead_http_requests"].samples)


async def test_metrics_need_their_scope(program):
    assert (await program("keys").get("/metrics")).status_code == 403
