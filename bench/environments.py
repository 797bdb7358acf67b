"""The interpreters that contestants run under: ours, and environments that hold the peers."""

import hashlib
import subprocess
import sys
from pathlib import Path

from bench.plan import Home

HERE = Path(__file__).parent
ROOT = HERE.parent


class CannotBuild(Exception):
    """The peers' environment could not be made; the message says why."""


class PeersEnvironment:
    """A virtual environment made from a requirements file, and made again when that file or Python changes."""

    def __init__(self, directory: Path, requirements: Path) -> None:
        self.directory = directory
        self.requirements = requirements
        self._stamp = directory / "made-from"

    @property
    def python(self) -> Path:
        return self.directory / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

    def is_current(self) -> bool:
        """Whether it is there and was made, to the end, from what the requirements say now."""
        return self._stamp.is_file() and self._stamp.read_text(encoding="utf-8") == self._fingerprint()

    def build(self) -> None:
        """Make it from nothing. It counts as made only when everything was installed."""
        self._run(sys.executable, "-m", "venv", "--clear", str(self.directory))
        self._run(str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                  "--requirement", str(self.requirements))
        self._stamp.write_text(self._fingerprint(), encoding="utf-8")

    def _fingerprint(self) -> str:
        text = self.requirements.read_bytes() + sys.version.encode()
        return hashlib.sha256(text).hexdigest()

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            problem = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "no message")
            raise CannotBuild(f"the environment of the peers could not be made: {problem}; "
                              "use --no-peers to measure ours alone")


ENVIRONMENTS = {
    Home.PEERS: PeersEnvironment(HERE / ".venv-peers", HERE / "requirements-peers.txt"),
    Home.PEERS_OLD_REDIS: PeersEnvironment(HERE / ".venv-peers-old-redis", HERE / "requirements-peers-old-redis.txt"),
}


def interpreter(home: Home) -> str:
    """The Python that runs contestants of ``home``."""
    return sys.executable if home is Home.PROJECT else str(ENVIRONMENTS[home].python)
