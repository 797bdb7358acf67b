from keystead.inventory.documents.blocks import Item, Listing, Paragraph, Text, code, every_text, link, marked, strong


def test_a_text_knows_its_lines_marks_and_addresses():
    text = Text(f"see {code('a:b')}\nand {link('here', 'x.py')} {strong('now')}", 7)
    assert text.plain == "see a:b and here now"
    assert text.unmarked == "see a:b\nand here now"
    assert [found[1] for found in text.codes()] == ["a:b"] and [found[1] for found in text.strongs()] == ["now"]
    assert text.links() == ["x.py"]
    assert [line.line for line in text.lines()] == [7, 8]
    assert text.after(text.raw.index("and")).line == 8


def test_marks_of_markdown_become_ours():
    assert marked("`a` **b** [c](d)") == f"{code('a')} {strong('b')} {link('c', 'd')}"


def test_texts_of_lists_are_found_in_order():
    inner = Listing((Item((Paragraph(Text("two", 2)),), 2),))
    assert [text.raw for text in every_text((Paragraph(Text("one", 1)), inner))] == ["one", "two"]
