"""Markdown, HTML, reStructuredText, AsciiDoc, wikis, drawn tables and rows of cells all become the same blocks."""

from keystead.inventory.documents.blocks import Code, Heading, Listing, Paragraph, Table, Terms
from keystead.inventory.documents.markup_html import html_blocks
from keystead.inventory.documents.markup_light import (
    asciidoc_blocks,
    delimited_blocks,
    line_of,
    plain_blocks,
    rst_blocks,
    wiki_blocks,
)
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


def test_html():
    blocks = html_blocks(
        "<h2>T</h2><p>a <code>b</code></p><ul><li>one<ul><li>two</li></ul></li></ul>"
        "<table><tr><th>k</th><th>v</th></tr>\n<tr><td>1</td><td>2</td></tr></table>"
        "<dl><dt>t</dt><dd>d</dd></dl><pre>x\ny</pre><script>no</script>"
    )
    assert [type(block) for block in blocks] == [Heading, Paragraph, Listing, Table, Terms, Code]
    table = blocks[3]
    assert isinstance(table, Table) and cells(table) == [["k", "v"], ["1", "2"]] and table.rows[0][0].line == 2


def test_html_without_ends_is_read_all_the_same():
    (listing,) = html_blocks("<ul><li>one<li>two")
    assert isinstance(listing, Listing) and len(listing.items) == 2


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
