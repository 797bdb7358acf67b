"""Requests are counted by the template of their route, whatever stands in their address."""

from types import SimpleNamespace

import pytest

from keystead.web.requests_seen import OUTSIDE, REQUEST_SECONDS, TEMPLATE, request_seen, template_of


@pytest.mark.parametrize(("scope", "template"), [
    ({TEMPLATE: "/api/1/jobs/{uid}", "route": SimpleNamespace(path="/jobs/{uid}")}, "/api/1/jobs/{uid}"),
    ({"route": SimpleNamespace(path="/health")}, "/health"),
    ({"path": "/ann@example.com"}, OUTSIDE),
    ({"route": SimpleNamespace()}, OUTSIDE),
])
def test_a_template_is_that_of_the_route_or_one_word(scope, template):
    assert template_of(scope) == template


def test_a_method_that_somebody_made_up_is_other():
    before = REQUEST_SECONDS.count("other", "/made-up", "405")
    request_seen({"method": "ANN@EXAMPLE.COM", TEMPLATE: "/made-up"}, 405, 0.01)
    assert REQUEST_SECONDS.count("other", "/made-up", "405") == before + 1


async def test_every_route_of_the_interface_has_its_whole_template(app, program):
    """On the straight way and on the framework's, also for what is included under a prefix."""
    client = program("jobs", "alerts", "keys")
    before = REQUEST_SECONDS.count("GET", "/api/1/alerts", "200")
    assert (await client.get("/api/1/alerts")).status_code == 200
    assert REQUEST_SECONDS.count("GET", "/api/1/alerts", "200") == before + 1
