"""The channels now: what waits in each lane, what is with the provider, and a switch that stops one."""

from collections.abc import Callable
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.web.dashboard.jobs_shown import ago, number, plural
from keystead.web.dashboard.live_table import Action, Column, LiveTable, Row
from keystead.web.dashboard.messages_look import CHANNELS, NAMES, ChannelLook, MessagesLook
from keystead.web.dashboard.shown import NOTHING, chip, shown_count, shown_duration, shown_rate
from keystead.web.dashboard.stepping_in import SteppingIn
from keystead.web.message_rates import MessageRates
from keystead.web.stats_watch import Shared

Look = Callable[[MessageRates | None], None]

COLUMNS: Final = (
    Column("Channel"), Column("Waiting", "num"), Column("To retry", "num mid"), Column("News awaited", "num mid"),
    Column("Oldest", "when mid"), Column("Per second", "when wide"),
)


def channels_card(running: Running, shared: Shared[MessagesLook], step_in: SteppingIn) -> Look:
    """A row for each channel, and one for the touches they are made from."""

    async def act(name: str, action: str) -> None:
        channel = CHANNELS[name]
        if action == "resume":
            await step_in.tried(_resumed(running, name))
        elif await step_in.confirmed(
            f"Pause {NAMES[name].lower()} messages?",
            "Nothing is sent on this channel until someone resumes it. What is queued waits, nothing of it is lost; "
            "reminders and codes come late, or too late.", f"Pause {channel.name}",
        ):
            await step_in.tried(_paused(running, name))
        await shared.read()

    with ui.element("section").classes("ks-card").props('aria-label="Channels"'):
        with ui.element("div").classes("ks-card-head"):
            ui.html("Channels", sanitize=True, tag="h2")
            says = ui.html("", sanitize=True).classes("quiet")
        table = LiveTable(COLUMNS, act=act, classes="ms-channels")

    def look(rates: MessageRates | None) -> None:
        if shared.value is None:
            return
        now = running.clock.now()
        waiting = sum(one.waiting for one in shared.value.channels) + shared.value.to_send.length
        says.set_content(plural(waiting, "waits", "wait") if waiting else "nothing waits")
        table.show([*(channel_row(one, rates, now) for one in shared.value.channels), touches_row(shared.value, now)])

    return look


async def _paused(running: Running, name: str) -> str:
    channel = CHANNELS[name]
    for lane in running.valkey.lanes_of(channel.paused_key):
        await channel.pause(lane)
    return f"{NAMES[name]} messages are paused."


async def _resumed(running: Running, name: str) -> str:
    channel = CHANNELS[name]
    was = any([await channel.resume(lane) for lane in running.valkey.lanes_of(channel.paused_key)])
    return f"{NAMES[name]} messages go on." if was else f"{NAMES[name]} messages were not paused."


def state_chips(one: ChannelLook) -> str:
    """What keeps a channel from sending, if anything does."""
    made = []
    if one.is_held:
        made.append(chip("paused", "warn"))
    elif one.paused_seconds is not None and one.paused_seconds >= 1:
        made.append(chip(f"the provider wants a rest of {shown_duration(one.paused_seconds)}", "warn"))
    if one.breaker != "closed":
        words = "the provider fails, one call tries" if one.breaker == "probing" else "the provider fails, breaker open"
        made.append(chip(words, "bad"))
    if one.dead:
        made.append(chip(f"{shown_count(one.dead)} given up", "bad"))
    return " ".join(made) or chip("sending" if one.waiting else "ready", "good")


def channel_row(one: ChannelLook, rates: MessageRates | None, now: float) -> Row:
    lanes = " · ".join(f"{shown_count(count)} {lane}" for count, lane in zip(
        one.lanes, ("high", "normal", "low"), strict=True) if count)
    overdue = f'<div class="bad">{shown_count(one.overdue)} overdue</div>' if one.overdue else ""
    action = Action("resume", "Resume", "accent", f"Resume {one.name}") if one.is_held else \
        Action("pause", "Pause", "", f"Pause {one.name}")
    return Row(one.name, (
        f'<span class="ms-name {one.name}">{NAMES[one.name]}</span> {state_chips(one)}',
        f'{number(one.waiting)}<div class="quiet ms-lanes">{lanes}</div>', number(one.retrying, "warn"),
        number(one.pending) + overdue, ago(one.oldest_at, now), rates_cell(rates, one.name),
    ), (action,))


def rates_cell(rates: MessageRates | None, channel: str) -> str:
    if rates is None:
        return NOTHING
    queued, sent, arrived = rates.by_channel[channel]
    return (f'<b>{shown_rate(sent)}</b> sent<div class="quiet">{shown_rate(queued)} queued, '
            f'{shown_rate(arrived)} arrived</div>')


def touches_row(look: MessagesLook, now: float) -> Row:
    overdue = f'<div class="bad">{shown_count(look.pending.overdue)} overdue</div>' if look.pending.overdue else ""
    rows = f"; {plural(look.to_log.length, 'row')} to be written" if look.to_log.length else ""
    oldest = look.to_send.oldest_at
    return Row("touches", (
        '<span class="ms-name touches">Touches</span> <span class="quiet">become messages'
        f"{rows}</span>", number(look.to_send.length), "",
        number(look.pending.length) + overdue, ago(oldest, now), "",
    ))
