"""Log lines without personal data: the last resort behind rooms that do not write any into them.

What looks like an address, a number or a credential is taken out of every text. Of an exception that is not ours only
the kind and the place are told: its words may be those of a message, and nothing can tell a name from other words.
"""

import re
import traceback
from collections.abc import Iterator
from typing import Final

from keystead.errors import KeysteadError

HIDDEN: Final = "•••"
MOST_FRAMES: Final = 30
MOST_CAUSES: Final = 5
# Every run of characters is tried from its beginning only and never taken back, so the time grows with the text alone.
_PERSONAL: Final = re.compile(
    r"(?:(?<![^\s@'\"<>=:,;()])|(?<=%40))(?:[^\s@%'\"<>=:,;()]++|%(?!40))++(?:@|%40)[\w-]++(?:\.[\w-]++)++"  # an email
    r"|(?:\+|%2B)\d[\d ().-]{5,20}\d"  # a phone number
    r"|ExponentPushToken\[[^\]\s]*+\]?|ExpoPushToken\[[^\]\s]*+\]?"
    r"|\bksk_\w++"
    r"|(?i:\bbearer\s++)[\w.~+/=-]{8,}+"
    r"|(?<![\w-])[\w-]{16,}+\.[\w-]{16,}+(?:\.[\w-]{16,}+)?"  # a signed token: parts of base64 with dots between
)
_HINT: Final = re.compile(r"@|%40|\+|%2B|Expo|ksk_|(?i:bearer)|[\w-]{16}\.[\w-]{16}")


def scrubbed(text: str) -> str:
    """The text without what looks like an address, a number, or something that lets somebody in."""
    return _PERSONAL.sub(HIDDEN, text) if _HINT.search(text) else text


def failure_told(error: BaseException) -> str:
    """An exception in one line for a log: its kind, and its words only if they are ours."""
    if isinstance(error, KeysteadError) and str(error):
        return scrubbed(f"{type(error).__name__}: {error}")
    return type(error).__name__


def failure_traced(error: BaseException) -> str:
    """Where an exception came from, cause by cause, innermost first, as a traceback without foreign words."""
    return "\n".join(_told(each) for each in reversed(list(_chain(error))))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen and len(seen) < MOST_CAUSES:
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup) and one.exceptions:
            one = one.exceptions[0]
        else:
            one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-MOST_FRAMES:]
    lines = [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}' for frame in frames]
    return "\n".join([*lines, failure_told(error)])
