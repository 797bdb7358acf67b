"""Every key of the edge. An address in a key is a bucket: IPv4 whole, IPv6 as its /64, or the word ``unknown``."""

from typing import Final

from keystead.edge.addresses import UNKNOWN
from keystead.keys import (
    KINDS,
    AtMost,
    FlagKey,
    IntegerKey,
    Keyspace,
    Kind,
    MapKey,
    OnCorrupt,
    Personal,
    Sliding,
    SortedSetKey,
    StringKey,
)
from keystead.patterns import FixedWindow, WhenAway

VIOLATIONS_SECONDS: Final = 86400
PIN_MOST_SECONDS: Final = 90 * 86400
TICKET_MOST_SECONDS: Final = 6 * 86400
LONGEST_TICKET_SECONDS: Final = 366 * 86400  # of any kind: longer, and its end might be forgotten before it is over
TOKEN_MOST_SECONDS: Final = 365 * 86400
TOKEN_ENDED_SECONDS: Final = 3651 * 86400  # earlier versions gave tokens ten years, and those are there still
REPEAT_SECONDS: Final = 86400
CLAIM_SECONDS: Final = 60


class _Bucket(Kind):
    """An address, or the one bucket for requests whose address cannot be read."""

    spans_colons = True

    def accepts(self, text: str) -> bool:
        return text == UNKNOWN or _IP.accepts(text)

    def witnesses(self) -> tuple[str, ...]:
        return (*_IP.witnesses(), UNKNOWN)


_IP: Final = KINDS["ip"]
BUCKET: Final = _Bucket(
    "bucket", rf"(?:{UNKNOWN}|{_IP.expression})", characters=r"[0-9a-fA-F:.knouw]",
    says=f"an IP address as it is counted, or {UNKNOWN}", sample=_IP.sample,
)
_KINDS: Final = {"ip": BUCKET}
_PERSON: Final = Personal(variable="ip")
_GUARD: Final = ("edge.guard",)

EDGE = Keyspace("edge", tag="edge:{ip}")

API_WINDOW = FixedWindow(
    EDGE, "api_ip:{ip}", kinds=_KINDS, most=600, window_seconds=60, personal=_PERSON,
    purpose="calls of the HTTP interface from one address in this window", writers=_GUARD, readers=_GUARD,
)
LOGIN_WINDOW = FixedWindow(
    EDGE, "login_ip:{ip}", kinds=_KINDS, most=10, window_seconds=900, personal=_PERSON,
    purpose="log-ins tried from one address in this window; a successful one is taken back", writers=_GUARD,
    readers=_GUARD,
)
REGISTER_WINDOW = FixedWindow(
    EDGE, "register_ip:{ip}", kinds=_KINDS, most=5, window_seconds=3600, when_away=WhenAway.CLOSED, personal=_PERSON,
    purpose="accounts opened from one address in this window", writers=_GUARD, readers=_GUARD,
)
RESET_PASSWORD_WINDOW = FixedWindow(
    EDGE, "reset_password_ip:{ip}", kinds=_KINDS, most=5, window_seconds=3600, when_away=WhenAway.CLOSED,
    personal=_PERSON, purpose="password resets asked for from one address in this window", writers=_GUARD,
    readers=_GUARD,
)
# Many people may share an address, and all of them open a link of the same campaign.
LINK_WINDOW = FixedWindow(
    EDGE, "link_ip:{ip}", kinds=_KINDS, most=1200, window_seconds=60, personal=_PERSON,
    purpose="links in messages that were opened from one address in this window", writers=_GUARD, readers=_GUARD,
)
WRONG_CODE_WINDOW = FixedWindow(
    EDGE, "wrong_code_ip:{ip}", kinds=_KINDS, most=60, window_seconds=600, personal=_PERSON,
    purpose="short codes of links, tried from one address in this window, that lead nowhere; one that leads somewhere "
    "is taken back", writers=_GUARD, readers=_GUARD,
)
WRONG_KEY_WINDOW = FixedWindow(
    EDGE, "wrong_key_ip:{ip}", kinds=_KINDS, most=20, window_seconds=600, personal=_PERSON,
    purpose="bearer credentials tried from one address in this window that nobody has", writers=_GUARD, readers=_GUARD,
)
API_IP, LOGIN_IP = API_WINDOW.key, LOGIN_WINDOW.key
VIOLATIONS = IntegerKey(
    EDGE, "violations:{ip}", kinds=_KINDS, ttl=Sliding(VIOLATIONS_SECONDS, reads=False), personal=_PERSON,
    purpose="weight of an address's misdeeds; from 5 on it is slowed down, from 10 on blocked",
    writers=("edge.guard", "edge.blocks"), readers=("edge.guard", "edge.blocks"), scripts=("edge/violate.lua",),
)
BLOCKED_IP = StringKey(
    EDGE, "blocked_ip:{ip}", str, kinds=_KINDS, ttl=AtMost(PIN_MOST_SECONDS), personal=_PERSON,
    purpose="mark of a blocked address, blocked:{reason}; the block ends when the key does",
    writers=("edge.guard", "edge.blocks"), readers=("edge.guard", "edge.blocks"), scripts=("edge/violate.lua",),
)
TICKET_USED = FlagKey(
    EDGE, "tickets:used:{sha256}", tag="tickets:{sha256}", ttl=AtMost(7 * 86400),
    purpose="a single-use ticket that was used; the hash is of its identifier", writers=("edge.tickets",),
    readers=("edge.tickets",),
)
TICKETS_ENDED: SortedSetKey[str] = SortedSetKey(
    EDGE, "tickets:ended", str, tag="tickets", member="identifier of a ticket, or a hash of whose tickets all ended",
    ttl=Sliding(TOKEN_ENDED_SECONDS, reads=False),
    score="unix time of its end", purpose="tickets that ended before their time, until that is over too",
    writers=("edge.endings",), readers=("edge.endings",), dead_letter=OnCorrupt.MISS,
)
# Encrypted with what only the client and this installation know together, so it is nobody's data here.
REPEAT: MapKey[bytes] = MapKey(
    EDGE, "idempotency:{sha256}", bytes, tag="idempotency:{sha256}", fields=("request", "claim", "answer"),
    ttl=AtMost(REPEAT_SECONDS), scripts=("edge/repeat_claim.lua", "edge/repeat_end.lua"),
    purpose="a request with an idempotency key: that it runs, or its encrypted answer; the hash is of caller and key",
    writers=("edge.idempotency",), readers=("edge.idempotency",),
)
