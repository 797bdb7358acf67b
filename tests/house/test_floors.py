"""A room imports only what lies below it, and redis-py stays inside the engine."""

import subprocess
import sys
from pathlib import Path

from .source import PROJECT


def test_every_import_goes_down_a_floor():
    linter = Path(sys.executable).with_name("lint-imports")
    outcome = subprocess.run(
        [linter, "--config", PROJECT / "pyproject.toml", "--no-cache"],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "kept" in outcome.stdout.lower()
