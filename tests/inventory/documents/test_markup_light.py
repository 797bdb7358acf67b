"""Other markup, drawn tables and rows of cells become the same blocks."""

from keystead.inventory.documents.blocks import Code, Heading, Listing, Paragraph, Table
from keystead.inventory.documents.markup_light import (
    asciidoc_blocks,
    delimited_blocks,
    line_of,
    plain_blocks,
    rst_blocks,
    wiki_blocks,
)


def cells(table: Table) -> list[list[str]]:
    return [[cell.plain for cell in row] for row in (table.header, *table.rows)]


def test_rst_tables():
    grid = "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n|   | 3 |\n+---+---+\n"
    simple = "== ===\na  b\n== ===\n1  2\n== ===\n"
    listed = ".. list-table::\n   :header-rows: 1\n\n   * - a\n     - b\n   * - 1\n     - 2\n"
    quoted = '.. csv-table::\n   :header: "a", "b"\n\n   "1", "2"\n'
    assert cells(rst_blocks(grid)[0]) == [["a", "b"], ["1", "2 3"]]
    assert cells(rst_blocks(simple)[0]) == [["a", "b"], ["1", "2"]]
    assert cells(rst_blocks(listed)[0]) == [["a", "b"], ["1", "2"]]
    assert cells(rst_blocks(quoted)[0]) == [["a", "b"], ["1", "2"]]


def test_rst_headings_and_code():
    heading, paragraph, code = rst_blocks("Title\n~~~~~\n\nText ``a:b``::\n\n    x = 1\n\nend\n")[:3]
    assert isinstance(heading, Heading) and heading.level == 3
    assert isinstance(paragraph, Paragraph) and paragraph.text.plain == "Text a:b:"
    assert isinstance(code, Code) and code.text.strip() == "x = 1"


def test_asciidoc():
    blocks = asciidoc_blocks('= T\n\n[cols="1,1"]\n|===\n|a |b\n\n|1\n|2\n|===\n\nkey:: what\n\n----\ncode\n----\n')
    assert [type(block) for block in blocks] == [Heading, Table, Listing, Code]
    assert cells(blocks[1]) == [["a", "b"], ["1", "2"]]


def test_wikis():
    jira = wiki_blocks("h2. T\n\n||a||b||\n|{{x:y}}|2|\n\n* one\n** two\n")
    assert [type(block) for block in jira] == [Heading, Table, Listing] and cells(jira[1])[1] == ["x:y", "2"]
    media = wiki_blocks('== T ==\n{| class="x"\n! a !! b\n|-\n| <code>x:y</code> || 2\n|}\n')
    assert [type(block) for block in media] == [Heading, Table] and cells(media[1]) == [["a", "b"], ["x:y", "2"]]


def test_drawn_boxes_and_rows_of_cells():
    box = plain_blocks("┌───┬───┐\n│ a │ b │\n├───┼───┤\n│ 1 │ 2 │\n└───┴───┘\n")
    assert cells(box[0]) == [["a", "b"], ["1", "2"]]
    rows = delimited_blocks('key,ttl\n"a:b","1\n2"\nc:d,3\n', ",")
    assert [row[0].line for row in rows[0].rows] == [2, 4] and line_of(rows[0]) == 1
    assert delimited_blocks("", ",") == ()
