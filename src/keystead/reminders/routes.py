"""The HTTP door of reminders: a person's reminders, and when they want them."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from keystead.edge import Caller
from keystead.errors import NotFound
from keystead.ids import UserSub
from keystead.members import Contacts
from keystead.reminders.effective import MOST_END, MOST_START, TimeRange, days_of, mask_of
from keystead.reminders.settings import Reminder, ReminderSettings

Day = Literal["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]


class Preset(BaseModel):
    """A part of the day by name; what it means differs a little by channel."""

    type: Literal["preset"]
    preset: Literal["unspecified", "morning", "afternoon", "evening"]


class Explicit(BaseModel):
    """From when to when, in seconds after local midnight; the end may be on the next day."""

    type: Literal["explicit"]
    start: int = Field(ge=0, lt=MOST_START)
    end: int = Field(ge=0, lt=MOST_END)


class Wanted(BaseModel):
    """When somebody wants to be reminded; no days for never."""

    days_of_week: list[Day] = Field(max_length=7)
    time_range: Annotated[Preset | Explicit, Field(discriminator="type")]
    channel: Literal["email", "sms", "push", "all"]
    timezone: str = Field(min_length=1, max_length=100, description="a name of the IANA database")
    timezone_technique: str = Field(default="browser", max_length=50, pattern="^[ -~]*$",
                                    description="how the zone was learnt")


class ReminderShown(BaseModel):
    """One of the person's reminders, and where it goes."""

    uid: str
    channel: str
    start: int = Field(description="seconds after local midnight")
    end: int
    days: list[str]
    created_at: float
    addresses: list[str] = Field(description="email addresses or phone numbers; for push the platforms of the devices")


class ReminderList(BaseModel):
    """The person's reminders."""

    items: list[ReminderShown]


class ReminderNamed(BaseModel):
    """One of the person's reminders."""

    uid: str = Field(min_length=1, max_length=100, pattern="^[A-Za-z0-9_-]+$")


class SettingShown(BaseModel):
    """What holds on one channel."""

    start: int = Field(description="seconds after local midnight")
    end: int
    days: list[str]
    is_real: bool = Field(description="whether the person said so for this channel, as opposed to a guess")


class SettingsShown(BaseModel):
    """What holds on each channel, whether or not the person can be reached there."""

    email: SettingShown
    sms: SettingShown
    push: SettingShown


class PromptShown(BaseModel):
    """Whether to ask the person when they want reminders, and on which channels."""

    wants_notification_time_prompt: bool
    channels: list[str]
    potential_channels: list[str]


def routes(settings: ReminderSettings, contacts: Contacts) -> APIRouter:
    """Under the prefix of the HTTP interface. Everything concerns the person who asks, or whom a program names."""
    router = APIRouter(tags=["reminders"])

    @router.get("/users/me/daily_reminders")
    async def list_reminders(request: Request) -> ReminderList:
        """The person's reminders."""
        sub = _person(request)
        return ReminderList(items=[
            _shown(reminder, await _addresses(contacts, sub, reminder.channel))
            for reminder in await settings.reminders_of(sub)
        ])

    @router.delete("/users/me/daily_reminders", status_code=204)
    async def end_reminder(request: Request, named: ReminderNamed) -> None:
        """End a reminder. The channel stays quiet until the person wants something else."""
        if await settings.unsubscribe(_person(request), named.uid) is None:
            raise NotFound("the person has no such reminder")

    @router.get("/users/me/daily_reminder_settings")
    async def show_settings(request: Request) -> SettingsShown:
        """When the person is reminded, or would be."""
        found = await settings.effective_of(_person(request))
        return SettingsShown(**{
            channel: SettingShown(start=each.start, end=each.end, days=days_of(each.mask), is_real=each.is_real)
            for channel, each in found.items()
        })

    @router.get("/users/me/wants_notification_time_prompt")
    async def show_prompt(request: Request) -> PromptShown:
        """Whether to ask the person when they want to be reminded."""
        found = await settings.prompt_of(_person(request))
        return PromptShown(
            wants_notification_time_prompt=bool(found.channels), channels=list(found.channels),
            potential_channels=list(found.potential_channels),
        )

    @router.post("/users/me/attributes/notification_time", status_code=202)
    async def set_time(request: Request, wanted: Wanted) -> None:
        """Say on which days and when the person wants to be reminded."""
        await settings.update(
            _person(request), mask=mask_of(list(wanted.days_of_week)), time_range=_range(wanted.time_range),
            channel=wanted.channel, timezone=wanted.timezone, technique=wanted.timezone_technique,
        )

    return router


def _person(request: Request) -> UserSub:
    caller: Caller = request.state.caller
    return caller.require_user()


async def _addresses(contacts: Contacts, sub: UserSub, channel: str) -> list[str]:
    if channel == "push":
        return [device.platform for device in await contacts.listed_devices(sub) if device.receives_notifications]
    found = await (contacts.listed_emails(sub) if channel == "email" else contacts.listed_phones(sub))
    return [contact.address for contact in found if contact.usable]


def _range(given: Preset | Explicit) -> TimeRange:
    return TimeRange(given.preset) if isinstance(given, Preset) else TimeRange("", given.start, given.end)


def _shown(reminder: Reminder, addresses: list[str]) -> ReminderShown:
    return ReminderShown(
        uid=reminder.uid, channel=reminder.channel, start=reminder.start_time, end=reminder.end_time,
        days=days_of(reminder.day_of_week_mask), created_at=reminder.created_at, addresses=addresses,
    )
