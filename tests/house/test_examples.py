"""The examples that people copy must run as they stand."""

import inspect
import re
from pathlib import Path

import pytest

from keystead.testing.server import LocalServer

from .source import PROJECT

PAGES = ["README.md", *sorted(str(page.relative_to(PROJECT)) for page in (PROJECT / "docs").rglob("*.md"))]
EXAMPLES = [
    pytest.param(block, id=f"{page} #{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", (PROJECT / page).read_text("utf-8"), re.S), 1)
]


def test_there_are_examples_to_check() -> None:
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("block", EXAMPLES)
async def test_the_example_runs(
    block: str, valkey_server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    valkey_server.call("FLUSHALL")
    monkeypatch.chdir(tmp_path)  # some make files
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(block, "example", "exec"), names)
    example = names.get("example")
    if inspect.iscoroutinefunction(example):
        await example(valkey_server.url)
