"""From bytes to text: what a document must be before it is read, and how much of it is.

A document may be anything a person keeps by hand. It is never refused for a wrong byte; it is refused if it is no text
at all, and only its beginning is read if it is far larger than a person writes.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keystead.errors import KeysteadError

MOST_BYTES: Final = 1024 * 1024
MOST_LINE_CHARACTERS: Final = 20_000

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MARKS: Final = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))


class NotADocument(KeysteadError):
    """What was given is not text, or cannot be read; the message says which file and why."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The text of a document with lines ended by newlines alone, and why it is not the whole of it (or nothing)."""

    text: str
    partial: str = ""
    damaged: tuple[int, ...] = ()  # lines on which bytes were replaced because they are not valid


def open_document(path: Path) -> Opened:
    """The text of the file, at most its first few megabytes. Raises ``NotADocument``."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
            size = path.stat().st_size
    except OSError as error:
        raise NotADocument(f"{path}: cannot be read: {error.strerror or error}") from None
    return open_bytes(raw, str(path), size)


def open_bytes(raw: bytes, name: str, size: int | None = None) -> Opened:
    """The text that ``raw`` holds, the beginning of a document of ``size`` bytes. Raises ``NotADocument``."""
    size = len(raw) if size is None else size
    if not raw.strip():
        raise NotADocument(f"{name}: is empty")
    raw = raw[:MOST_BYTES]
    partial = ""
    if size > MOST_BYTES:
        partial = f"only the first {MOST_BYTES >> 20} MB of {size / (1 << 20):.1f} MB were read"
        raw = raw[:raw.rfind(b"\n") + 1] or raw
    encoding = next((found for mark, found in _MARKS if raw.startswith(mark)), "utf-8")
    raw = raw[2:] if encoding.startswith("utf-16") else raw.removeprefix(b"\xef\xbb\xbf")
    if encoding == "utf-8" and _is_binary(raw):
        raise NotADocument(f"{name}: is not text (it holds bytes that no document has)")
    text = raw.decode(encoding, "replace")
    damaged: tuple[int, ...] = ()
    if "\ufffd" in text:
        if encoding == "utf-8" and text.count("\ufffd") > 0.3 * len(text):
            raise NotADocument(f"{name}: is not text (most of its bytes are not UTF-8)")
        lines = text.split("\n")
        damaged = tuple(number for number, line in enumerate(lines, 1) if "\ufffd" in line)
    return Opened(*_bounded(_CONTROL.sub("", text), partial), damaged)


def open_text(text: str, name: str) -> Opened:
    """As ``open_bytes``, for text that somebody has already."""
    return open_bytes(text.encode("utf-8", "replace"), name)


def _bounded(text: str, partial: str) -> tuple[str, str]:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u00a0", " ")
    text = text.replace("\u200b", "").expandtabs(8) if "\t" not in text else text.replace("\u200b", "")
    if len(text) < MOST_LINE_CHARACTERS:
        return text, partial
    lines = text.split("\n")
    if max(map(len, lines)) <= MOST_LINE_CHARACTERS:
        return text, partial
    cut = sum(len(line) > MOST_LINE_CHARACTERS for line in lines)
    said = f"{cut} very long line{'s were' if cut > 1 else ' was'} cut at {MOST_LINE_CHARACTERS} characters"
    return "\n".join(line[:MOST_LINE_CHARACTERS] for line in lines), f"{partial}; {said}" if partial else said


def _is_binary(raw: bytes) -> bool:
    beginning = raw[:65536]
    if b"\0" in beginning:
        return True
    control = len(re.findall(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]", beginning))
    return control > max(8, 0.02 * len(beginning))
