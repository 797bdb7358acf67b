"""Lines now and then."""

from keystead.demo.telling import Telling


def test_what_comes_too_soon_is_left_out_unless_it_matters() -> None:
    said: list[str] = []
    now = [100.0]
    telling = Telling(said.append, every_seconds=4, clock=lambda: now[0])
    telling.now_and_then("first")
    telling.now_and_then("too soon")
    telling.at_once("it matters")
    now[0] += 4
    telling.now_and_then("later")
    telling.now_and_then("")
    assert said == ["first", "it matters", "later"]
