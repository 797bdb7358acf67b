"""HTML becomes the same blocks."""

from keystead.inventory.documents.blocks import Code, Heading, Listing, Paragraph, Table, Terms
from keystead.inventory.documents.markup_html import html_blocks


def cells(table: Table) -> list[list[str]]:
    return [[cell.plain for cell in row] for row in (table.header, *table.rows)]


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
