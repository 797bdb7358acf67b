"""One box that understands what an operator has at hand: a key, a uid, a person, a job, a tenant, a setting.

Every question has a bounded cost: declarations, settings and families are in memory, the server is asked for single
keys by name and never walked, people are looked up by index, and names among those who joined last.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote

from keystead.app import Running
from keystead.engine.failures import ErrorReply
from keystead.errors import Invalid, KeysteadError
from keystead.jobs import Inspection, Tenants
from keystead.jobs.inspection_views import queue_named
from keystead.keys import Declaration, Personal, read_key, spell_key
from keystead.members.searching import Listed, find_people, listed_people, people_named
from keystead.settings import all_settings
from keystead.telemetry import logger

_log = logger("web")

Kind = Literal["key", "pattern", "message", "job", "person", "tenant", "statistic", "setting", "admin key"]

MOST_CHARACTERS: Final = 300
MOST_OF_A_KIND: Final = 8
# What the uids of touches and of messages of each channel begin with.
MESSAGE_UIDS: Final = ("tch_", "sms_", "em_", "pma_")
JOB_UID: Final = re.compile(r"[A-Za-z0-9_.:-]{8,100}")
# What somebody must be allowed to touch to be told of something of a kind.
SCOPES: Final[dict[Kind, str]] = {
    "key": "keys", "pattern": "keys", "setting": "keys", "admin key": "admin", "message": "messaging",
    "person": "users", "job": "jobs", "tenant": "jobs", "statistic": "stats",
}
UNDERSTOOD: Final = (
    ("a key", "written out in full"), ("a pattern", "such as sms:*, or words of its purpose"),
    ("a message", "by its uid (tch_…, sms_…, em_…, pma_…)"), ("a job", "by its uid"),
    ("a person", "by sub, name, email address or phone number"), ("a tenant", "of the fair queue, by its name"),
    ("a statistic", "or words of its purpose"), ("a setting", "such as http.port"), ("an admin key", "by its name"),
)
MASK: Final = "•••"
SLOW_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was meant. ``sure``: it can be nothing else, so one such hit need not be chosen from a list.

    Names and addresses of people are masked in ``title`` and ``says``.
    """

    kind: Kind
    title: str
    says: str
    address: str
    sure: bool = False


async def find(
    running: Running, text: str, *, may: Callable[[str], bool] = lambda scope: True, thorough: bool = True
) -> list[Hit]:
    """What the text may mean, sure hits first. Empty for nothing, and for what is too long to mean anything.

    ``thorough`` also looks through queues for a job, ten thousand jobs of each place at most: not for every keystroke.
    """
    text = text.strip()
    if not text or len(text) > MOST_CHARACTERS or "\0" in text:
        return []
    hits = [*_messages(text), *patterns_like(running.registry, text), *settings_like(text),
            *_statistics(running, text)]
    asked = await asyncio.gather(*(_answered(look) for look in (
        _key(running, text), _job(running, text, thorough and not hits), _people(running, text),
        _tenant(running, text), _keys(running, text))))
    hits += [hit for found in asked for hit in found]
    allowed = [hit for hit in hits if may(SCOPES[hit.kind])]
    return sorted(allowed, key=lambda hit: not hit.sure)


async def _answered(look: Awaitable[list[Hit]]) -> list[Hit]:
    """What a part of the search found; nothing from a part that is away or slow."""
    try:
        async with asyncio.timeout(SLOW_SECONDS):
            return await look
    except Invalid:
        return []  # nothing can be called so
    except (KeysteadError, ErrorReply, TimeoutError) as error:
        _log.warning("a part of the search did not answer", error=type(error).__name__)
        return []


# -- what is in memory -------------------------------------------------------------------------------------------------


def _messages(text: str) -> list[Hit]:
    if not text.startswith(MESSAGE_UIDS) or not text.isascii() or " " in text:
        return []
    return [Hit("message", text, "its life, step by step", f"/messages/trace?uid={quote(text, safe='')}", True)]


def patterns_like(declarations: Iterable[Declaration], text: str) -> list[Hit]:
    """The pattern that is spelled so, or those in which every word occurs somewhere."""
    words = text.lower().replace("*", " ").split()  # as in SCAN: sms:*
    found = [each for each in declarations if each.pattern == text or _holds(
        f"{each.pattern} {each.room} {each.purpose}", words)]
    # Those whose name holds the words come before those whose purpose does, the plain before what derives from them.
    found.sort(key=lambda each: (each.pattern != text, not _holds(each.pattern, words), len(each.pattern),
                                 each.pattern))
    return [Hit("pattern", each.pattern, each.purpose, f"/pattern?name={quote(each.pattern, safe='')}",
                each.pattern == text) for each in found[:MOST_OF_A_KIND]]


def _holds(text: str, words: list[str]) -> bool:
    lowered = text.lower()
    return all(word in lowered for word in words)


def settings_like(text: str) -> list[Hit]:
    """The setting of that name, also as the environment spells it, or those whose name holds every word."""
    words = text.lower().replace(" = ", " ").split()
    found = [(each, text in (each.name, each.environment_name)) for each in all_settings()
             if text == each.environment_name or all(word in each.name for word in words)]
    return [Hit("setting", each.name, each.says, f"/settings#{each.name}", exact)
            for each, exact in sorted(found, key=lambda pair: not pair[1])[:MOST_OF_A_KIND]]


def _statistics(running: Running, text: str) -> list[Hit]:
    words = text.lower().split()
    found = [one for one in running.catalogue if one.name == text or _holds(f"{one.name} {one.purpose}", words)]
    found.sort(key=lambda one: (one.name != text, not _holds(one.name, words), one.name))
    return [Hit("statistic", one.name, one.purpose, f"/stats/{quote(one.name)}", one.name == text)
            for one in found[:MOST_OF_A_KIND]]


# -- what is asked for -------------------------------------------------------------------------------------------------


async def _key(running: Running, text: str) -> list[Hit]:
    """A key that is there, or that a declaration would own."""
    raw_key = read_key(text)
    match = running.registry.resolve(raw_key)
    logical = running.registry.resolve_logical(text) if match is None else None
    if logical is not None and logical.declaration.kind == "key":
        match, raw_key = logical, logical.declaration.reference(logical.arguments).name(running.registry.layout)
    exists = bool(await running.valkey.exists(raw_key))
    if not exists and (match is None or match.declaration.kind != "key" or not match.declaration.template.variables):
        return []  # a name without variables is found as a pattern
    says = match.declaration.purpose if match is not None else "nothing declares it"
    shown = spell_key(raw_key)
    if match is not None and match.declaration.personal:
        shown = _masked_key(shown, match.declaration, match.arguments)
    return [Hit("key", shown, says if exists else f"not on the server now; {says}",
                f"/key?key={quote(spell_key(raw_key), safe='')}", exists)]


def _masked_key(spelled: str, declaration: Declaration, arguments: dict[str, str]) -> str:
    names = declaration.personal.variables if isinstance(declaration.personal, Personal) else tuple(arguments)
    for value in sorted((arguments[name] for name in names if arguments.get(name)), key=len, reverse=True):
        spelled = spelled.replace(value, masked_word(value))
    return spelled


async def _job(running: Running, text: str, thorough: bool) -> list[Hit]:
    """By its uid: one whose state is kept is found at once, another where it waits, runs or died, or ended lately."""
    if not JOB_UID.fullmatch(text):
        return []
    inspection, address = Inspection(running.valkey, running.clock), f"/jobs/{quote(text, safe='')}"
    names = await inspection.queue_names()
    async with running.valkey.pipeline(transaction=False) as pipeline:
        asked = [(name, queue_named(name).job(text).exists(pipeline)) for name in names]
        await pipeline.execute()
    hits = [Hit("job", text, f"of the queue {name}", address, True) for name, kept in asked if await kept][:1]
    if hits or not thorough:
        return hits
    found = await inspection.find(text)
    if found is None or (found.view is None and found.state is None and found.ended is None):
        return []
    return [Hit("job", text, f"of the queue {found.queue}", address, True)]


async def _people(running: Running, text: str) -> list[Hit]:
    exact = await find_people(running.database, text)
    if exact:
        people = await listed_people(running.database, exact)
        return [_person(one, sure=True) for one in people[:MOST_OF_A_KIND]]
    if len(text) < 2:
        return []
    return [_person(one) for one in await people_named(running.database, text, most=MOST_OF_A_KIND)]


def _person(one: Listed, *, sure: bool = False) -> Hit:
    name = " ".join(masked_word(each) for each in (one.given_name, one.family_name) if each)
    return Hit("person", name or one.sub, f"{one.sub} · {one.timezone or 'no time zone said'}",
               f"/people/{quote(one.sub, safe='')}", sure)


def masked_word(text: str) -> str:
    """Enough to tell two people apart at a glance, too little to know either."""
    return MASK if len(text) < 3 else f"{text[:2]}{MASK}"


async def _tenant(running: Running, text: str) -> list[Hit]:
    found = await Tenants(running.valkey, running.clock).get(text)
    if not found.known:
        return []
    says = f"{found.ready:,} ready, {found.running:,} running" + (", paused" if found.paused else "")
    return [Hit("tenant", text, says, f"/tenants?tenant={quote(text, safe='')}", True)]


async def _keys(running: Running, text: str) -> list[Hit]:
    """Admin keys by their name."""
    keys = getattr(running, "admin_keys", None)
    if keys is None:
        return []
    return [Hit("admin key", each.name, f"scopes: {', '.join(sorted(each.scopes))}", "/settings#admin-keys")
            for each in await keys.list() if text.lower() in each.name.lower()][:MOST_OF_A_KIND]
