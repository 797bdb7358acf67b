"""Keys that wait for their expiry."""

from keystead.guard.fresh import FreshKeys


class Watch:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_key_is_overdue_once_when_no_expiry_came() -> None:
    watch = Watch()
    fresh = FreshKeys(2.0, watch)
    fresh.made("a", "a", "INCR")
    fresh.made("b", "b", "INCR")
    fresh.expires("b")
    assert list(fresh.overdue()) == []
    watch.now += 3
    assert [key for key, _ in fresh.overdue()] == ["a"]
    assert list(fresh.overdue()) == [] and len(fresh) == 0


def test_key_that_has_its_expiry_keeps_it() -> None:
    fresh = FreshKeys(2.0)
    fresh.expires("a")
    fresh.made("a", "a", "INCR")
    assert len(fresh) == 0
    fresh.gone("a")
    fresh.made("a", "a", "INCR")
    assert len(fresh) == 1


def test_text_and_bytes_spell_the_same_key() -> None:
    fresh = FreshKeys(-1.0)
    for key, other in (("a", b"a"), (b"b", "b"), (b"\xff", b"\xff"), (7, "7"), ("zoë", "zoë".encode())):
        fresh.made(key, "x", "INCR")
        fresh.expires(other)
    assert list(fresh.overdue()) == []
    fresh.gone(b"a")
    fresh.made("a", "x", "INCR")
    assert [key for key, _ in fresh.overdue()] == ["a"]


def test_memory_is_bounded() -> None:
    fresh = FreshKeys(1e9)
    for number in range(50_000):
        fresh.made(f"made:{number}", "made:{n}", "INCR")
        fresh.expires(f"settled:{number}")
    assert len(fresh) == 10_000
    assert len(fresh._settled) + len(fresh._settled_before) <= 20_000
