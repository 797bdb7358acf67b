"""The HTTP door of the members room: a person's addresses, devices and time zone."""

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from keystead.edge import Caller, CallerKind, Forbidden
from keystead.errors import NotFound
from keystead.jobs import ROOMS_QUEUE, Jobs
from keystead.members.contacts import Added, Contact, Contacts
from keystead.members.push_tokens import LEAST_TOKEN, MOST_TOKEN, REGISTER_TOKEN_JOB, TOKEN_PATTERN, PushTokens
from keystead.members.timezones import Timezones

_Token = Annotated[str, Field(min_length=LEAST_TOKEN, max_length=MOST_TOKEN, pattern=TOKEN_PATTERN,
                              examples=["ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]"])]
_MOST_TEXT: Final = 400


class DeviceGiven(BaseModel):
    """A device that push messages can be sent to."""

    push_token: _Token
    platform: Literal["ios", "android"]


class DeviceNamed(BaseModel):
    """One of the person's devices."""

    push_token: _Token


class EmailGiven(BaseModel):
    """An address of the person. Only a program or an operator can say that it is verified."""

    email: str = Field(min_length=1, max_length=_MOST_TEXT)
    verified: bool = False
    receives_notifications: bool = True


class EmailSwitched(BaseModel):
    """Whether one of the person's addresses is written to."""

    email: str = Field(min_length=1, max_length=_MOST_TEXT)
    receives_notifications: bool


class PhoneSwitched(BaseModel):
    """Whether one of the person's numbers is written to."""

    phone_number: str = Field(min_length=1, max_length=_MOST_TEXT)
    receives_notifications: bool


class EmailNamed(BaseModel):
    """One of the person's addresses."""

    email: str = Field(min_length=1, max_length=_MOST_TEXT)


class PhoneGiven(BaseModel):
    """A number of the person, with + and the code of its country. Only a program or an operator can verify it."""

    phone_number: str = Field(min_length=1, max_length=_MOST_TEXT)
    verified: bool = False
    receives_notifications: bool = True


class PhoneNamed(BaseModel):
    """One of the person's numbers."""

    phone_number: str = Field(min_length=1, max_length=_MOST_TEXT)


class ContactShown(BaseModel):
    """One way to reach the person."""

    address: str
    verified: bool
    receives_notifications: bool
    suppressed: bool = Field(description="nobody writes there, whatever is set: it bounced, or its owner said stop")
    created_at: float


class ContactList(BaseModel):
    """Every address, or number, of the person; oldest first."""

    items: list[ContactShown]


class ContactAdded(BaseModel):
    """What became of an address that was given."""

    outcome: Literal["created", "verified", "known"]


class ZoneGiven(BaseModel):
    """Where the person lives by the clock."""

    timezone: str = Field(min_length=1, max_length=100, description="a name of the IANA database")
    timezone_technique: str = Field(default="browser", max_length=50, pattern="^[ -~]*$",
                                    description="how it was learnt")


def routes(contacts: Contacts, tokens: PushTokens, timezones: Timezones, jobs: Jobs) -> APIRouter:
    """Under the prefix of the HTTP interface. Everything concerns the person who asks, or whom a program names."""
    router = APIRouter(tags=["contacts"])
    queued = jobs.options(queue=ROOMS_QUEUE)

    @router.post("/notifications/push/tokens/", status_code=202)
    async def register_device(request: Request, device: DeviceGiven) -> None:
        """Send push messages to this device from now on; whoever used it before gets none there any more."""
        sub = _caller(request).require_user()
        await queued.enqueue(
            REGISTER_TOKEN_JOB, user_sub=sub, expo_push_token=device.push_token, platform=device.platform
        )

    @router.delete("/notifications/push/tokens/", status_code=204)
    async def forget_device(request: Request, device: DeviceNamed) -> None:
        """Send nothing to this device any more."""
        sub = _caller(request).require_user()
        if not await tokens.forget(device.push_token, "user", sub=sub):
            raise NotFound("the person has no such device")

    @router.get("/users/me/contacts/emails")
    async def list_emails(request: Request) -> ContactList:
        """The person's email addresses."""
        return _shown(await contacts.listed_emails(_caller(request).require_user()))

    @router.post("/users/me/contacts/emails", status_code=201)
    async def add_email(request: Request, given: EmailGiven) -> ContactAdded:
        """Give the person an address, or mark one as verified."""
        sub = _caller(request).require_user()
        _check_claim(request, given.verified)
        return _added(await contacts.add_email(
            sub, given.email, verified=given.verified, receives_notifications=given.receives_notifications
        ))

    @router.patch("/users/me/contacts/emails", status_code=204)
    async def switch_email(request: Request, given: EmailSwitched) -> None:
        """Write to one of the person's addresses, or do not."""
        sub = _caller(request).require_user()
        await contacts.set_email_notifications(sub, given.email, given.receives_notifications)

    @router.delete("/users/me/contacts/emails", status_code=204)
    async def remove_email(request: Request, named: EmailNamed) -> None:
        """Forget one of the person's addresses."""
        if not await contacts.remove_email(_caller(request).require_user(), named.email):
            raise NotFound("the person has no such address")

    @router.get("/users/me/contacts/phones")
    async def list_phones(request: Request) -> ContactList:
        """The person's phone numbers."""
        return _shown(await contacts.listed_phones(_caller(request).require_user()))

    @router.post("/users/me/contacts/phones", status_code=201)
    async def add_phone(request: Request, given: PhoneGiven) -> ContactAdded:
        """Give the person a number, or mark one as verified."""
        sub = _caller(request).require_user()
        _check_claim(request, given.verified)
        return _added(await contacts.add_phone(
            sub, given.phone_number, verified=given.verified, receives_notifications=given.receives_notifications
        ))

    @router.patch("/users/me/contacts/phones", status_code=204)
    async def switch_phone(request: Request, given: PhoneSwitched) -> None:
        """Write to one of the person's numbers, or do not."""
        sub = _caller(request).require_user()
        await contacts.set_phone_notifications(sub, given.phone_number, given.receives_notifications)

    @router.delete("/users/me/contacts/phones", status_code=204)
    async def remove_phone(request: Request, named: PhoneNamed) -> None:
        """Forget one of the person's numbers."""
        if not await contacts.remove_phone(_caller(request).require_user(), named.phone_number):
            raise NotFound("the person has no such number")

    @router.delete("/users/me/contacts", status_code=202)
    async def erase_contacts(request: Request) -> None:
        """Forget every address, number and device of the person, their reminders, and what waits to be sent to them."""
        await contacts.erase(_caller(request).require_user())

    @router.post("/users/me/attributes/timezone", status_code=202)
    async def set_timezone(request: Request, given: ZoneGiven) -> None:
        """Say where the person lives by the clock."""
        await timezones.set(_caller(request).require_user(), given.timezone, given.timezone_technique)

    return router


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def _check_claim(request: Request, verified: bool) -> None:
    if verified and _caller(request).kind is CallerKind.USER:
        raise Forbidden("nobody can say of their own address that it is verified")


def _shown(found: list[Contact]) -> ContactList:
    return ContactList(items=[ContactShown(
        address=each.address, verified=each.verified, receives_notifications=each.receives_notifications,
        suppressed=each.suppressed, created_at=each.created_at,
    ) for each in found])


def _added(outcome: Added) -> ContactAdded:
    return ContactAdded(outcome=outcome.value)
