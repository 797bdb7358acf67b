"""What the leased lock says of its holders: the JSON in the key, and the proof of having taken it."""

import itertools
import os
import secrets
import socket
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from keystead.engine import Valkey


class LeaseHolder(msgspec.Struct, frozen=True):
    """What lies in the key: who holds the lock. ``contested`` once someone waits for it."""

    host: str
    pid: str
    uid: str
    acquired_at: float
    typ: str = "lock"
    fence: int | None = None
    contested: bool = False


class LockLease(NamedTuple):
    """Proof of having taken a leased lock. A tuple, since one is made for every lock that is taken."""

    me: bytes  # how the holder's JSON begins
    value: bytes | None  # the whole of it, where it is known
    fence: int  # 0 where holders are not numbered
    ends_at: float  # on the monotonic clock, counted from before the lock was asked for


@dataclass(frozen=True, slots=True)
class Place:
    """Not yet: how long the present holder has at most, and how many wait before us."""

    left_seconds: float
    ahead: int


_process: tuple[int, bytes] = (0, b"")
_number = itertools.count(1).__next__


def new_holder() -> bytes:
    """How the JSON of a new holder in this process begins; like no other, since it ends with a fresh uid."""
    global _process
    pid, head = _process
    if pid != os.getpid():
        pid = os.getpid()
        host, start = msgspec.json.encode(socket.gethostname()), secrets.token_urlsafe(12).encode()
        head = b'{"typ":"lock","host":%b,"pid":"%d","uid":"%b-' % (host, pid, start)
        _process = (pid, head)
    return b'%b%d"' % (head, _number())


def uid_of(me: bytes) -> str:
    """The uid in what ``new_holder`` gave."""
    return me[:-1].rpartition(b'"')[2].decode()


def holder_of(raw: bytes | None) -> LeaseHolder | None:
    """Who holds the lock, by what lies in its key."""
    return None if raw is None else msgspec.json.decode(raw, type=LeaseHolder)


_latest_facts: tuple[dict[str, str], bool] = ({}, False)


def has_compare_and_delete(valkey: Valkey) -> bool:
    """Whether a lock can be freed by one plain command, DELIFEQ.

    The nodes of a cluster may be of several versions, so there it is not used.
    """
    global _latest_facts
    facts, has = _latest_facts
    if valkey.facts is facts:
        return has
    facts = valkey.facts
    newer = facts.get("server") == "valkey" and int(facts.get("version", "0").partition(".")[0]) >= 9
    has = newer and facts.get("mode") != "cluster"
    _latest_facts = facts, has
    return has
