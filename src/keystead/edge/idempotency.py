"""Requests that a client may send again: the first answer is kept for a day, and given to every repeat.

A client names the request with a key of its own choice. Entries are found by a hash of caller and key, so that nobody
meets somebody else's. Answers may hold personal data: each is encrypted with a key made from the installation's secret,
the caller and the client's key, which is kept nowhere; whoever reads the server reads nothing.
"""

import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec

from keystead.edge.callers import Caller
from keystead.edge.keys import CLAIM_SECONDS, REPEAT, REPEAT_SECONDS
from keystead.edge.refusals import KeyInUse, KeyReused
from keystead.edge.tickets import Tickets
from keystead.engine import Script, Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Invalid, Unavailable
from keystead.telemetry import counts, logger

HEADER: Final = "idempotency-key"
REPLAYED_HEADER: Final = "idempotent-replayed"
MOST_KEY_CHARACTERS: Final = 200
MOST_ANSWER_BYTES: Final = 256 * 1024
_CLAIM: Final = Script("keystead.edge", "scripts/repeat_claim.lua")
_END: Final = Script("keystead.edge", "scripts/repeat_end.lua")
_NONCE_BYTES: Final = 12

counts.describe("edge_repeats", "requests with an idempotency key, by what became of them")
_log = logger("edge")


class KeptAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What was answered. ``whole`` is false when the answer was too long to keep, or never ended."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Begun:
    """A request that is the first with its key, until it is ended."""

    entry: str
    claim: str
    raw_secret: bytes


class Repeats:
    """Begins requests that carry a key, and keeps what they were answered."""

    def __init__(self, valkey: Valkey, tickets: Tickets) -> None:
        self._valkey, self._tickets = valkey, tickets

    async def begin(self, caller: Caller, key: str, request: bytes) -> Begun | KeptAnswer:
        """The right to run a request, or what it was answered before; one round trip.

        ``request`` is all that the answer may depend on. Refuses with ``Invalid`` a key that is none, with
        ``KeyReused`` one that was used for another request, with ``KeyInUse`` one whose request still runs. A process
        that dies lets go of the key after a minute: then the request runs again. ``Unavailable`` while nobody can
        remember.
        """
        if not 1 <= len(key) <= MOST_KEY_CHARACTERS or not (key.isascii() and key.isprintable()):
            raise Invalid(f"the header {HEADER} takes 1 to {MOST_KEY_CHARACTERS} printable ASCII characters")
        # Two tokens of one name may be for different things; an answer is for whoever may ask for it.
        scopes = ",".join(sorted(caller.scopes))
        whose = f"{caller.kind.value}\0{caller.subject}\0{scopes}\0{key}".encode("utf-8", "surrogatepass")
        begun = Begun(sha256(whose).hexdigest(), secrets.token_urlsafe(12), self._tickets.derive(b"repeats", whose))
        try:
            reply: list[Any] = await _CLAIM(
                self._valkey, keys=[REPEAT.at(begun.entry)],
                args=[sha256(request).hexdigest(), begun.claim, CLAIM_SECONDS * 1000],
            )
        except ErrorReply as error:
            raise Unavailable("requests with an idempotency key cannot be remembered: the server refuses to write; is "
                              "its memory full?") from error
        said = reply[0].decode()
        counts.add("edge_repeats", outcome=said)
        if said == "claimed":
            return begun
        if said == "other":
            raise KeyReused("this idempotency key was used for another request; take a new one for each")
        if said == "running":
            raise KeyInUse("a request with this idempotency key is still running; ask again", retry_after_seconds=1)
        answer = _opened(begun.raw_secret, reply[1], begun.entry)
        if not answer.whole:
            raise KeyInUse("this request was done, and its answer was too long to be kept")
        return answer

    async def keep(self, begun: Begun, answer: KeptAnswer) -> bool:
        """Keep the answer for a day; one round trip. False, and nothing is kept, if that was not possible."""
        if len(answer.body) > MOST_ANSWER_BYTES:
            answer = KeptAnswer(answer.status, whole=False)
        return await self._end(begun, REPEAT_SECONDS, _sealed(begun.raw_secret, answer, begun.entry))

    async def prolong(self, begun: Begun) -> bool:
        """The request still runs."""
        return await self._end(begun, CLAIM_SECONDS, b"")

    async def let_go(self, begun: Begun) -> bool:
        """The request did nothing: the key is free again."""
        return await self._end(begun, 0, b"")

    async def _end(self, begun: Begun, held_seconds: float, raw: bytes) -> bool:
        try:
            done: bool = await _END(self._valkey, keys=[REPEAT.at(begun.entry)],
                                    args=[begun.claim, round(held_seconds * 1000), raw], decode=bool)
        except (Unavailable, ErrorReply):
            # The request itself was done. A repeat may run it again once the claim has lapsed.
            _log.warning("what became of a request with an idempotency key was not kept")
            counts.add("edge_repeats", outcome="not_kept")
            return False
        return done


def _sealed(raw_secret: bytes, answer: KeptAnswer, entry: str) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(raw_secret).encrypt(nonce, msgspec.msgpack.encode(answer), entry.encode())


def _opened(raw_secret: bytes, raw: bytes, entry: str) -> KeptAnswer:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        plain = AESGCM(raw_secret).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], entry.encode())
        return msgspec.msgpack.decode(plain, type=KeptAnswer)
    except (InvalidTag, ValueError, msgspec.MsgspecError):
        # The secret of the installation was changed, or an older version wrote it: it was done all the same.
        return KeptAnswer(0, whole=False)
