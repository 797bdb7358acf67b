"""One person: who they are, how they are reached and reminded, what they were sent, and what is kept of them."""

from dataclasses import dataclass
from html import escape
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.errors import NotFound
from keystead.ids import UserSub
from keystead.members import Member
from keystead.members.stats import DAILY_ACTIVE, MONTHLY_ACTIVE
from keystead.reminders.why import ChannelWhy, Why
from keystead.web.dashboard.frame import asset, page_frame
from keystead.web.dashboard.jobs_shown import moment, plural
from keystead.web.dashboard.live_table import Column, LiveTable, button
from keystead.web.dashboard.messages_look import NAMES, trace_address
from keystead.web.dashboard.messages_person import (
    ADDRESS_COLUMNS,
    MOST_TOUCHES,
    TOUCH_COLUMNS,
    PersonLook,
    address_rows,
    person_look,
    reminder_row,
    touch_row,
)
from keystead.web.dashboard.operator_frame import problem_banner
from keystead.web.dashboard.people_page import local_time
from keystead.web.dashboard.person_keys import person_keys
from keystead.web.dashboard.shown import chip, fact_rows, shown_ago
from keystead.web.dashboard.stats_frame import keep_looking
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import StatsWatch

TONES: Final = {"fine": "good", "waits": "warn", "stops": ""}


@dataclass(frozen=True, slots=True)
class PersonFacts:
    """All of it at about one moment. ``member`` and ``why`` are None for somebody who does not exist (any more)."""

    member: Member | None
    messages: PersonLook
    why: Why | None
    active_today: bool
    active_this_month: bool


async def show_person(running: Running, sampler: Sampler, watch: StatsWatch, sub: UserSub) -> None:
    """Build the page for one viewer; it then moves by itself. Addresses are masked until someone asks to see them."""

    async def read(_: PersonFacts | None) -> PersonFacts:
        return await person_facts(running, sub)

    shared = watch.share(("person", sub), read)
    await shared.first()
    revealed = False
    with page_frame(sampler, running.clock, current="/people"):
        ui.add_head_html(f"<style>{asset('messages.css')}</style>")
        ui.html('<a href="/people">People</a>', sanitize=False, tag="nav").classes("ks-crumb")
        with ui.element("div").classes("ks-head"):
            with ui.element("div"):
                title = ui.html("", sanitize=True, tag="h1")
                below = ui.html("", sanitize=True, tag="p")
            reveal = button("Reveal addresses")
            reveal.on("click", lambda: turn())
        problem = problem_banner(sampler, "This person", shared)
        with ui.element("div").classes("ms-person"):
            with ui.element("div"):
                with _card("Reminder of today", "Reminder"):
                    why = ui.html("", sanitize=False)
                with _card("Messages, newest first", "History"):
                    touches = LiveTable(TOUCH_COLUMNS, classes="ms-touches")
            with ui.element("div"):
                with _card("Profile"):
                    facts = ui.html("", sanitize=False)
                with _card("Where they are reached", "Addresses"):
                    addresses = LiveTable(ADDRESS_COLUMNS, classes="ms-addresses")
                with _card("Daily reminders", "Reminders"):
                    reminders = LiveTable((Column("Channel"), Column("When, by their clock", "ms-when")))
        await person_keys(running, sub)

    def look() -> None:
        problem()
        if shared.value is None:
            title.set_content(escape(sub))
            return
        found, now = shared.value, running.clock.now()
        title.set_content(escape(name_of(found.member) or sub))
        below.set_content(escape(about(sub, found.member, now)))
        facts.set_content(profile_html(sub, found, now))
        why.set_content(why_html(found.why))
        touches.show([touch_row(touch, now, revealed=revealed) for touch in found.messages.touches[:MOST_TOUCHES]],
                     empty="Nothing was sent to them, or the log of it is not written yet.")
        addresses.show(address_rows(found.messages, revealed=revealed),
                       empty="They gave no address, number or device.")
        reminders.show([reminder_row(each) for each in found.messages.reminders],
                       empty="None: they cannot be reached, or do not want any.")

    def turn() -> None:
        nonlocal revealed
        revealed = not revealed
        reveal.set_content("Hide addresses" if revealed else "Reveal addresses")
        look()

    keep_looking(look, shared)


def _card(title: str, label: str = "") -> ui.element:
    card = ui.element("section").classes("ks-card").props(f'aria-label="{label or title}"')
    with card, ui.element("div").classes("ks-card-head"):
        ui.html(title, sanitize=True, tag="h2")
    return card


async def person_facts(running: Running, sub: UserSub) -> PersonFacts:
    """Read everything about a person."""
    try:
        member: Member | None = await running.users.get(sub)
        why: Why | None = await running.switchboard.reminders_explained.why(sub)
    except NotFound:
        member = why = None
    now = running.clock.now()
    return PersonFacts(
        member, await person_look(running, sub), why,
        await DAILY_ACTIVE.contains(running.valkey, sub, DAILY_ACTIVE.day_of(now)),
        await MONTHLY_ACTIVE.contains(running.valkey, sub, MONTHLY_ACTIVE.day_of(now)),
    )


def name_of(member: Member | None) -> str:
    return " ".join(filter(None, (member.given_name, member.family_name))) if member is not None else ""


def about(sub: str, member: Member | None, now: float) -> str:
    """Who it is in a line."""
    if member is None:
        return "There is no such person now; what is still known of them is shown."
    return f"{sub} · {local_time(member.timezone, now)} where they are"


def profile_html(sub: str, found: PersonFacts, now: float) -> str:
    """What is known of the person, without any address."""
    member = found.member
    if member is None:
        return fact_rows([("Sub", f'<span class="mono">{escape(sub)}</span>'), ("State", chip("not there", "warn"))])
    zone = escape(member.timezone or "not said: that of the statistics")
    active = chip("active today", "good") if found.active_today else \
        chip("active this month", "") if found.active_this_month else chip("not active this month", "")
    ways = [plural(len(found.messages.emails), "email address", "email addresses"),
            plural(len(found.messages.phones), "phone number"), plural(len(found.messages.devices), "device")]
    return fact_rows([
        ("Sub", f'<span class="mono">{escape(sub)}</span>'), ("Name", escape(name_of(member) or "not said")),
        ("Time zone", f"{zone}<small>{local_time(member.timezone, now)} there now</small>"),
        ("Joined", f"{shown_ago(now - member.created_at)}<small>{moment(member.created_at)}</small>"),
        ("Activity", active), ("Reached by", escape(", ".join(ways))),
        ("Rights", chip("admin", "warn") if member.admin else ""),
    ])


def why_html(why: Why | None) -> str:
    """Whether a reminder comes today, and by channel what decides about it."""
    if why is None:
        return '<div class="ks-empty">There is no such person, so none comes.</div>'
    rows = "".join(
        f'<dt><span class="ms-name {escape(each.channel)}">{NAMES.get(each.channel, "?")}</span></dt>'
        f"<dd>{_reasons(each)}</dd>" for each in why.channels)
    return (f'<p class="ks-answer">{escape(why.answer)}</p><details class="ks-more"><summary>By channel</summary>'
            f'<dl class="ks-facts">{rows}</dl></details>')


def _reasons(each: ChannelWhy) -> str:
    lines = "".join(f"<div>{chip(reason.tone, TONES[reason.tone])} {escape(reason.says)}</div>"
                    for reason in each.reasons)
    if not each.touch_uid:
        return lines
    return f'{lines}<a class="ks-link" href="{escape(trace_address(each.touch_uid))}">the message</a>'
