"""TOML text that any reader understands as it was meant."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from keystead.inventory.files_toml import header_lines, table_lines

PLAIN = st.recursive(
    st.booleans() | st.integers(-10**9, 10**9) | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=("Cs",))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))),
                                                                 inner, max_size=3), max_leaves=5)


@given(st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), PLAIN, max_size=4))
def test_every_table_is_read_back(plain: dict[str, object]) -> None:
    assert tomllib.loads("\n".join(table_lines("[[key]]", plain))) == {"key": [plain]}


def test_long_list_has_a_line_for_each_element() -> None:
    assert table_lines("[[key]]", {"readers": ["x" * 60, "y" * 60]}) == [
        "[[key]]", "readers = [", f'    "{"x" * 60}",', f'    "{"y" * 60}",', "]"]


def test_headers_are_found_with_their_lines() -> None:
    text = "# [[no]]\n[[key]] # yes\n"
    text += "a = '[[no]]'\nb = '''\n[[no]]\n'''\n  [[ channel ]]\nc = [\n  \"#'''\",\n]\n[[key]]\n"

    assert header_lines(text) == [("key", 2), ("channel", 7), ("key", 11)]
