"""HTML into blocks: headings, paragraphs, lists, definitions, tables and preformatted text; the rest is dropped."""

from html.parser import HTMLParser
from typing import Final

from .blocks import Block, Code, Heading, Item, Listing, Paragraph, Table, Terms, Text

_SKIPPED: Final = {"script", "style", "head", "noscript", "template", "svg"}
_BREAKS: Final = {"p", "div", "section", "article", "main", "ul", "ol", "dl", "table", "blockquote", "header", "footer",
                  "nav", "details", "summary", "figure", "hr", "form"}
_DEEPEST: Final = 60


def html_blocks(text: str, line: int = 1) -> tuple[Block, ...]:
    """The blocks of a page or a piece of one that begins on ``line``."""
    reader = _Reader(line)
    reader.feed(text)
    reader.close()
    reader.flush()
    while len(reader.lists) > 0:
        reader.end_list()
    return tuple(reader.blocks)


class _Reader(HTMLParser):
    def __init__(self, first_line: int) -> None:
        super().__init__(convert_charrefs=True)
        self.first_line = first_line
        self.blocks: list[Block] = []
        self.words: list[str] = []
        self.words_line = first_line
        self.skipping = 0
        self.heading = 0
        self.pre = False
        self.rows: list[list[Text]] | None = None
        self.header: tuple[Text, ...] | None = None
        self.header_row = False
        self.cell = False
        self.table_line = first_line
        self.lists: list[tuple[list[Block], list[Item]]] = []
        self.pairs: list[tuple[Text, tuple[Block, ...]]] | None = None

    @property
    def line(self) -> int:
        return self.first_line + self.getpos()[0] - 1

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED:
            self.skipping += 1
        elif tag in {"code", "kbd", "tt"} and not self.pre:
            self.words.append("\x01")
        elif tag in {"b", "strong"}:
            self.words.append("\x05")
        elif tag == "br":
            self.words.append("\n")
        elif tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
            self.flush()
            self.heading = int(tag[1])
        elif tag == "pre":
            self.flush()
            self.pre = True
            self.words_line = self.line
        elif tag == "table":
            self.flush()
            self.rows, self.header, self.table_line = [], None, self.line
        elif tag == "tr" and self.rows is not None:
            self.end_cell()
            self.rows.append([])
            self.header_row = True
        elif tag in {"td", "th"} and self.rows is not None:
            self.end_cell()
            if not self.rows:
                self.rows.append([])
                self.header_row = True
            self.header_row = self.header_row and tag == "th"
            self.cell, self.words, self.words_line = True, [], self.line
        elif tag in {"ul", "ol"} and len(self.lists) < _DEEPEST:
            self.flush()
            self.lists.append((self.blocks, []))
            self.blocks = []
        elif tag == "li" and self.lists:
            self.flush()
            self.end_item()
        elif tag == "dl":
            self.flush()
            self.pairs = []
        elif tag in {"dt", "dd"} and self.pairs is not None:
            self.end_definition()
            self.words_line = self.line
        elif tag in _BREAKS and not self.cell:
            self.flush()

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self.skipping = max(0, self.skipping - 1)
        elif tag in {"code", "kbd", "tt"} and not self.pre:
            self.words.append("\x02")
        elif tag in {"b", "strong"}:
            self.words.append("\x06")
        elif tag == "pre":
            text = "".join(self.words).strip("\n")
            self.words, self.pre = [], False
            if text.strip():
                self.blocks.append(Code("", text.replace("\x01", "").replace("\x02", ""), self.words_line))
        elif tag == "tr" and self.rows is not None:
            self.end_cell()
            if self.header_row and self.header is None and len(self.rows) == 1:
                self.header = tuple(self.rows.pop())
            self.header_row = False
        elif tag == "table" and self.rows is not None:
            self.end_cell()
            rows = [tuple(row) for row in self.rows if row]
            header = self.header or (rows.pop(0) if len(rows) > 1 else ())
            self.blocks.append(Table(header, tuple(rows), self.table_line))
            self.rows = None
        elif tag in {"ul", "ol"} and self.lists:
            self.end_list()
        elif tag in {"dt", "dd"} and self.pairs is not None:
            self.end_definition(tag)
        elif tag == "dl" and self.pairs is not None:
            self.blocks.append(Terms(tuple(self.pairs)))
            self.pairs = None
        elif (tag in _BREAKS or tag in {"li", "h1", "h2", "h3", "h4", "h5", "h6"}) and not self.cell:
            self.flush()

    def handle_data(self, data: str) -> None:
        if self.skipping:
            return
        if not any(word.strip() for word in self.words):
            self.words_line = self.line + (0 if self.pre else data[:len(data) - len(data.lstrip())].count("\n"))
        self.words.append(data if self.pre else " ".join(data.split("\n")))

    def taken(self) -> Text:
        text = Text("".join(self.words).strip(), self.words_line)
        self.words = []
        return text

    def flush(self) -> None:
        if self.cell or self.pre:
            return
        text = self.taken()
        if not text.plain:
            return
        self.blocks.append(Heading(text, self.heading) if self.heading else Paragraph(text))
        self.heading = 0

    def end_cell(self) -> None:
        if self.cell and self.rows:
            self.rows[-1].append(self.taken())
        self.cell = False

    def end_item(self) -> None:
        items = self.lists[-1][1]
        if self.blocks:
            first = self.blocks[0]
            items.append(Item(tuple(self.blocks), first.text.line if isinstance(first, Paragraph) else self.line))
        self.blocks = []

    def end_list(self) -> None:
        self.flush()
        self.end_item()
        outer, items = self.lists.pop()
        self.blocks = outer
        if items:
            self.blocks.append(Listing(tuple(items)))

    def end_definition(self, ended: str = "") -> None:
        text = self.taken()
        if not text.plain or self.pairs is None:
            return
        if ended == "dt" or not self.pairs:
            self.pairs.append((text, ()))
        else:
            term, body = self.pairs[-1]
            self.pairs[-1] = (term, (*body, Paragraph(text)))


