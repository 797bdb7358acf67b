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


INVENTORY_TESTS = '''
import pytest, redis, redis.asyncio

@pytest.fixture
def shop(valkey_server):
    client = redis.Redis(port=valkey_server.port)
    client.flushall()
    client.set("before", 1)                 # was there already
    yield client
    client.close()

def test_clean(shop):
    shop.hset("cart:1", "a", "b")

def test_undeclared(shop):
    shop.set("stray", 1)

def test_without_expiry(shop):
    shop.set("session:1", 1)

@pytest.mark.keystead_ignore
def test_may_leave_all(shop):
    shop.set("stray", 1)

@pytest.mark.keystead_ignore("scratch:*")
def test_may_leave_some(shop):
    shop.set("scratch:1", 1)

async def test_async(valkey_server, keystead_watch):
    client = redis.asyncio.Redis(port=valkey_server.port)
    keystead_watch(client)
    await client.set("async-stray", 1)
    await client.aclose()

def test_without_client():
    pass
'''


def test_inventory_fails_tests_that_leave_other_keys(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(INVENTORY_TESTS)
    (tmp_path / "keystead.toml").write_text(inventory_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nkeystead_inventory = keystead.toml\n")
    output = run_pytest(tmp_path)
    assert "3 failed, 4 passed" in output, output
    assert "stray (string) is not in" in output and "async-stray (string) is not in" in output
    assert "session:1 has no expiry; the ttl of session:{token} is 1 h" in output


def test_inventory_that_is_missing_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text("def test_one(): pass\n")
    output = run_pytest(tmp_path, "-o", "keystead_inventory=nowhere.toml")
    assert "keystead_inventory: " in output and "nowhere.toml" in output


def inventory_text() -> str:
    from keystead.inventory import Entry, Expiry, Fact, Inventory, Rule
    from keystead.inventory.files import write_inventory

    return write_inventory(Inventory("keystead.toml", (
        Entry("cart:{id}", type=Fact("hash")),
        Entry("session:{token}", type=Fact("string"), ttl=Fact(Expiry(Rule.EXACTLY, 3600.0))),
    )))
