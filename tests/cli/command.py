"""Runs the real command in a process of its own, as a user would."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..warm import WARM


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    def refused(self) -> str:
        """The one line of a command that could not run, after checking that it is one line and no traceback."""
        assert self.code == 2, f"exit code {self.code}\n{self.out}\n{self.err}"
        assert self.out == "", self.out
        assert self.err.startswith("keystead: ") and self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err.removeprefix("keystead: ").rstrip("\n")


def environment(**extra: str) -> dict[str, str]:
    """The environment of a user without Keystead settings or a colour terminal."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("KEYSTEAD_") and name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, "TERM": "dumb", **extra}


def keystead(*arguments: str | os.PathLike[str], cwd: Path | None = None, seconds: float = 180, **env: str) -> Outcome:
    """Run ``keystead ARGUMENTS`` and wait for it."""
    assert all(name.startswith("KEYSTEAD_") for name in env), "Python may read it while it starts, which it did before"
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = WARM.run("keystead.cli", [*map(os.fspath, arguments)], cwd=cwd or Path.cwd(), env=environment(**env),
                        out=out, err=err, seconds=seconds)
        out.seek(0)
        err.seek(0)
        return Outcome(code, out.read().decode(), err.read().decode())
