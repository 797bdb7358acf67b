"""Lines of a CSV file of contacts: each stands or falls by itself."""

import io
import tracemalloc

import pytest

from keystead.errors import Invalid
from keystead.members.contacts_lines import MOST_LINE_BYTES, BrokenLine, ContactLine, ContactLines

HEADER = b"user_sub,email,phone,verified\n"


def read(text: bytes, header: bytes = HEADER) -> list[ContactLine | BrokenLine]:
    return ContactLines(io.BytesIO(header + text)).take(1000)


def test_columns_come_in_any_order_and_empty_lines_are_nothing() -> None:
    found = read(b'ada@example.com,"user_1"\r\n\r\n  \nBen@Example.com,user_2', b"\xef\xbb\xbfEmail,user_sub\r\n")
    assert found == [
        ContactLine(2, "user_1", "ada@example.com", "", False, True),
        ContactLine(5, "user_2", "Ben@example.com", "", False, True),
    ]


@pytest.mark.parametrize(("line", "problem"), [
    (b"user_1,not an address,,", "no email address"), (b"user_1,,12,", "phone number"), (b"user_1,,,", "no address"),
    (b",a@example.com,,", "whose address"), (b"user_1,a@example.com", "has 2 fields, and the header has 4"),
    (b"user_1,a@example.com,,,,,", "has 7 fields"), (b"user_1,a@example.com,,perhaps", "verified must be true or"),
    (b'"user_1,a@example.com,,', "no CSV"), (b"user_1,\xff\xfe@example.com,,", "UTF-8"),
    (b"user_1,a\0@example.com,,", "NUL"), (b"x" * (MOST_LINE_BYTES + 1), "too long"), (b"x" * 1_000_000, "too long"),
])
def test_a_broken_line_is_told_with_its_number_and_the_next_one_is_read(line: bytes, problem: str) -> None:
    good = b"user_2,ok@example.com,,true\n"
    before, broken, after = read(good + line + b"\n" + good)
    assert isinstance(broken, BrokenLine) and broken.number == 3 and problem in broken.problem
    assert isinstance(before, ContactLine) and isinstance(after, ContactLine) and after.number == 4


@pytest.mark.parametrize("header", [b"", b"email,phone\n", b"user_sub\n", b"user_sub,email,email\n",
                                    b"user_sub,email,shoe_size\n", b"\x00\n", b'"user_sub,email\n'])
def test_a_header_that_cannot_be_used_is_refused(header: bytes) -> None:
    with pytest.raises(Invalid):
        ContactLines(io.BytesIO(header))


class Endless(io.RawIOBase):
    """A file that is one line without an end, of a hundred megabytes."""

    def __init__(self) -> None:
        self.left = 100_000_000

    def readline(self, size: int | None = -1, /) -> bytes:
        if self.left == 100_000_000:
            self.left -= 1
            return b"user_sub,email\n"
        taken = min(self.left, size or 0)
        self.left -= taken
        return b"x" * taken


def test_a_line_without_end_is_not_held_in_memory() -> None:
    tracemalloc.start()
    try:
        (broken,) = ContactLines(Endless()).take(10)  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(broken, BrokenLine) and peak < 5_000_000


def test_a_country_is_known_in_any_case_or_refused_before_the_first_line() -> None:
    file = b"user_sub,phone\nuser_ada,0151 23456789\n"
    (line,) = ContactLines(io.BytesIO(file), "de").take(5)
    assert isinstance(line, ContactLine) and line.phone == "+4915123456789"
    with pytest.raises(Invalid, match="country 'XX'"):
        ContactLines(io.BytesIO(file), "XX")
