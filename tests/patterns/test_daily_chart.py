"""The frame that carries whole days of a family to all processes."""

from zoneinfo import ZoneInfo

import pytest

from keystead import dates
from keystead.keys import Undecodable
from keystead.patterns.cache_frames import Push
from keystead.patterns.daily_chart import day_pushes, days_pushes

HOME = ZoneInfo("America/Los_Angeles")
CODEC = days_pushes(HOME, held_days=2)
PUSH = Push({"start_unix_date": "19241", "end_unix_date": "19331"}, b"packed days")


def test_the_frame_is_the_documented_one():
    raw = CODEC.encode(PUSH)
    assert raw == (19241).to_bytes(4, "big") + (19331).to_bytes(4, "big") + (11).to_bytes(8, "big") + b"packed days"
    assert CODEC.decode(raw + b"ignored").raw == b"packed days"


def test_an_answer_ends_at_the_midnight_after_the_day_it_was_asked_for():
    """With two days held, a range that ends before the 5th was asked for on the 6th."""
    until = CODEC.decode(CODEC.encode(PUSH)).until
    assert until == dates.day_starts_at(dates.UnixDate(19333), HOME)


def test_a_frame_cut_anywhere_is_refused_whole():
    raw = CODEC.encode(PUSH)
    for length in range(len(raw)):
        with pytest.raises(Undecodable):
            CODEC.decode(raw[:length])


def test_days_that_are_no_range_are_refused():
    for start, end in ((5, 5), (6, 5), (5, 2**32 - 1)):
        raw = start.to_bytes(4, "big") + end.to_bytes(4, "big") + bytes(8)
        with pytest.raises(Undecodable, match="range"):
            CODEC.decode(raw)


def test_the_frame_of_one_day_is_the_documented_one_and_ends_with_its_day():
    codec = day_pushes(HOME)
    raw = codec.encode(Push({"unix_date": "19331"}, b'{"labels":[]}'))
    assert raw == (19331).to_bytes(4, "big") + b'{"labels":[]}'
    push = codec.decode(raw)
    assert push.raw == b'{"labels":[]}' and push.until == dates.day_starts_at(dates.UnixDate(19332), HOME)
    for spoiled in (b"", raw[:3], b"\xff" * 4):
        with pytest.raises(Undecodable):
            codec.decode(spoiled)
