import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.keys.spelling import read_key, spell_key


@pytest.mark.parametrize(
    ("raw_key", "spelled"),
    [
        (b"user:7", "user:7"),
        ("ключ:é".encode(), "ключ:é"),
        (b"bad:\xff\xfe", r"bad:\xff\xfe"),
        (b"two\nlines", r"two\x0alines"),
        (b"back\\slash", r"back\\slash"),
        (b"\x1b[31mred", r"\x1b[31mred"),
        (b"", ""),
    ],
)
def test_key_is_spelled_as_printable_text(raw_key, spelled):
    assert spell_key(raw_key) == spelled
    assert read_key(spelled) == raw_key


def test_a_lone_backslash_typed_by_a_person_stands_for_itself():
    assert read_key(r"path\dir\xzz") == b"path\\dir\\xzz"


def test_the_usual_escapes_are_understood():
    assert read_key(r"two\nlines\tand\\n") == b"two\nlines\tand\\n"


@given(st.binary() | st.text().map(str.encode) | st.sampled_from([b"\\x41", b"\\\\x41", b"\\\xff"]))
def test_every_key_reads_back_to_the_same_bytes(raw_key):
    spelled = spell_key(raw_key)
    assert spelled.isprintable()
    assert read_key(spelled) == raw_key
