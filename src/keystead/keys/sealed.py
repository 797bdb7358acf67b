"""Sealed fields: what a server, its files and its backups hold of them can be read only with a key.

A struct says which of its fields are to be sealed by their type, ``Sealed[str]``. Whether they are is up to the
process: inside ``sealing`` they are written sealed, elsewhere as they are. What was written before is read either way.
Codecs are made once, where keys are declared, and settings are known later: so the secrets are of the process, and not
of a codec.

The cipher is AES-256-SIV (RFC 5297): it also proves that nothing was changed, and the same value sealed again is the
same bytes, so that an element can be found by its value. What is beside the sealed fields is bound to them: they do not
open beside anything else.
"""

import base64
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeVar, cast, get_args, get_origin

import msgspec

from keystead.errors import Invalid
from keystead.keys.codecs import Codec, JsonCodec, Undecodable

T = TypeVar("T")


class _Seal:
    """Marks a field."""


Sealed = Annotated[T, _Seal()]

LEAST_CHARACTERS: Final = 32  # of a secret
TOKEN: Final = re.compile(rb"[0-9a-f]{8}\.[A-Za-z0-9_-]+=*")
_FRESH_BYTES: Final = 16
_OPENING: Final = b',"sealed":"'
_NO_KEY: Final = "which is not among the payload keys"
_MARK: Final = b"\xff"  # begins no UTF-8 text and no JSON


@dataclass(frozen=True, slots=True)
class _Cipher:
    name: bytes
    aead: Any
    refusal: type[Exception]


_rings: list[tuple[_Cipher, ...]] = []


@contextmanager
def sealing(secrets: str | Sequence[str]) -> Iterator[None]:
    """Seal with the first of these secrets, and open with each of them, as long as it lasts; without one, seal nothing.

    One text holds several with commas between them. Refuses a secret that is too short to be none that can be guessed.
    """
    given = secrets.split(",") if isinstance(secrets, str) else secrets
    ring = tuple(_cipher(secret.strip()) for secret in given if secret.strip())
    _rings.append(ring)
    try:
        yield
    finally:
        _rings.remove(ring)


def is_sealing() -> bool:
    """Whether this process seals what it writes."""
    return bool(_rings and _rings[-1])


def seal(plain: bytes, bound: bytes) -> bytes:
    """Only with ``is_sealing``: text that ``unseal`` opens beside the same ``bound``. The same input, the same text."""
    cipher = _rings[-1][0]
    return cipher.name + b"." + base64.urlsafe_b64encode(cipher.aead.encrypt(plain, [bound]))


def unseal(token: bytes, bound: bytes) -> bytes:
    """What was sealed. ``Undecodable`` if no secret of this process fits, or if anything was changed."""
    name, _, text = token.partition(b".")
    cipher = next((each for ring in reversed(_rings) for each in ring if each.name == name), None)
    if cipher is None:
        raise Undecodable(f"sealed with the key {name.decode(errors='replace')}, {_NO_KEY}")
    try:
        return cast(bytes, cipher.aead.decrypt(base64.b64decode(text, altchars=b"-_", validate=True), [bound]))
    except (ValueError, cipher.refusal):
        raise Undecodable(f"sealed with the key {name.decode()}, and changed since") from None


def lacks_key(error: Exception) -> bool:
    """Whether something could be read, had this process the key: so it is to be kept, whatever else is done with it."""
    return _NO_KEY in str(error)


def _cipher(secret: str) -> _Cipher:
    if len(secret) < LEAST_CHARACTERS:
        raise Invalid(f"a payload key has {LEAST_CHARACTERS} characters or more, chosen by chance; one is shorter")
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV
    except ImportError:
        raise Invalid("payload keys need the cryptography package: pip install 'keystead[messaging]'") from None
    key = hashlib.blake2b(secret.encode(), digest_size=64, person=b"keystead payload").digest()
    name = hashlib.blake2b(secret.encode(), digest_size=4, person=b"keystead keyname").hexdigest()
    return _Cipher(name.encode(), AESSIV(key), InvalidTag)


# -- codecs ------------------------------------------------------------------------------------------------------------


def is_sealed(annotation: Any) -> bool:
    """Whether a field of this type is to be sealed."""
    return get_origin(annotation) is Annotated and any(isinstance(said, _Seal) for said in get_args(annotation)[1:])


def unmarked(annotation: Any) -> Any:
    """The type that is sealed, or the type itself."""
    return get_args(annotation)[0] if is_sealed(annotation) else annotation


def sealed_fields(of: Any) -> tuple[str, ...]:
    """The fields of a struct that are to be sealed, as they are called in JSON; none of any other type."""
    if not (isinstance(of, type) and issubclass(of, msgspec.Struct)):
        return ()
    return tuple(field.encode_name for field in msgspec.structs.fields(of) if is_sealed(field.type))


class SealedJson(JsonCodec[T]):
    """JSON of a struct with fields to be sealed. These stand together in one more, ``sealed``, which is the last."""

    def __init__(self, of: type[T]) -> None:
        super().__init__(of)
        hidden = sealed_fields(of)
        fields = msgspec.structs.fields(cast(Any, of))
        self._clear = tuple((field.encode_name, field.name) for field in fields if field.encode_name not in hidden)
        self._hidden = tuple((field.encode_name, field.name) for field in fields if field.encode_name in hidden)
        config = cast(Any, of).__struct_config__
        self._tag = {config.tag_field: config.tag} if config.tag_field else {}

    def encode(self, value: T, /) -> bytes:
        if not is_sealing():
            return super().encode(value)
        write = self._encoder.encode
        clear = write(self._tag | _present(value, self._clear))
        hidden = write(_present(value, self._hidden))
        return clear[:-1] + _OPENING + seal(hidden, clear) + b'"}'

    def decode(self, raw: bytes, /) -> T:
        at = raw.rfind(_OPENING)
        if at < 0 or not raw.endswith(b'"}'):
            return super().decode(raw)
        token = raw[at + len(_OPENING):-2]
        if TOKEN.fullmatch(token) is None:
            return super().decode(raw)
        hidden = unseal(token, raw[:at] + b"}")
        return super().decode(raw[:at] + b"," + hidden[1:])


def _present(value: object, fields: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """The fields that are set: what is unset does not travel, as in any other struct."""
    found = ((shown, getattr(value, name)) for shown, name in fields)
    return {shown: held for shown, held in found if held is not msgspec.UNSET}


class SealedField(Generic[T]):
    """A field of a hash, sealed by itself. Chance goes into it, so that nobody sees which records hold the same."""

    def __init__(self, inner: Codec[T], field: str) -> None:
        self._inner, self._bound = inner, field.encode()
        self.name = inner.name

    def encode(self, value: T, /) -> bytes:
        plain = self._inner.encode(value)
        return _MARK + seal(os.urandom(_FRESH_BYTES) + plain, self._bound) if is_sealing() else plain

    def decode(self, raw: bytes, /) -> T:
        return self._inner.decode(unseal(raw[1:], self._bound)[_FRESH_BYTES:] if raw.startswith(_MARK) else raw)
