"""Markdown into blocks, by a full parser, so that nesting, fences and tables are what they are everywhere else."""

from collections.abc import Sequence
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from .blocks import Block, Code, Heading, Item, Listing, Paragraph, Table, Terms, Text, code, link, strong
from .markup_html import html_blocks

_PARSER: Final = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def markdown_blocks(text: str) -> tuple[Block, ...]:
    """The blocks of a Markdown document. Front matter between lines of dashes is left out."""
    lines = text.split("\n")
    if lines and lines[0].strip() == "---":
        for number, line in enumerate(lines[1:200], 1):
            if line.strip() in {"---", "..."}:
                lines[:number + 1] = [""] * (number + 1)
                break
    reader = _Reader(_PARSER.parse("\n".join(lines)), lines)
    return reader.blocks(None)


class _Reader:
    def __init__(self, tokens: Sequence[Token], lines: list[str]) -> None:
        self.tokens = tokens
        self.lines = lines
        self.at = 0

    def blocks(self, until: str | None) -> tuple[Block, ...]:
        """The blocks up to the token ``until``, which is passed over."""
        found: list[Block] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token.type == until:
                break
            if token.type == "heading_open":
                found.append(Heading(self.inline(), int(token.tag[1:])))
            elif token.type == "paragraph_open":
                found.extend(_paragraph(self.inline()))
            elif token.type in {"bullet_list_open", "ordered_list_open"}:
                found.append(self.listing(token.type.replace("open", "close")))
            elif token.type == "blockquote_open":
                found.extend(self.blocks("blockquote_close"))
            elif token.type in {"fence", "code_block"}:
                start = _line(token) + (token.type == "fence")
                found.append(Code(token.info.split()[0].lower() if token.info.strip() else "", token.content, start))
            elif token.type == "table_open":
                found.append(self.table(_line(token)))
            elif token.type == "html_block":
                found.extend(html_blocks(token.content, _line(token)))
        return tuple(found)

    def inline(self) -> Text:
        token = self.tokens[self.at]
        self.at += 2  # the inline token and the closing one
        return Text(_raw(token), _line(token))

    def listing(self, until: str) -> Listing:
        items: list[Item] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token.type == until:
                break
            if token.type == "list_item_open":
                items.append(Item(self.blocks("list_item_close"), _line(token)))
        return Listing(tuple(items))

    def table(self, line: int) -> Table:
        header: tuple[Text, ...] = ()
        rows: list[tuple[Text, ...]] = []
        cells: list[Text] = []
        row_line = line
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token.type == "table_close":
                break
            if token.type == "tr_open":
                cells, row_line = [], _line(token)
            elif token.type == "inline":
                cells.append(Text(_raw(token).replace("\n", " "), row_line))
            elif token.type == "tr_close":
                if not header and not rows:
                    header = tuple(cells)
                else:
                    rows.append(tuple(cells))
        return Table(header, tuple(rows), line)


def _line(token: Token) -> int:
    return token.map[0] + 1 if token.map else 0


def _raw(inline: Token) -> str:
    parts: list[str] = []
    addresses: list[str] = []
    strength = 0
    for token in inline.children or ():
        if token.type == "text":
            parts.append(token.content)
        elif token.type == "code_inline":
            parts.append(code(token.content))
        elif token.type in {"softbreak", "hardbreak"}:
            parts.append("\n")
        elif token.type == "html_inline":
            parts.append("\n" if token.content.lower().startswith("<br") else _tag(token.content))
        elif token.type == "link_open":
            addresses.append(str(token.attrs.get("href", "")))
        elif token.type == "link_close" and addresses:
            parts.append(link("", addresses.pop()))
        elif token.type == "strong_open":
            strength = len(parts)
            parts.append("")
        elif token.type == "strong_close" and strength < len(parts):
            inside = "".join(parts[strength:])
            parts[strength:] = [strong(inside) if "\x01" not in inside else inside]
    return "".join(parts)


def _tag(content: str) -> str:
    """HTML inside a line: a tag that marks text is dropped, anything else is a placeholder such as ``<id>``."""
    name = content.strip("</> ").split()[0].lower() if content.strip("</> ") else ""
    if name in {"b", "i", "em", "strong", "code", "kbd", "span", "a", "sup", "sub", "u", "s", "small", "tt", "br", "p"}:
        return ""
    return "" if content.startswith("<!--") else content


def _paragraph(text: Text) -> list[Block]:
    """A paragraph, or the definitions that it is: a term, and lines that begin with a colon and a space."""
    lines = text.lines()
    if len(lines) < 2 or not any(line.raw.startswith((": ", ":   ")) for line in lines[1:]):
        return [Paragraph(text)]
    pairs: list[tuple[Text, tuple[Block, ...]]] = []
    for line in lines:
        if line.raw.startswith(":") and pairs:
            term, body = pairs[-1]
            pairs[-1] = (term, (*body, Paragraph(Text(line.raw[1:].strip(), line.line))))
        elif pairs and pairs[-1][1] and line.raw.startswith(" "):
            term, body = pairs[-1]
            pairs[-1] = (term, (*body, Paragraph(line)))
        else:
            pairs.append((line, ()))
    return [Terms(tuple(pairs))]
