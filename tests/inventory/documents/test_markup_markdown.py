"""Markdown becomes blocks."""

from keystead.inventory.documents.blocks import Code, Heading, Listing, Table, Terms
from keystead.inventory.documents.markup_markdown import markdown_blocks


def cells(table: Table) -> list[list[str]]:
    return [[cell.plain for cell in row] for row in (table.header, *table.rows)]


def test_markdown_keeps_lines_nesting_and_placeholders():
    text = "---\ntitle: x\n---\n# A\n\n- `b:{c}` one\n  two <id>\n\n  - inner\n\n```py\nx = 1\n```\n"
    heading, listing, code = markdown_blocks(text)
    assert isinstance(heading, Heading) and heading.text.line == 4
    assert isinstance(listing, Listing) and listing.items[0].text.plain == "b:{c} one two <id>"
    assert isinstance(listing.items[0].blocks[1], Listing)
    assert isinstance(code, Code) and (code.language, code.line) == ("py", 12)


def test_markdown_tables_and_definitions():
    table, terms = markdown_blocks("| a | b |\n|---|---|\n| `x\\|y` | 2<br>3 |\n\nkey\n: what it is\n")
    assert isinstance(table, Table) and cells(table) == [["a", "b"], ["x|y", "2 3"]]
    assert table.rows[0][0].line == 3
    assert isinstance(terms, Terms) and terms.pairs[0][0].plain == "key"
