"""The HTTP interface keeps what its own description promises, whatever it is asked.

A real server with a real Valkey and SQL is asked a bounded number of generated questions for each operation: no 5xx, no
status that is not described, and every answer of the described type and shape. The same questions every time.
"""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from keystead.app import App
from keystead.edge import SCOPES
from keystead.settings import load_settings
from keystead.web.callers import TOKEN_PURPOSE
from keystead.web.serving import serve

QUESTIONS = 5
CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
          response_headers_conformance)
LIMITS = settings(
    max_examples=QUESTIONS, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
ENDLESS = {"/jobs/live"}  # answers for as long as a job runs


@dataclass
class Site:
    url: str
    token: str
    person: str


@pytest.fixture(scope="module")
def site(valkey_server, tmp_path_factory) -> Iterator[Site]:
    """A running server with one person, and what may do everything."""
    valkey_server.ensure_running()
    valkey_server.call("FLUSHALL")
    directory = tmp_path_factory.mktemp("site")
    app = App(load_settings({
        "valkey.url": valkey_server.url, "http.port": 0, "store.url": f"sqlite:///{directory}/keystead.sqlite",
        "store.files_url": f"file://{directory}/files",
    }, environment={}))
    app.data_directory = directory
    ready, stopped, found = threading.Event(), [], []

    async def run() -> None:
        stop = asyncio.Event()
        stopped.append((asyncio.get_running_loop(), stop))
        await serve(app, dashboard=False, stop=stop, on_ready=lambda told: (found.append(told.url), ready.set()))

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert ready.wait(120), "the server did not begin"
    token = app.tickets().issue(TOKEN_PURPOSE, "tests", lasts_seconds=3600, scopes=SCOPES)
    url = found[0].rstrip("/")
    made = httpx.post(f"{url}/api/1/users", json={"provider": "tests", "provider_sub": "1"}, timeout=60,
                      headers={"Authorization": f"Bearer {token}"})
    yield Site(url, token, made.json()["sub"])
    loop, stop = stopped[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join(60)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
def test_every_operation_answers_as_described(site: Site, mode: GenerationMode) -> None:
    headers = {"Authorization": f"Bearer {site.token}", "X-User-Sub": site.person}
    document = httpx.get(f"{site.url}/openapi.json", headers=headers, timeout=60).json()
    schema = schemathesis.openapi.from_dict(document)
    failed, asked = {}, 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path in ENDLESS:
            continue

        @LIMITS
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case) -> None:
            nonlocal asked
            asked += 1
            answer = case.call(base_url=site.url, headers=headers, timeout=60)
            case.validate_response(answer, checks=CHECKS)

        try:
            ask()
        except Unsatisfiable:
            continue  # nothing can be wrong about a request that takes nothing
        except (Exception, BaseExceptionGroup) as error:
            failed[f"{operation.method.upper()} {operation.path}"] = f"{type(error).__name__}: {error}"[:2000]
    assert not failed, "\n\n".join(f"{name}\n{said}" for name, said in failed.items())
    assert asked > 100
