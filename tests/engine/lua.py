"""Scripts that only tests use."""

import itertools
from pathlib import Path

import pytest

from keystead.engine.scripts import Script

INCREASE = """#!lua
-- increase: add to a number.
-- KEYS[1]  string  number
-- ARGV[1]  int     by  1..100
-- Returns  the new number
-- Cost     O(1)   Repeat: not safe
return redis.call('INCRBY', KEYS[1], ARGV[1])
"""

_numbers = itertools.count()


def make_script(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = INCREASE) -> Script:
    """A script of this text in a package of its own."""
    package = folder / f"test_scripts_{next(_numbers)}"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "script.lua").write_text(text)
    monkeypatch.syspath_prepend(folder)
    return Script(package.name, "script.lua")
