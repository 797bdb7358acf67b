"""What people and shops do, against a whole installation."""

import pytest

from keystead.demo import doings
from keystead.demo.client import Refusal
from keystead.demo.people import make_person
from keystead.demo.plan import Errand
from keystead.demo.reactions import Reaction
from keystead.demo.residents import Waiting

from .conftest import Installation, until

pytestmark = pytest.mark.slow


def _somebody(wanted: str) -> int:
    """The number of the first person of a town who has such an address."""
    return next(number for number in range(100) if getattr(make_person(1, number), wanted))


async def test_a_person_joins_once_and_gets_what_they_are_sent(installation: Installation) -> None:
    client = installation.client
    await doings.bring_words(client)
    await doings.bring_words(client)  # whoever comes second finds them there
    person = make_person(1, _somebody("email"))
    resident, is_new = await doings.join(client, person)
    again, is_new_again = await doings.join(client, person)
    assert (is_new, is_new_again, again.sub) == (True, False, resident.sub)
    assert not await doings.is_settled(client, resident)
    await doings.settle(client, resident)
    assert await doings.is_settled(client, resident)
    await doings.visit(client, resident)
    resident.token = "not.one"
    await doings.visit(client, resident)  # asks for another token
    await doings.tell(client, resident, doings.ORDER, {"what": "a kettle"})
    reminders = await client.call("GET", "/users/me/daily_reminders", token=resident.token)
    assert reminders.status == 200

    async def arrived() -> bool:
        found = await client.call("GET", "/sandbox/outbox", channel="email", to=person.email)
        return any("a kettle is ready" in message["text"] for message in found.body["items"])

    # Between ten in the evening and six in the morning of where they live nobody is written to.
    if 6 <= local(person.zone) < 22:
        await until(arrived, "the mail about the order")


def local(zone: str) -> int:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    return datetime.now(ZoneInfo(zone)).hour


async def test_stop_ends_texts(installation: Installation) -> None:
    client = installation.client
    resident, _ = await doings.join(client, make_person(1, _somebody("phone")))
    await doings.settle(client, resident)
    said = await doings.respond(client, Waiting(resident, Reaction("stop", 1), "sms", ()))
    assert "STOP" in said and resident.person.given_name in said

    async def suppressed() -> bool:
        found = await client.call("GET", "/users/me/contacts/phones", acts_for=resident.sub)
        return bool(found.body["items"]) and all(one["suppressed"] for one in found.body["items"])

    await until(suppressed, "the number is left alone")


async def test_errands_are_queued_and_run(installation: Installation) -> None:
    client = installation.client
    await doings.run_errand(client, Errand(0, "demo.tenant.send_receipt", {"item": 1}, "corner-bakery"))
    await doings.run_errand(client, Errand(0, "demo.read_invoice", {"order": 40}))
    await doings.run_errand(client, Errand(0, "demo.charge_card", {"order": 41}))

    async def counted() -> bool:
        rows = await client.call("GET", "/jobs/errors")
        return "invoice cannot be read" in str(rows.body["groups"])

    await until(counted, "the job that fails is among the dead letters, with its reason")

    async def served() -> bool:
        found = await client.call("GET", "/tenants", busiest=True)
        return any(one["tenant"] == "corner-bakery" and one["served"] > 0 for one in found.body["items"])

    await until(served, "the tenant was served")
    with pytest.raises(Refusal) as refused:
        await client.call("GET", "/jobs/errors", token="nobody")
    assert refused.value.status == 401


async def test_operator_looks_after_what_failed(installation: Installation) -> None:
    client = installation.client
    for order in range(0, 36, 4):
        await doings.run_errand(client, Errand(0, "demo.read_invoice", {"order": order}))
    await doings.run_errand(client, Errand(0, "demo.tenant.resize_photo", {"item": 97}, "corner-bakery"))

    async def failed() -> bool:
        tenants = (await client.call("GET", "/tenants")).body
        return (await client.call("GET", "/jobs", place="dead")).body["total"] == 9 and tenants["dead"] == 1

    await until(failed, "all of them failed for good")
    assert await doings.make_round(client) == "the operator lets 1 failed jobs be tried again and drops 3"
    assert (await client.call("GET", "/jobs", place="dead")).body["total"] == 6
