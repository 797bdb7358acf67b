"""``keystead message pause`` and ``resume``: let a channel take nothing, or take again."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from keystead.cli.output import note
from keystead.cli.session import connected, run_settings, wait_for
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.engine import Valkey
    from keystead.messaging.sending import Channel

ChannelArgument = Annotated[
    str, typer.Argument(metavar="CHANNEL", help="push, sms or email; all for every one of them.")
]


def channels(name: str = "all") -> "list[Channel[Any]]":
    """The channels of this name."""
    from keystead.messaging.email.keys import SENDING as EMAIL
    from keystead.messaging.push.keys import SENDING as PUSH
    from keystead.messaging.sms.keys import SENDING as SMS

    known: dict[str, Channel[Any]] = {"push": PUSH, "sms": SMS, "email": EMAIL}
    if name == "all":
        return list(known.values())
    if name not in known:
        raise Invalid(f"there is no channel {name!r}; there are {', '.join(known)}, or all")
    return [known[name]]


async def hold_sending(valkey: "Valkey") -> None:
    """Let no channel take anything until somebody resumes it."""
    for channel in channels():
        for lane in valkey.lanes_of(channel.paused_key):
            await channel.pause(lane)


async def count_waiting(valkey: "Valkey") -> dict[str, int]:
    """How many messages of each channel wait or are under way, and touches that are no messages yet."""
    from keystead.messaging.sending import Lane
    from keystead.messaging.touches.keys import TO_SEND
    from keystead.messaging.touches.places import purgatories

    found: dict[str, int] = {"touches": 0}
    for lane in valkey.lanes:
        found["touches"] += await TO_SEND.length(lane)
    for channel in channels():
        found[channel.name] = 0
        for lane in valkey.lanes_of(channel.paused_key):
            found[channel.name] += sum([await channel.waiting(each).length(lane) for each in Lane])
            found[channel.name] += sum([await place.length(lane) for place in await purgatories(lane, channel.work)])
    return found


def pause(context: typer.Context, channel: ChannelArgument) -> None:
    """Let a channel take no more messages; they wait in their queue. What a courier holds already still goes out."""
    settings, found = run_settings(context), channels(channel)

    async def ask() -> None:
        async with connected(settings) as valkey:
            for each in found:
                for lane in valkey.lanes_of(each.paused_key):
                    await each.pause(lane)

    wait_for(ask())
    note(f"paused: {channel}; `keystead message resume {channel}` lets it go on")


def resume(context: typer.Context, channel: ChannelArgument) -> None:
    """Let a channel go on that was paused, such as by `keystead restore --hold-sending`."""
    settings, found = run_settings(context), channels(channel)

    async def ask() -> list[str]:
        async with connected(settings) as valkey:
            return [each.name for each in found
                    if any([await each.resume(lane) for lane in valkey.lanes_of(each.paused_key)])]

    went_on = wait_for(ask())
    note(f"goes on: {', '.join(went_on)}" if went_on else f"{channel} was not paused")
