"""What every kind of document is turned into before anybody looks for keys: headings, paragraphs, lists, tables, code.

Text keeps its marks inside itself: code, strong text and addresses of links are enclosed in control characters, which
no opened document contains (see ``opening``). A text may run over several lines of its source, and knows the first.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

CODE_ON, CODE_OFF = "\x01", "\x02"
LINK_ON, LINK_OFF = "\x03", "\x04"
STRONG_ON, STRONG_OFF = "\x05", "\x06"

_LINK: Final = re.compile(f"{LINK_ON}[^{LINK_OFF}]*{LINK_OFF}")
_CODE: Final = re.compile(f"{CODE_ON}([^{CODE_OFF}]*){CODE_OFF}")
_STRONG: Final = re.compile(f"{STRONG_ON}([^{STRONG_OFF}]*){STRONG_OFF}")
_MARKS: Final = re.compile(f"[{CODE_ON}{CODE_OFF}{STRONG_ON}{STRONG_OFF}]")


# Of a paragraph so much is read for each key in it: one without end must not be read whole for every key.
LONGEST_SPEECH = 4000


@dataclass(frozen=True, slots=True)
class Text:
    """Words with their marks, and the line where they begin."""

    raw: str
    line: int

    @property
    def plain(self) -> str:
        """The words alone, on one line."""
        return " ".join(_MARKS.sub("", _LINK.sub("", self.raw)).split())

    @property
    def unmarked(self) -> str:
        """The words alone, on the lines of the source."""
        return _MARKS.sub("", _LINK.sub("", self.raw))

    def codes(self) -> Iterator[re.Match[str]]:
        return _CODE.finditer(self.raw)

    def strongs(self) -> Iterator[re.Match[str]]:
        return _STRONG.finditer(self.raw)

    def links(self) -> list[str]:
        return [found.group()[1:-1] for found in _LINK.finditer(self.raw)]

    def line_at(self, offset: int) -> int:
        return self.line + self.raw.count("\n", 0, offset)

    def after(self, offset: int) -> "Text":
        """What follows ``offset``, as far as it can be about what stands there."""
        return Text(self.raw[offset : offset + LONGEST_SPEECH], self.line_at(offset))

    def lines(self) -> list["Text"]:
        return [Text(raw, self.line + number) for number, raw in enumerate(self.raw.split("\n"))]


@dataclass(frozen=True, slots=True)
class Heading:
    text: Text
    level: int


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: Text


@dataclass(frozen=True, slots=True)
class Item:
    """One point of a list: its blocks, the first of which is usually a paragraph."""

    blocks: tuple["Block", ...]
    line: int

    @property
    def text(self) -> Text:
        first = self.blocks[0] if self.blocks else None
        return first.text if isinstance(first, Paragraph) else Text("", self.line)


@dataclass(frozen=True, slots=True)
class Listing:
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells. ``header`` is empty if the table has none."""

    header: tuple[Text, ...]
    rows: tuple[tuple[Text, ...], ...]
    line: int
    lossy: bool = False  # the borders between cells were worked out, they did not stand there


@dataclass(frozen=True, slots=True)
class Code:
    """Lines that are shown as they are; ``line`` is that of the first of them."""

    language: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Terms:
    """A list of definitions."""

    pairs: tuple[tuple[Text, tuple["Block", ...]], ...]


Block = Heading | Paragraph | Listing | Table | Code | Terms


def code(text: str) -> str:
    return f"{CODE_ON}{text}{CODE_OFF}"


def strong(text: str) -> str:
    return f"{STRONG_ON}{text}{STRONG_OFF}"


def link(text: str, address: str) -> str:
    return f"{text}{LINK_ON}{address}{LINK_OFF}"


def marked(text: str) -> str:
    """Words in which backticks, double asterisks and links are written as in Markdown, with our marks instead."""
    text = re.sub(r"!?\[([^\[\]\n]*)\]\(([^()\s]*)\)", lambda found: link(found[1], found[2]), text)
    text = re.sub(r"``([^`\n]+)``|`([^`\n]+)`", lambda found: code((found[1] or found[2]).strip()), text)
    return re.sub(r"\*\*([^*\n]+)\*\*", lambda found: strong(found[1]), text)


def every_text(blocks: tuple[Block, ...]) -> Iterator[Text]:
    """The texts of blocks in order, those of lists and definitions included, tables and code not."""
    for block in blocks:
        if isinstance(block, Heading | Paragraph):
            yield block.text
        elif isinstance(block, Listing):
            for item in block.items:
                yield from every_text(item.blocks)
        elif isinstance(block, Terms):
            for term, body in block.pairs:
                yield term
                yield from every_text(body)
