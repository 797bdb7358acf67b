"""How a raw key is spelled for people, and read back.

A key is bytes; a terminal, a JSON document and a web page want text. Printable text stands as it is, a backslash is
doubled, and every other byte is written ``\\xNN``. Reading the spelling gives the same bytes again.
"""

import re

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([\\nrt]))")
_LETTERS = {"\\": b"\\", "n": b"\n", "r": b"\r", "t": b"\t"}


def spell_key(raw_key: bytes) -> str:
    """The key as one line of printable text; ``read_key`` turns it back into the same bytes."""
    text = raw_key.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(map(_spell, text))


def _spell(character: str) -> str:
    if character == "\\":
        return r"\\"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def read_key(spelled: str) -> bytes:
    """The bytes of a key written by ``spell_key`` or typed by a person.

    ``\\xNN``, a doubled backslash and the usual ``\\n``, ``\\r`` and ``\\t`` are escapes; any other backslash
    stands for itself.
    """
    pieces: list[bytes] = []
    position = 0
    for escape in _ESCAPE.finditer(spelled):
        pieces.append(spelled[position : escape.start()].encode("utf-8", "surrogateescape"))
        pieces.append(bytes.fromhex(escape.group(1)) if escape.group(1) else _LETTERS[escape.group(2)])
        position = escape.end()
    pieces.append(spelled[position:].encode("utf-8", "surrogateescape"))
    return b"".join(pieces)
