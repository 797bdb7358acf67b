"""Fronts that open when they are used: what a room offers is imported by whoever asks for it, and not before.

The keys of a room are read by commands that need nothing else of it. A room that stands on SQL, or on anything else
that takes long to load, writes the imports of its front under ``if TYPE_CHECKING`` and goes on::

    else:
        __getattr__ = opened_when_used(__name__)
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def opened_when_used(front: str) -> Callable[[str], object]:
    """The ``__getattr__`` of a front whose imports stand under ``TYPE_CHECKING``; they are read when first needed."""
    places: dict[str, str] = {}

    def find(name: str) -> object:
        module = sys.modules[front]
        if not places:
            places.update(_imports(Path(str(module.__file__)).read_text(encoding="utf-8")))
        if name not in places:
            raise AttributeError(f"{front} has no {name}")
        found: object = getattr(import_module(places[name]), name)
        setattr(module, name, found)  # the next one who asks finds it without us
        return found

    return find


def _imports(source: str) -> dict[str, str]:
    """Which module each name comes from, of those imported under ``TYPE_CHECKING``."""
    blocks = [node for node in ast.parse(source).body
              if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return {alias.name: str(node.module) for block in blocks for node in block.body
            if isinstance(node, ast.ImportFrom) for alias in node.names}
