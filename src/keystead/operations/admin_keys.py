"""Keys with which programs use the HTTP interface: made once, shown once, taken back at any time.

A key is ``ksk_<id>_<secret>``; rows hold the id and a hash of the secret. Whoever answers requests keeps all rows in
memory, so that checking one asks nobody; a key that is revoked elsewhere stops working within two seconds and a
moment, here at once. One that was made elsewhere is looked for when it first comes.
"""

import asyncio
import builtins
import hmac
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Self

from sqlalchemy import and_, bindparam, insert, or_, select, update

from keystead.clock import Clock
from keystead.edge import EVERY_SCOPE, SCOPES, Page, PageRequest, PositionText, keep_refreshed, page_of
from keystead.errors import Invalid, NotFound, Unavailable
from keystead.operations.tables import ADMIN_KEYS
from keystead.store import Database

KEY_PREFIX: Final = "ksk_"
KEY_SUBJECT: Final = "key:"
LOOK_AGAIN_SECONDS: Final = 0.5
USED_SECONDS: Final = 60.0
MOST_NAME: Final = 100
MOST_SECONDS: Final = 3650 * 86400
_ID_CHARACTERS: Final = 12
_MOST_CHARACTERS: Final = 200
_NO_KEY: Final = "there is no such key; `keystead admin key list` shows those there are"
_ALPHABET: Final = "abcdefghijkmnpqrstuvwxyz23456789"


@dataclass(frozen=True, slots=True)
class AdminKey:
    """A key as it is known afterwards, without its secret. ``last_used_at`` is told to about a minute."""

    id: str
    name: str
    scopes: frozenset[str]
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None
    last_used_at: float | None = None

    def state(self, now: float) -> str:
        """One word: active, revoked or expired."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made. ``text`` is what its holder sends; it is not to be had again, and no log shows it."""

    key: AdminKey
    text: str

    @property
    def id(self) -> str:
        return self.key.id

    def __repr__(self) -> str:
        return f"NewKey({self.key.id})"


class AdminKeys:
    """Makes keys, takes them back, and knows whose a key is."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._known: dict[str, tuple[AdminKey, bytes]] = {}
        self._used: dict[str, float] = {}
        self._looking = asyncio.Lock()
        self._looked_at = float("-inf")
        self._changes = 0  # made here, so that rows read before one are not taken for what is true after it

    @classmethod
    async def open(cls, database: Database, clock: Clock) -> Self:
        """Keys of this installation, known from the start; ``run`` keeps them so."""
        opened = cls(database, clock)
        await opened.refresh()
        return opened

    async def create(self, name: str, scopes: Iterable[str], *, lasts_seconds: float | None = None) -> NewKey:
        """A new key, good at once in this process and within seconds in others.

        ``Invalid`` for a name that says nothing, a scope that does not exist, or a time that is none. Without
        ``lasts_seconds`` it works until it is revoked.
        """
        wanted = frozenset(scopes)
        if not name.strip() or len(name) > MOST_NAME or not name.isprintable():
            raise Invalid(f"a key needs the name of the program that will hold it, of at most {MOST_NAME} characters")
        if not wanted:
            raise Invalid(f"say what the key may reach: {', '.join(SCOPES)}, or {EVERY_SCOPE} for everything")
        for scope in sorted(wanted - {*SCOPES, EVERY_SCOPE}):
            raise Invalid(f"there is no scope {scope!r}; known are {', '.join(SCOPES)}, and {EVERY_SCOPE} for all")
        if lasts_seconds is not None and not 0 < lasts_seconds <= MOST_SECONDS:
            raise Invalid("a key works for a while: more than nothing and at most ten years")
        now, secret = self._clock.now(), secrets.token_urlsafe(32)
        id = "".join(secrets.choice(_ALPHABET) for _ in range(_ID_CHARACTERS))
        key = AdminKey(id, name.strip(), wanted, now, None if lasts_seconds is None else now + lasts_seconds)
        digest = sha256(secret.encode())
        async with self._database.transaction() as sql:
            await sql.execute(insert(ADMIN_KEYS), {
                "id": id, "name": key.name, "secret_sha256": digest.hexdigest(), "scopes": " ".join(sorted(wanted)),
                "created_at": now, "expires_at": key.expires_at,
            })
        self._known[id] = key, digest.digest()
        self._changes += 1
        return NewKey(key, f"{KEY_PREFIX}{id}_{secret}")

    async def list(self) -> builtins.list[AdminKey]:
        """Every key there ever was, the newest first."""
        async with self._database.reading() as sql:
            rows = await sql.execute(select(*_SHOWN).order_by(ADMIN_KEYS.c.created_at.desc(), ADMIN_KEYS.c.id))
            return [_key(row) for row in rows]

    async def page(self, request: PageRequest) -> Page[AdminKey]:
        """``list``, page by page. Those made while somebody pages come before what they saw."""
        after = request.position(tuple[float, PositionText])
        query = select(*_SHOWN).order_by(ADMIN_KEYS.c.created_at.desc(), ADMIN_KEYS.c.id).limit(request.limit + 1)
        if after is not None:
            made_at, id = after
            query = query.where(or_(ADMIN_KEYS.c.created_at < made_at,
                                    and_(ADMIN_KEYS.c.created_at == made_at, ADMIN_KEYS.c.id > id)))
        async with self._database.reading() as sql:
            rows = (await sql.execute(query)).all()
        return page_of([_key(row) for row in rows], request, lambda last: (last.created_at, last.id))

    async def get(self, id: str) -> AdminKey:
        """One key, whether it works or not; ``NotFound`` without it."""
        async with self._database.reading() as sql:
            row = (await sql.execute(select(*_SHOWN).where(ADMIN_KEYS.c.id == id))).first()
        if row is None:
            raise NotFound(_NO_KEY)
        return _key(row)

    async def revoke(self, id: str) -> AdminKey:
        """Take a key back. Harmless when repeated; ``NotFound`` without it."""
        now = self._clock.now()
        async with self._database.transaction() as sql:
            await sql.execute(update(ADMIN_KEYS).where(ADMIN_KEYS.c.id == id, ADMIN_KEYS.c.revoked_at.is_(None))
                              .values(revoked_at=now))
            row = (await sql.execute(select(*_SHOWN).where(ADMIN_KEYS.c.id == id))).first()
        self._known.pop(id, None)
        self._changes += 1
        if row is None:
            raise NotFound(_NO_KEY)
        return _key(row)

    def find(self, text: str) -> AdminKey | None:
        """The key whose text this is, if it works now. Asks nobody; the secret is compared in constant time."""
        id, _, secret = text[len(KEY_PREFIX):].partition("_")
        known = self._known.get(id)
        if known is None or not text.startswith(KEY_PREFIX) or len(text) > _MOST_CHARACTERS:
            return None
        key, digest = known
        if not hmac.compare_digest(sha256(secret.encode("utf-8", "surrogatepass")).digest(), digest):
            return None
        now = self._clock.now()
        if key.expires_at is not None and key.expires_at <= now:
            return None
        self._used[id] = now
        return key

    def works(self, id: str) -> bool:
        """Whether a key that was found before still works. Asks nobody."""
        known = self._known.get(id)
        return known is not None and known[0].state(self._clock.now()) == "active"

    async def refresh(self) -> None:
        """Learn which keys there are, and write down when those of ours were used; one query, rarely more."""
        seen = None
        while seen != self._changes:
            seen = self._changes
            async with self._database.reading() as sql:
                rows = (await sql.execute(_WORKING, {"now": self._clock.now()})).all()
        self._known = {row[0]: (_key(row[:-1]), bytes.fromhex(row[-1])) for row in rows}
        await self._write_used()

    async def look_again(self) -> None:
        """For a key that nobody here knows: it may have been made elsewhere a moment ago.

        However many ask, the database is asked once in ``LOOK_AGAIN_SECONDS``; they wait for the same answer.
        """
        asked_at = time.monotonic()
        async with self._looking:
            if self._looked_at >= asked_at:
                return  # begun by somebody else after we came
            await asyncio.sleep(max(0.0, self._looked_at + LOOK_AGAIN_SECONDS - asked_at))
            self._looked_at = time.monotonic()
            with suppress(Unavailable):  # then it stays unknown
                await self.refresh()

    async def run(self) -> None:
        """``refresh`` for ever. While the database is away, what was known goes on being true."""
        await keep_refreshed(self.refresh, "admin keys")

    async def _write_used(self) -> None:
        used, self._used = self._used, {}
        late = {id: at for id, at in used.items() if id in self._known
                and at - (self._known[id][0].last_used_at or 0.0) >= USED_SECONDS}
        if not late:
            return
        async with self._database.transaction() as sql:
            for id, at in late.items():
                await sql.execute(update(ADMIN_KEYS).where(ADMIN_KEYS.c.id == id).values(last_used_at=at))


_SHOWN: Final = tuple(ADMIN_KEYS.c[name] for name in (
    "id", "name", "scopes", "created_at", "expires_at", "revoked_at", "last_used_at"))
# Not those that ended: of keys that programs make for an hour there may be very many.
_WORKING: Final = select(*_SHOWN, ADMIN_KEYS.c.secret_sha256).where(
    ADMIN_KEYS.c.revoked_at.is_(None),
    or_(ADMIN_KEYS.c.expires_at.is_(None), ADMIN_KEYS.c.expires_at > bindparam("now")),
)


def key_subject(id: str) -> str:
    """Who asks with this key. Two programs may have the same name; what they did is told apart by the key."""
    return f"{KEY_SUBJECT}{id}"


def _key(row: Any) -> AdminKey:
    id, name, scopes, *times = row
    return AdminKey(id, name, frozenset(scopes.split()), *times)
