"""An inventory with personal data of every shape, and a way to fill a server with it."""

import gzip
import json

from keystead.engine import Valkey
from keystead.inventory import Entry, Expiry, Fact, Inventory, Rule

ANN = "user-4711"
BOB = "user-47112"  # begins like Ann, and is somebody else
MAIL = "ann@example.com"


def entry(
    pattern: str, type: str, *, personal: bool = False, writers: str = "", readers: str = "", ttl: float = 0
) -> Entry:
    return Entry(
        pattern, type=Fact(type), personal=Fact(True) if personal else None, purpose=Fact(f"what {pattern} is for"),
        ttl=Fact(Expiry(Rule.EXACTLY, ttl)) if ttl else None, section=(pattern.partition(":")[0],),
        writers=tuple(Fact(name) for name in writers.split()), readers=tuple(Fact(name) for name in readers.split()))


SHOP = Inventory("keystead.toml", (
    entry("profile:{user_id}", "hash", writers="accounts", readers="mailer shop"),
    entry("session:{token}", "json", personal=True, writers="accounts", ttl=3600),
    entry("packed:{number}", "string", personal=True, writers="accounts"),
    entry("mails:to_send", "list", personal=True, writers="shop accounts", readers="mailer"),
    entry("newsletter", "set", personal=True, writers="shop", readers="mailer"),
    entry("ranking", "zset", personal=True, writers="shop"),
    entry("names", "hash", personal=True, writers="accounts", readers="shop"),
    entry("events", "stream", personal=True, writers="shop", readers="statistics"),
    entry("huge", "string", personal=True, writers="shop"),
    entry("page:{number}", "string", writers="shop", readers="shop"),
    Entry("news:{topic}", kind="channel", writers=(Fact("shop"),), readers=(Fact("mailer"),)),
))


async def fill(valkey: Valkey) -> None:
    """Ann and Bob in every shape, and one note about Ann where nobody would look."""
    for who, mail in ((ANN, MAIL), (BOB, "bob@example.com")):
        text = json.dumps({"id": 1, "user": who, "mail": mail})
        await valkey.hset(f"profile:{who}", mapping={"name": "x", "mail": mail})
        await valkey.set(f"session:{who[-3:]}x{len(who)}", text, ex=3600)
        await valkey.set(f"packed:{len(who)}", gzip.compress(text.encode()))
        await valkey.rpush("mails:to_send", text, f"hello {mail}", text)
        await valkey.sadd("newsletter", mail)
        await valkey.zadd("ranking", {who: 5})
        await valkey.hset("names", mapping={who: "x", f"of {len(who)}": f"see {who}"})
        for number in range(3):
            await valkey.xadd("events", {"user": who, "n": number})
    await valkey.set("huge", b" " * (512 * 1024 - 4) + ANN.encode() + b" " * 600_000)
    await valkey.set("page:7", f"about {ANN}")
    await valkey.set("page:8", "about nobody")
