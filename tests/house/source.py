"""The project's own files, as the house tests read them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PROJECT = Path(__file__).parents[2]
SOURCE = PROJECT / "src" / "keystead"
TESTS = PROJECT / "tests"


@dataclass(frozen=True)
class Module:
    """One Python file of the package."""

    path: Path

    @property
    def name(self) -> str:
        """Its place under the package, as ``edge/guard.py``."""
        return self.path.relative_to(SOURCE).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name)

    def strings(self) -> Iterator[tuple[int, str]]:
        """Every string constant outside docstrings, with its line; the fixed parts of f-strings too."""
        docstrings = {id(docstring) for docstring in self._docstrings()}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield node.lineno, node.value

    def _docstrings(self) -> Iterator[ast.Constant]:
        for node in ast.walk(self.tree):
            for statement in getattr(node, "body", []) if isinstance(getattr(node, "body", None), list) else []:
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    yield statement.value


def modules() -> list[Module]:
    """Every Python file of the package."""
    return [Module(path) for path in sorted(SOURCE.rglob("*.py"))]


def scripts() -> list[Path]:
    """Every Lua file of the package, shared fragments included."""
    return sorted(SOURCE.rglob("*.lua"))


def project_text() -> Iterator[tuple[str, str]]:
    """Name and text of every file that belongs to the project and is text."""
    skipped = {"build", "dist", "out", "node_modules", "__pycache__"}
    for path in sorted(PROJECT.rglob("*")):
        parts = path.relative_to(PROJECT).parts
        if any(part in skipped or part.endswith(".egg-info") for part in parts):
            continue
        if any(part.startswith(".") and part not in (".ci", ".gitignore") for part in parts) or not path.is_file():
            continue
        try:
            yield "/".join(parts), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
