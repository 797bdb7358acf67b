"""The fixtures as a user's project meets them, and what merely installing the kit costs."""

import subprocess
import sys
from pathlib import Path

import pytest

import keystead.testing.plugin

USER_TESTS = '''
import pytest
from keystead.keys import IntegerKey, Keyspace, NO_TTL, Layout, Registry
from keystead.engine import connect

ROOM = Keyspace("room", tag="room")
COUNT = IntegerKey(ROOM, "count:{name}", ttl=NO_TTL, purpose="a number", writers=("test",), readers=("test",))

@pytest.mark.parametrize("number", range(4))
async def test_server_is_empty_when_a_test_begins(valkey, number):
    assert await valkey.dbsize() == 0
    await valkey.set("k", number)

async def test_server_comes_back_for_the_next_test(valkey, valkey_server):
    valkey_server.kill()

async def test_after_a_kill(valkey):
    assert await valkey.ping()

async def test_declared(valkey, no_undeclared_keys):
    no_undeclared_keys(Registry([ROOM]))
    await COUNT.at("a").increment(valkey)

async def test_undeclared(valkey, no_undeclared_keys):
    no_undeclared_keys(Registry([ROOM]))
    await valkey.set("stray", 1)

async def test_crossing(valkey_server, no_cross_slot):
    client = await connect(valkey_server.url, layout=Layout.TAGGED)
    no_cross_slot(client)
    try:
        await client.rename("{a}1", "{b}1")
    except AssertionError:
        pass
    await client.aclose()
'''


def run_pytest(directory: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300).stdout


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_fixtures_serve_a_foreign_project(tmp_path: Path, workers: tuple[str, ...]) -> None:
    (tmp_path / "test_user.py").write_text(USER_TESTS)
    output = run_pytest(tmp_path, *workers)
    assert "9 passed, 2 errors" in output, output
    assert "1 keys were left behind that nothing declares: stray" in output
    assert "1 calls crossed slots: RENAME of {a}1, {b}1" in output


def test_examples_of_the_readme_pass(tmp_path: Path) -> None:
    readme = Path(keystead.testing.plugin.__file__).with_name("README.md").read_text()
    examples = readme.split("```python\n")[1].split("```")[0]
    imports = "import pytest\nfrom keystead.engine import connect\nfrom keystead.errors import ReplyLost\n\n"
    (tmp_path / "test_readme.py").write_text(imports + examples)
    output = run_pytest(tmp_path)
    assert f"{examples.count('async def test_')} passed" in output, output


def test_loading_the_plugin_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(
        "import sys\n"
        "def test_nothing():\n"
        "    heavy = {'redis', 'hiredis', 'msgspec', 'structlog', 'keystead.engine', 'keystead.keys'}\n"
        "    assert 'keystead.testing.plugin' in sys.modules\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    output = run_pytest(tmp_path)
    assert "1 passed" in output, output
