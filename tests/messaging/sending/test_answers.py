"""Answers of providers: whole, however they arrive, and no more than anybody needs."""

import pytest

from keystead.messaging.sending.answers import pause_of, read_body


class Arriving:
    """A body in pieces, as a network brings it."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    async def read(self, n: int = -1, /) -> bytes:
        if not self.pieces:
            return b""
        piece = self.pieces.pop(0)
        if len(piece) > n:
            self.pieces.insert(0, piece[n:])
        return piece[:n]


async def test_a_body_is_read_to_its_end_however_many_pieces_it_comes_in() -> None:
    assert await read_body(Arriving(b'{"Messa', b'geId":', b'"m-1"}'), 100) == b'{"MessageId":"m-1"}'
    assert await read_body(Arriving(), 100) == b""


async def test_a_body_without_end_is_cut_off() -> None:
    assert await read_body(Arriving(*[b"abc"] * 1000), 10) == b"abcabcabca"


@pytest.mark.parametrize(("said", "seconds"), [
    (None, 0), ("", 0), ("7", 7), ("0.5", 0.5), ("-3", 0), ("1e9", 3600), ("inf", 3600), ("nan", 0),
    ("Wed, 21 Oct 2026 07:28:00 GMT", 0),
])
def test_a_pause_is_a_number_of_seconds_that_somebody_can_wait(said: str | None, seconds: float) -> None:
    assert pause_of(said) == seconds
