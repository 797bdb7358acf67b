"""The examples that people copy must run as they stand."""

import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from keystead.engine import connect
from keystead.testing.server import LocalServer

from .source import PROJECT

# A block that begins with the name of a file is that file, for the blocks of the same page.
FILE = re.compile(r"# ([\w/]+\.py)\n")
PAGES = ["README.md", *sorted(str(page.relative_to(PROJECT)) for page in (PROJECT / "docs").rglob("*.md"))]
BLOCKS = {page: re.findall(r"```python\n(.*?)```", (PROJECT / page).read_text("utf-8"), re.S) for page in PAGES}
EXAMPLES = [
    pytest.param(page, block, id=f"{page} #{number}")
    for page, blocks in BLOCKS.items() for number, block in enumerate(blocks, 1)
]


def test_there_are_examples_to_check() -> None:
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize(("page", "block"), EXAMPLES)
async def test_the_example_runs(
    page: str, block: str, valkey_server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    valkey_server.call("FLUSHALL")
    monkeypatch.chdir(tmp_path)  # some make files
    monkeypatch.syspath_prepend(str(tmp_path))
    with files_of(page, tmp_path):
        names: dict[str, object] = {"__name__": "example"}
        exec(compile(block, "example", "exec"), names)
        example = names.get("example")
        if inspect.iscoroutinefunction(example):
            await example(valkey_server.url)
        for name, test in names.items():
            if name.startswith("test_") and inspect.iscoroutinefunction(test):
                valkey = await connect(valkey_server.url)
                await test(valkey)
                await valkey.aclose()


@contextmanager
def files_of(page: str, directory: Path) -> Iterator[None]:
    """The files that a page tells its reader to write, in packages that end with the block."""
    before = set(sys.modules)
    for block in BLOCKS[page]:
        if named := FILE.match(block):
            path = directory / named[1]
            path.parent.mkdir(exist_ok=True)
            (path.parent / "__init__.py").touch()
            path.write_text(block, encoding="utf-8")
    tops = {path.parent.name for path in directory.glob("*/__init__.py")}
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in tops:
                del sys.modules[name]
