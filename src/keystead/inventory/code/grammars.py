"""The parsers, loaded when they are needed, and what to say if they are not installed."""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from keystead.errors import Invalid

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Query

# Language of a file by its suffix. The grammar of TypeScript with tags in it also reads JavaScript.
SUFFIXES: Final = {
    ".py": "python", ".go": "go", ".java": "java", ".rb": "ruby", ".rake": "ruby", ".ts": "typescript",
    ".mts": "typescript", ".cts": "typescript", ".tsx": "tsx", ".js": "tsx", ".jsx": "tsx", ".mjs": "tsx",
    ".cjs": "tsx", ".lua": "lua",
}
_GRAMMARS: Final = {
    "python": ("tree_sitter_python", "language"), "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"), "ruby": ("tree_sitter_ruby", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
}


class GrammarsMissing(Invalid):
    """The parsers are not installed."""


@cache
def _language(name: str) -> "Language":
    module, function = _GRAMMARS[name]
    try:
        from tree_sitter import Language

        return Language(getattr(import_module(module), function)())
    except ImportError as error:
        raise GrammarsMissing(
            f"reading code needs {module.replace('_', '-')}, which is not installed: pip install 'keystead[code]'"
        ) from error


@cache
def _parser(name: str) -> "Parser":
    from tree_sitter import Parser

    return Parser(_language(name))


@cache
def _query(name: str, text: str) -> "Query":
    from tree_sitter import Query

    return Query(_language(name), text)


def parse(language: str, data: bytes) -> "Node":
    """The root of the tree. Whatever the bytes are, there is one."""
    _language(language)
    return _parser(language).parse(data).root_node


def captures(language: str, query: str, root: "Node") -> "dict[str, list[Node]]":
    """The nodes that a query names, found by the library at its own speed."""
    from tree_sitter import QueryCursor

    return QueryCursor(_query(language, query)).captures(root)
