import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hiredis
import pytest

from keystead.engine.embedded_process import Readiness, ValkeyProcess, config_text, require_supported
from keystead.errors import Invalid, Unavailable


@pytest.fixture
def process() -> Iterator[ValkeyProcess]:
    with tempfile.TemporaryDirectory(prefix="keystead-") as directory:
        password = 'a"b\\c#d'
        options = {"unixsocket": Path(directory) / "s", "port": 0, "save": "", "requirepass": password}
        process = ValkeyProcess(Path(directory), options, password=password)
        yield process
        process.stop()


def test_configuration_quotes_what_needs_it() -> None:
    options = {
        "port": 0,
        "save": "",
        "dir": Path('/a b/"c"'),
        "client-output-buffer-limit": ["normal 0 0 0", "pubsub 1mb 1mb 60"],
        "logfile": Path(os.fsdecode(b"/\xff")),
    }
    assert config_text(options).splitlines() == [
        b"port 0",
        b'save ""',
        b'dir "/a b/\\x22c\\x22"',
        b"client-output-buffer-limit normal 0 0 0",
        b"client-output-buffer-limit pubsub 1mb 1mb 60",
        b'logfile "/\\xff"',
    ]


def test_server_answers_stops_and_starts_again(process: ValkeyProcess) -> None:
    assert not process.running
    process.start()
    assert process.running
    assert process.probe() is Readiness.READY
    assert process.call("ECHO", b"\x00") == b"\x00"
    with pytest.raises(Invalid, match=f"already runs with process id {process.pid}"):
        process.spawn()
    process.stop()
    assert not process.running
    process.start()
    process.kill()
    assert process.exit_code == 137
    with pytest.raises(Unavailable, match="ended"):
        process.probe()


def test_wrong_password_is_an_error_reply(process: ValkeyProcess) -> None:
    process.start()
    assert process.call("PING") == b"PONG"
    process._password = "wrong"
    with pytest.raises(hiredis.ReplyError, match="WRONGPASS"):
        process.call("PING")


def test_large_log_is_put_aside_at_start(process: ValkeyProcess) -> None:
    process.log_path.write_bytes(b"x" * (11 * 1024 * 1024))
    process.start()
    assert process.log_path.stat().st_size < 100_000
    assert process.log_path.with_suffix(".log.1").stat().st_size == 11 * 1024 * 1024


@pytest.mark.parametrize(
    ("facts", "version"),
    [
        (b"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n", "valkey 8.0.1"),
        (b"redis_version:7.0.0\r\n", "redis 7.0.0"),
        (b"redis_version:6.2.0\r\n", None),
        (b"redis_version:7.2.4\r\nvalkey_version:7.2.5\r\n", None),
        (b"", None),
    ],
)
def test_old_servers_are_refused(facts: bytes, version: str | None) -> None:
    if version:
        assert require_supported(facts) == version
    else:
        with pytest.raises(Invalid, match="needs Valkey 8 or Redis 7"):
            require_supported(facts)
