"""Lines of a CSV file of contacts: read a few at a time, each checked by itself."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from keystead.errors import Invalid
from keystead.members.addresses import checked_region, normal_email, normal_phone

COLUMNS: Final = ("user_sub", "email", "phone", "verified", "receives_notifications")
MOST_LINE_BYTES: Final = 4096
_YES: Final = frozenset(("true", "yes", "1"))
_NO: Final = frozenset(("false", "no", "0"))


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A line that was left out, and what is wrong with it. The first line of a file is number 1."""

    number: int
    problem: str


@dataclass(frozen=True, slots=True)
class ContactLine:
    """What a line says of one person. An empty address is none."""

    number: int
    user_sub: str
    email: str
    phone: str
    verified: bool
    receives_notifications: bool


class ContactLines:
    """Reads a file with a header, line by line: a stray quote, or bytes that are no text, spoil no other line.

    Whatever the size of the file and of its lines, only a few of them are held.
    """

    def __init__(self, file: BinaryIO, region: str | None = None) -> None:
        """``region``: the country that numbers without a leading + are dialled in.

        ``Invalid`` for a wrong header, and for a country that does not exist.
        """
        self._file, self._region = file, None if region is None else checked_region(region)
        self._number = 0
        self._names = self._header()

    def take(self, most: int) -> list[ContactLine | BrokenLine]:
        """Up to ``most`` of the next lines, empty ones left out; an empty list at the end of the file."""
        found: list[ContactLine | BrokenLine] = []
        for raw in self._raw_lines():
            try:
                text = _text(raw)
                if text.strip():
                    found.append(self._read(text))
            except Invalid as error:
                found.append(BrokenLine(self._number, str(error)))
            if len(found) >= most:
                break
        return found

    def _raw_lines(self) -> Iterator[bytes | None]:
        """Lines without their ends; None for one that is too long."""
        while raw := self._file.readline(MOST_LINE_BYTES + 2):
            self._number += 1
            whole = len(raw.rstrip(b"\r\n")) <= MOST_LINE_BYTES
            while not raw.endswith(b"\n") and (rest := self._file.readline(MOST_LINE_BYTES)):
                raw, whole = rest, False
            yield raw.rstrip(b"\r\n") if whole else None

    def _header(self) -> tuple[str, ...]:
        raw = next(self._raw_lines(), b"")
        text = _text(raw).removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")  # some programs begin a file with it
        names = tuple(name.strip().lower() for name in _fields(text))
        unknown = [name for name in names if name not in COLUMNS]
        if unknown or "user_sub" not in names or not {"email", "phone"} & set(names) or len(set(names)) < len(names):
            raise Invalid(
                "the first line of the file must name its columns: user_sub, email or phone or both, and optionally "
                "verified and receives_notifications, each once"
            )
        return names

    def _read(self, text: str) -> ContactLine:
        fields = _fields(text)
        if len(fields) != len(self._names):
            raise Invalid(f"the line has {len(fields)} fields, and the header has {len(self._names)}")
        said = {name: field.strip() for name, field in zip(self._names, fields, strict=True)}
        email, phone = said.get("email", ""), said.get("phone", "")
        if not said["user_sub"]:
            raise Invalid("the line does not say whose address it is: user_sub is empty")
        if not email and not phone:
            raise Invalid("the line has no address: email and phone are empty")
        return ContactLine(
            self._number, said["user_sub"][:255], normal_email(email) if email else "",
            normal_phone(phone, self._region) if phone else "", _flag("verified", said.get("verified"), False),
            _flag("receives_notifications", said.get("receives_notifications"), True),
        )


def _text(raw: bytes | None) -> str:
    if raw is None:
        raise Invalid(f"the line is too long; at most {MOST_LINE_BYTES} bytes can be")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise Invalid("the line is no text in UTF-8") from None
    if "\0" in text:
        raise Invalid("the line holds a NUL character")
    return text


def _fields(text: str) -> list[str]:
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        raise Invalid(f"the line is no CSV: {error}") from None


def _flag(name: str, said: str | None, absent: bool) -> bool:
    if not said:
        return absent
    if said.lower() in _YES:
        return True
    if said.lower() in _NO:
        return False
    raise Invalid(f"{name} must be true or false")
