"""One person's messages: what they were sent, where they can be reached, and when they are reminded."""

from dataclasses import dataclass
from html import escape
from typing import Final
from urllib.parse import quote

from nicegui import ui

from keystead.app import Running
from keystead.ids import UserSub
from keystead.members import Contact, Described, Device
from keystead.members.searching import find_people
from keystead.messaging.touches import PastTouch
from keystead.reminders.effective import DAYS, EVERY_DAY
from keystead.reminders.settings import Reminder
from keystead.web.dashboard.jobs_shown import cut, moment, plural
from keystead.web.dashboard.live_table import Column, LiveTable, Row
from keystead.web.dashboard.messages import messages_frame, search_box
from keystead.web.dashboard.messages_look import NAMES
from keystead.web.dashboard.shown import NOTHING, chip, shown_ago
from keystead.web.dashboard.stats_frame import keep_looking, problem_banner
from keystead.web.dashboard.stats_shown import broken_up
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import StatsWatch

MOST_TOUCHES: Final = 100
# What the uids of touches and messages begin with; anything else that is asked for is a person.
UIDS: Final = ("tch_", "sms_", "em_", "pma_")
TONES: Final = {
    "arrived": "good", "on its way": "", "queued": "", "tried again": "warn", "unreachable": "warn", "stale": "warn",
    "given up": "bad", "failed": "bad", "improper": "bad",
}
TOUCH_COLUMNS: Final = (
    Column("Event"), Column("State", "ms-state"), Column("When", "when"), Column("Said", "mid ms-said"),
)
ADDRESS_COLUMNS: Final = (Column("Address"), Column("State", "ms-state"))


@dataclass(frozen=True, slots=True)
class PersonLook:
    """All of it at about one moment. ``described`` is None for somebody who does not exist (any more)."""

    described: Described | None
    touches: list[PastTouch]
    emails: list[Contact]
    phones: list[Contact]
    devices: list[Device]
    reminders: list[Reminder]


def trace_address(uid: str) -> str:
    return f"/messages/trace?uid={quote(uid, safe='')}"


def person_address(sub: str) -> str:
    return f"/messages/person?user={quote(sub, safe='')}"


async def find(running: Running, asked: str) -> list[UserSub]:
    """Whom it names."""
    return await find_people(running.database, asked)


async def show_person(running: Running, sampler: Sampler, watch: StatsWatch, sub: UserSub) -> None:
    """Build the page for one viewer; it then moves by itself."""

    async def read(_: PersonLook | None) -> PersonLook:
        return await person_look(running, sub)

    shared = watch.share(("person", sub), read)
    await shared.first()
    with messages_frame(running, sampler):
        ui.html('<a href="/messages">Messages</a>', sanitize=False, tag="nav").classes("ks-crumb")
        with ui.element("div").classes("ks-head"):
            with ui.element("div"):
                title = ui.html("", sanitize=True, tag="h1")
                below = ui.html("", sanitize=True, tag="p")
            search_box(sub)
        problem = problem_banner(sampler, shared)
        with ui.element("div").classes("ms-person"):
            with ui.element("section").classes("ks-card").props('aria-label="History"'):
                with ui.element("div").classes("ks-card-head"):
                    ui.html("Messages, newest first", sanitize=True, tag="h2")
                    says = ui.html("", sanitize=True).classes("quiet")
                touches = LiveTable(TOUCH_COLUMNS, classes="ms-touches")
            with ui.element("div"):
                with ui.element("section").classes("ks-card").props('aria-label="Addresses"'):
                    with ui.element("div").classes("ks-card-head"):
                        ui.html("Where they are reached", sanitize=True, tag="h2")
                    addresses = LiveTable(ADDRESS_COLUMNS, classes="ms-addresses")
                with ui.element("section").classes("ks-card").props('aria-label="Reminders"'):
                    with ui.element("div").classes("ks-card-head"):
                        ui.html("Daily reminders", sanitize=True, tag="h2")
                    reminders = LiveTable((Column("Channel"), Column("When", "ms-when")))

    def look() -> None:
        problem()
        if shared.value is None:
            return
        found, now = shared.value, running.clock.now()
        described = found.described
        title.set_content(escape((described.given_name if described else "") or sub))
        below.set_content(escape(_about(sub, described)))
        says.set_content(plural(len(found.touches), "message") if len(found.touches) < MOST_TOUCHES
                         else f"the latest {MOST_TOUCHES}")
        touches.show([touch_row(touch, now) for touch in found.touches],
                     empty="Nothing was sent to them, or the log of it is not written yet.")
        addresses.show(address_rows(found), empty="They gave no address, number or device.")
        reminders.show([reminder_row(each) for each in found.reminders],
                       empty="None: they cannot be reached, or do not want any.")

    keep_looking(look, shared)


def _about(sub: str, described: Described | None) -> str:
    if described is None:
        return "There is no such person now; what is still known of them is shown."
    return f"{sub} · {described.timezone or 'no time zone said'} · joined {moment(described.created_at)}"


async def person_look(running: Running, sub: UserSub) -> PersonLook:
    """Read everything about a person."""
    board = running.switchboard
    return PersonLook(
        (await board.contacts.described([sub])).get(sub), await board.history.of(sub, most=MOST_TOUCHES),
        await board.contacts.listed_emails(sub), await board.contacts.listed_phones(sub),
        await board.contacts.listed_devices(sub), list(await board.reminders.reminders_of(sub)),
    )


def touch_row(touch: PastTouch, now: float) -> Row:
    status = chip("news is awaited" if touch.waits and touch.status == "on its way" else touch.status,
                  TONES.get(touch.status, ""))
    reason = f'<div class="quiet">{escape(cut(touch.reason.replace("_", " "), 80))}</div>' if touch.reason else ""
    places = ", ".join(cut(each, 40) for each in (touch.arrived or touch.destinations)[:3])
    return Row(touch.uid, (
        f'<a class="mono" href="{escape(trace_address(touch.uid))}">{broken_up(cut(touch.event or touch.uid, 80))}</a>'
        f'<div class="quiet">{escape(NAMES.get(touch.channel, touch.channel))}{" to " if places else ""}'
        f"{escape(places)}</div>", status + reason,
        f'<span title="{moment(touch.at)}">{shown_ago(now - touch.at)}</span>', said(touch),
    ))


def said(touch: PastTouch) -> str:
    """The words of a message, as far as they are kept."""
    parts = [str(touch.message[name]) for name in ("title", "subject", "body") if touch.message.get(name)]
    return f'<span class="quiet">{escape(cut(" · ".join(parts), 140))}</span>' if parts else NOTHING


def address_rows(found: PersonLook) -> list[Row]:
    """Every address with what keeps it from being written to."""
    rows = [Row(f"{kind} {contact.address}", (
        f'<span class="mono">{escape(cut(contact.address, 120))}</span>', contact_chips(contact),
    )) for kind, contacts in (("email", found.emails), ("sms", found.phones)) for contact in contacts]
    return rows + [Row(f"push {device.token}", (
        f'<span class="mono">{escape(cut(device.token, 60))}</span><div class="quiet">{escape(device.platform)}, '
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
