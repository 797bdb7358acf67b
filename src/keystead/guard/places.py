"""Where keys stand in a command: small functions that pick them out of its words."""

from collections.abc import Callable, Sequence
from typing import Any

Words = Sequence[Any]  # a command as redis-py hands it on; the name is the first word, even a name of two words
Find = Callable[[Words], Sequence[Any]]


def at(*places: int) -> Find:
    """The words at these places, as far as they are there."""
    return lambda words: [words[place] for place in places if place < len(words)]


def row(first: int, last: int = -1, step: int = 1) -> Find:
    """From ``first`` to ``last``, which counts from the end when it is negative."""
    if last == -1:
        return lambda words: words[first::step]
    return lambda words: words[first : last + 1 : step]


def counted(number: int, step: int = 1) -> Find:
    """As many as the word at ``number`` says, right after it."""
    def find(words: Words) -> Sequence[Any]:
        count = whole(words[number]) if number < len(words) else None
        return () if count is None else words[number + 1 : number + 1 + count * step : step]
    return find


def after(*options: str, begin: int = 2) -> Find:
    """The word behind the last of these options that is given."""
    def find(words: Words) -> Sequence[Any]:
        for place in range(len(words) - 2, begin - 1, -1):
            if upper(words[place]) in options:
                return (words[place + 1],)
        return ()
    return find


def streams(words: Words) -> Sequence[Any]:
    """What XREAD and XREADGROUP read: the first half of what follows STREAMS."""
    begin = 4 if len(words) > 1 and upper(words[1]) == "GROUP" else 1  # a group may be called anything
    for place in range(begin, len(words)):
        if upper(words[place]) == "STREAMS":
            return words[place + 1 : place + 1 + (len(words) - place - 1) // 2]
    return ()


def migrated(words: Words) -> Sequence[Any]:
    """What MIGRATE carries: the key at its place, or everything behind KEYS."""
    if len(words) > 3 and words[3] not in ("", b""):
        return (words[3],)
    for place, word in enumerate(words):
        if place > 5 and upper(word) == "KEYS":
            return words[place + 1 :]
    return ()


def upper(word: Any) -> str:
    """An option as its name; empty for what can be no option, such as a number or a long value."""
    if isinstance(word, str):
        return word.upper() if len(word) < 24 else ""
    if isinstance(word, bytes):
        return word.decode("latin-1").upper() if len(word) < 24 else ""
    return ""


def whole(word: Any) -> int | None:
    """A word as a whole number, if it is one."""
    try:
        return int(word)
    except (TypeError, ValueError):
        return None
