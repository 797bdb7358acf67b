import pytest

from keystead.inventory.documents.opening import MOST_BYTES, NotADocument, open_bytes, open_document, open_text


def test_lines_end_in_newlines_alone_and_control_characters_are_dropped():
    assert open_text("a\r\nb\rc\x01d\u00a0e", "x").text == "a\nb\ncd e"


def test_a_large_document_is_cut_at_the_end_of_a_line(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"0123456789\n" * (MOST_BYTES // 5))
    opened = open_document(path)
    assert opened.text.endswith("9\n") and len(opened.text) <= MOST_BYTES
    assert opened.partial.startswith("only the first 1 MB of 2.2 MB")


def test_a_very_long_line_is_cut():
    opened = open_text("short\n" + "x" * 100_000, "x")
    assert "1 very long line was cut" in opened.partial and len(opened.text) < 30_000


def test_lines_with_replaced_bytes_are_told():
    assert open_bytes(b"fine\nf\xfcr alle\nfine", "x").damaged == (2,)


@pytest.mark.parametrize("raw", [b"", b"\0\1\2", b"\xff" * 100])
def test_what_is_no_text_is_refused(raw):
    with pytest.raises(NotADocument):
        open_bytes(raw, "x")
