"""Documentation of the HTTP interface, from this server alone."""

import re


async def test_page_loads_nothing_from_elsewhere(operator):
    page = (await operator.get("/docs")).text
    for address in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert address.startswith(("/", "data:")), address
        if address.startswith("/"):
            answer = await operator.get(address)
            assert answer.status_code == 200 and len(answer.content) > 10_000
    assert '"validatorUrl": null' in page
    assert "Dashboard</a>" not in page, "there is none to go back to"


async def test_there_are_no_other_files(operator):
    for name in ("redoc.standalone.js", "..%2F__init__.py", "x"):
        assert (await operator.get(f"/docs/{name}")).status_code == 404


async def test_document_describes_the_interface(operator):
    document = (await operator.get("/openapi.json")).json()
    assert {"/health", "/metrics", "/api/1/keys", "/api/1/keys/explain", "/api/1/blocks"} <= set(document["paths"])
    assert document["tags"][0]["name"] == "users" and document["tags"][-1]["name"] == "admin"
    assert not any(path.startswith(("/login", "/docs", "/session")) for path in document["paths"])
