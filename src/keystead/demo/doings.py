"""What people and businesses do, each as the few requests that it takes."""

from collections.abc import Mapping
from typing import Any, Final

from keystead.demo.client import Client, Refusal
from keystead.demo.people import PROVIDER, Person
from keystead.demo.plan import NOISY, QUIET, Errand, look_after
from keystead.demo.reactions import browser_of
from keystead.demo.residents import Resident, Waiting

WELCOME: Final = "demo_welcome"
ORDER: Final = "demo_order"
_TOKEN_SECONDS: Final = 5 * 86_400
_MOST_LETTERS: Final = 500
_EXAMPLES: Final = {"name": "Ada", "what": "a bicycle bell"}
GOODS: Final = (
    "a bicycle bell", "two loaves of rye", "a paperback", "a bunch of tulips", "oat milk", "a wool scarf", "a kettle",
)


def touch_points() -> list[dict[str, Any]]:
    """The words of the town, as the program of a shop would bring them."""
    return [_point(WELCOME, "Welcome, {name}!", "Good to have you here, {name}.", ["name"]),
            _point(ORDER, "{name}, your order", "{name}, {what} is ready to be picked up.", ["name", "what"])]


def _point(slug: str, title: str, text: str, parameters: list[str]) -> dict[str, Any]:
    short = slug.removeprefix("demo_")
    examples = {name: _EXAMPLES[name] for name in parameters}
    schema = {"type": "object", "example": examples, "required": parameters,
              "properties": {name: {"type": "string", "example": example} for name, example in examples.items()}}
    return {
        "event_slug": slug, "event_schema": schema, "selection_strategy": "fixed",
        "messages": {
            "sms": [{"priority": 1, "uid": f"tpsms_{short}", "body_format": text, "body_parameters": parameters}],
            "push": [{"priority": 1, "uid": f"tppush_{short}", "title_format": title, "title_parameters": ["name"],
                      "body_format": text, "body_parameters": parameters}],
            "email": [{"priority": 1, "uid": f"tpem_{short}", "subject_format": title, "subject_parameters": ["name"],
                       "template": "notice", "template_parameters_fixed": {},
                       "template_parameters_substituted": [
                           {"key": ["title"], "format": title, "parameters": ["name"]},
                           {"key": ["message"], "format": text, "parameters": parameters}]}],
        },
    }


async def bring_words(client: Client) -> None:
    """Make the touch points of the town, unless they are there."""
    for point in touch_points():
        try:
            await client.call("POST", "/touch_points/", point)
        except Refusal as refusal:
            if refusal.status != 409:
                raise


async def join(client: Client, person: Person) -> tuple[Resident, bool]:
    """Make the person, or find them as they were; says whether they are new."""
    answer = await client.call("POST", "/users", {
        "provider": PROVIDER, "provider_sub": person.provider_sub, "given_name": person.given_name,
        "family_name": person.family_name, "timezone": person.zone,
    })
    return Resident(person, answer.body["sub"], answer.body["created_at"]), answer.status == 201


async def settle(client: Client, resident: Resident) -> None:
    """Leave addresses, register the device, say when reminders are wanted. May be repeated."""
    person, sub = resident.person, resident.sub
    if person.email:
        await client.call("POST", "/users/me/contacts/emails", {"email": person.email, "verified": True}, acts_for=sub)
    if person.phone:
        given = {"phone_number": person.phone, "verified": True}
        await client.call("POST", "/users/me/contacts/phones", given, acts_for=sub)
    if person.push_token:
        device = {"push_token": person.push_token, "platform": person.platform}
        await client.call("POST", "/notifications/push/tokens/", device, token=await token_of(client, resident))
    await client.call("POST", "/users/me/attributes/notification_time", {
        "days_of_week": list(person.wish.days), "time_range": {"type": "preset", "preset": person.wish.preset},
        "channel": person.wish.channel, "timezone": person.zone, "timezone_technique": "demo",
    }, token=await token_of(client, resident))


async def is_settled(client: Client, resident: Resident) -> bool:
    """Whether somebody found again had left their first address before."""
    person, kind = resident.person, "emails" if resident.person.email else "phones"
    if not (person.email or person.phone):
        return False
    answer = await client.call("GET", f"/users/me/contacts/{kind}", acts_for=resident.sub)
    return bool(answer.body["items"])


async def token_of(client: Client, resident: Resident) -> str:
    """What the person's own device shows; asked for once."""
    if not resident.token:
        wanted = {"lasts_seconds": _TOKEN_SECONDS}
        resident.token = (await client.call("POST", f"/users/{resident.sub}/tokens", wanted)).body["token"]
    return resident.token


async def visit(client: Client, resident: Resident) -> None:
    """They were here."""
    try:
        await client.call("POST", "/users/me/visits", token=await token_of(client, resident))
    except Refusal as refusal:
        if refusal.status != 401:
            raise
        resident.token = ""  # its time was over: the next visit asks for another
        await client.call("POST", "/users/me/visits", token=await token_of(client, resident))


async def tell(client: Client, resident: Resident, slug: str, words: Mapping[str, str]) -> None:
    """The shop tells somebody something."""
    await client.call("POST", "/touches", {
        "user_sub": resident.sub, "event_slug": slug,
        "event_parameters": {"name": resident.person.given_name, **words},
    })


async def respond(client: Client, waiting: Waiting) -> str:
    """What somebody does with a message; returns what to tell of it, or nothing."""
    resident, reaction, person = waiting.resident, waiting.reaction, waiting.resident.person
    if reaction.scanner and waiting.links:
        await client.browse(waiting.links[0], reaction.scanner)
    if reaction.act == "stop":
        resident.quit.add("sms")
        await client.text_back(person.phone, "STOP")
        return f"{person.name} answered STOP"
    if reaction.act == "unsubscribe" and waiting.links:
        resident.quit.add("email")
        await client.browse(waiting.links[-1], browser_of(person))
        await client.browse(waiting.links[-1], browser_of(person), method="POST", form={"email": person.email})
        return f"{person.name} unsubscribed from mails"
    if reaction.act == "click":
        if waiting.links:
            await client.browse(waiting.links[0], browser_of(person))
        await visit(client, resident)
        return f"{person.name} clicked a link in {_KINDS[waiting.channel]}" if waiting.links else (
            f"{person.name} tapped a push message")
    return ""


_KINDS: Final = {"sms": "a text", "email": "a mail", "push": "a push message"}


async def run_errand(client: Client, errand: Errand) -> None:
    """Queue it, for its tenant or for the town."""
    if errand.tenant:
        await client.call("POST", f"/tenants/{errand.tenant}/jobs", {
            "name": errand.job, "kwargs": errand.kwargs, "cost": errand.cost,
        })
    else:
        await client.call("POST", "/jobs", {"name": errand.job, "kwargs": errand.kwargs, "progress": errand.progress,
                                            "keep_seconds": 3600})


async def make_round(client: Client) -> str:
    """The operator looks after jobs that failed for good, the tenants' too; returns what to tell of it, or nothing."""
    letters = (await client.call("GET", "/jobs", place="dead", limit=_MOST_LETTERS)).body["items"]
    care, retried, dropped = look_after(letters), 0, 0
    if care.retried:
        retried += int((await client.call("POST", "/jobs/retry", {"uids": care.retried})).body["count"])
    if care.dropped:
        dropped += int((await client.call("POST", "/jobs/drop", {"uids": care.dropped})).body["count"])
    for tenant in (NOISY, *QUIET):
        retried += int((await client.call("POST", f"/tenants/{tenant}/retry")).body["count"])
    done = [f"lets {retried} failed jobs be tried again"] * bool(retried) + [f"drops {dropped}"] * bool(dropped)
    return f"the operator {' and '.join(done)}" if done else ""
