"""Calls of the provider: forms whose signature is checked before anything in them is believed."""

import base64
import binascii
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect

from keystead.edge import TooLarge
from keystead.messaging.signatures import is_signed_by_twilio

MOST_BODY_BYTES: Final = 1024 * 1024
_MOST_FIELDS: Final = 1000
_FORM: Final = re.compile(r"application/x-www-form-urlencoded\s*(;\s*charset\s*=\s*\"?utf-?8\"?\s*)?;?", re.IGNORECASE)


class Distrust(Enum):
    """Why a call is not believed: the HTTP status it is answered with, and the name it is counted under."""

    UNSIGNED = 401, "signature_missing"
    NO_FORM = 400, "body_parse_error"
    FORGED = 403, "signature_invalid"
    TOO_LARGE = 413, "body_max_size_exceeded"
    UNREADABLE = 500, "body_read_error"

    @property
    def http_status(self) -> int:
        return self.value[0]

    @property
    def counted_as(self) -> str:
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it came. ``url`` is how the world spells it, query included."""

    url: str
    signature: str | None
    content_type: str
    body: AsyncIterator[bytes]


async def believed(call: Call, auth_token: str) -> dict[str, str] | Distrust:
    """The fields of a call that the provider signed, or why not. The steps and their order are part of the contract."""
    if not call.signature:
        return Distrust.UNSIGNED
    if not _FORM.fullmatch(call.content_type.strip()):
        return Distrust.NO_FORM
    if not _is_base64(call.signature):
        return Distrust.FORGED
    body = await _read(call.body)
    if isinstance(body, Distrust):
        return body
    if not body:
        return Distrust.FORGED
    fields = parsed(body)
    if fields is None:
        return Distrust.NO_FORM
    # Without a token everybody could sign, so nobody did.
    signed = bool(auth_token) and is_signed_by_twilio(auth_token, call.url, fields, call.signature)
    return fields if signed else Distrust.FORGED


async def _read(chunks: AsyncIterator[bytes]) -> bytes | Distrust:
    body = bytearray()
    try:
        async for chunk in chunks:
            body += chunk
            if len(body) > MOST_BODY_BYTES:
                return Distrust.TOO_LARGE
    except TooLarge:  # the server's own limit
        return Distrust.TOO_LARGE
    except (ClientDisconnect, OSError):
        return Distrust.UNREADABLE
    return bytes(body)


def parsed(body: bytes) -> dict[str, str] | None:
    """The fields of a form, blank ones too, since they are signed. None for what is no form, or has a field twice."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=True, errors="strict",
                          max_num_fields=_MOST_FIELDS)
    except ValueError:
        return None
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else None


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
