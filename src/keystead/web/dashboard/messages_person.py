"""What the page of a person says of messages: what they were sent, where they are reached, when they are reminded."""

from dataclasses import dataclass
from html import escape
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.errors import NotFound
from keystead.ids import UserSub
from keystead.members import Contact, Device
from keystead.messaging.touches import PastTouch
from keystead.reminders.effective import DAYS, EVERY_DAY
from keystead.reminders.settings import Reminder
from keystead.web.dashboard.jobs_shown import cut, moment
from keystead.web.dashboard.live_table import Column, Row
from keystead.web.dashboard.messages import messages_frame, search_box
from keystead.web.dashboard.messages_look import NAMES, TONES, trace_address
from keystead.web.dashboard.people_page import person_address
from keystead.web.dashboard.shown import NOTHING, chip, masked_address, shown_ago
from keystead.web.dashboard.stats_shown import broken_up
from keystead.web.sampler import Sampler
from keystead.web.searching import MESSAGE_UIDS

MOST_TOUCHES: Final = 100
# What the uids of touches and messages begin with; anything else that is asked for is a person.
UIDS: Final = MESSAGE_UIDS
TOUCH_COLUMNS: Final = (
    Column("Event"), Column("State", "ms-state"), Column("When", "when"), Column("Said", "mid ms-said"),
)
ADDRESS_COLUMNS: Final = (Column("Address"), Column("State", "ms-state"))


@dataclass(frozen=True, slots=True)
class PersonLook:
    """All of it at about one moment."""

    touches: list[PastTouch]
    emails: list[Contact]
    phones: list[Contact]
    devices: list[Device]
    reminders: list[Reminder]


async def person_look(running: Running, sub: UserSub) -> PersonLook:
    """Read everything about a person's messages."""
    board = running.switchboard
    touches = await board.history.of(sub, most=MOST_TOUCHES)
    try:
        return PersonLook(
            touches, await board.contacts.listed_emails(sub), await board.contacts.listed_phones(sub),
            await board.contacts.listed_devices(sub), list(await board.reminders.reminders_of(sub)),
        )
    except NotFound:  # who is gone cannot be reached any more
        return PersonLook(touches, [], [], [], [])


def touch_row(touch: PastTouch, now: float, *, revealed: bool = False) -> Row:
    """A message in the list; where it went is masked unless ``revealed``."""
    status = chip("news is awaited" if touch.waits and touch.status == "on its way" else touch.status,
                  TONES.get(touch.status, ""))
    reason = f'<div class="quiet">{escape(cut(touch.reason.replace("_", " "), 80))}</div>' if touch.reason else ""
    places = ", ".join(cut(_said(each, revealed), 40) for each in (touch.arrived or touch.destinations)[:3])
    return Row(touch.uid, (
        f'<a class="mono" href="{escape(trace_address(touch.uid))}">{broken_up(cut(touch.event or touch.uid, 80))}</a>'
        f'<div class="quiet">{escape(NAMES.get(touch.channel, touch.channel))}{" to " if places else ""}'
        f"{escape(places)}</div>", status + reason,
        f'<span title="{moment(touch.at)}">{shown_ago(now - touch.at)}</span>', said(touch),
    ))


def _said(address: str, revealed: bool) -> str:
    return address if revealed else masked_address(address)


def said(touch: PastTouch) -> str:
    """The words of a message, as far as they are kept."""
    parts = [str(touch.message[name]) for name in ("title", "subject", "body") if touch.message.get(name)]
    return f'<span class="quiet">{escape(cut(" · ".join(parts), 140))}</span>' if parts else NOTHING


def address_rows(found: PersonLook, *, revealed: bool = False) -> list[Row]:
    """Every address, masked unless ``revealed``, with what keeps it from being written to."""
    rows = [Row(f"{kind} {contact.address}", (
        f'<span class="mono">{escape(cut(_said(contact.address, revealed), 120))}</span>', contact_chips(contact),
    )) for kind, contacts in (("email", found.emails), ("sms", found.phones)) for contact in contacts]
    return rows + [Row(f"push {device.token}", (
        f'<span class="mono">{escape(cut(_said(device.token, revealed), 60))}</span>'
        f'<div class="quiet">{escape(device.platform)}, '
        f"seen {moment(device.last_seen_at)}</div>",
        chip("enabled", "good") if device.receives_notifications else chip("turned off", "warn"),
    )) for device in found.devices]


def contact_chips(contact: Contact) -> str:
    if contact.usable:
        return chip("verified", "good")
    made = [] if contact.verified else [chip("not verified", "warn")]
    made += [] if contact.receives_notifications else [chip("turned off", "warn")]
    return " ".join([*made, *([chip("suppressed", "bad")] if contact.suppressed else [])])


def reminder_row(reminder: Reminder) -> Row:
    return Row(reminder.uid, (
        f'<span class="ms-name {escape(reminder.channel)}">{NAMES.get(reminder.channel, "?")}</span>',
        f"{time_said(reminder.start_time)} to {time_said(reminder.end_time)}"
        f'<div class="quiet">{days_said(reminder.day_of_week_mask)}</div>',
    ))


def time_said(seconds: int) -> str:
    """Seconds after midnight as people say it."""
    day, of_day = divmod(seconds, 86_400)
    return f"{of_day // 3600:02}:{of_day % 3600 // 60:02}" + (" of the next day" if day else "")


def days_said(mask: int) -> str:
    if mask & EVERY_DAY == EVERY_DAY:
        return "every day"
    return ", ".join(name[:3] for place, name in enumerate(DAYS) if mask >> place & 1) or "never"


def show_nobody(running: Running, sampler: Sampler, asked: str, several: list[UserSub]) -> None:
    """What was asked for is nobody, or several people."""
    with messages_frame(running, sampler):
        ui.html('<a href="/messages">Messages</a>', sanitize=False, tag="nav").classes("ks-crumb")
        with ui.element("div").classes("ks-head"):
            with ui.element("div"):
                ui.html("Several people share this" if several else "Nobody is found", sanitize=True, tag="h1")
                ui.html(escape(cut(asked, 120)), sanitize=True, tag="p")
            search_box(asked)
        with ui.element("section").classes("ks-card"):
            if several:
                links = "".join(f'<li><a class="mono ks-link" href="{escape(person_address(sub))}">{escape(sub)}</a>'
                                "</li>" for sub in several)
                ui.html(f'<ul class="ms-people">{links}</ul>', sanitize=False)
            else:
                ui.html("<p>People are found by their sub, or by an email address or phone number they gave, written "
                        "out in full; messages by their uid.</p>", sanitize=True).classes("ks-empty")
