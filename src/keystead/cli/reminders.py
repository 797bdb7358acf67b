"""``keystead reminders``: why somebody got no reminder."""

from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.output import Format, FormatOption, note, printable, table, write, write_json
from keystead.cli.session import run_settings, wait_for
from keystead.errors import Conflict, NotFound

if TYPE_CHECKING:
    from keystead.reminders import Why


def why(
    context: typer.Context,
    person: Annotated[
        str, typer.Argument(metavar="PERSON", help="The sub of their account, or an email address or phone number they "
                                                   "gave, written out in full.")
    ],
    days_back: Annotated[
        int, typer.Option(min=0, max=3, metavar="DAYS", help="So many days before today, where the person is.")
    ] = 0,
    format: FormatOption = Format.TABLE,
) -> None:
    """Tell why a person got no reminder today: every reason, channel by channel, what to look at first."""
    from keystead.app import App
    from keystead.dates import unix_date_to_date
    from keystead.members.searching import find_people

    settings = run_settings(context)

    async def ask() -> "Why":
        async with App(settings).running() as running:
            found = await find_people(running.database, person)
            if not found:
                raise NotFound("nobody has this sub, email address or phone number")
            if len(found) > 1:
                raise Conflict(f"{len(found)} people share this; ask for one by sub: {', '.join(found[:5])}")
            return await running.switchboard.reminders_explained.why(found[0], days_back=days_back)

    told = wait_for(ask())
    day = unix_date_to_date(told.day).isoformat()
    if format is Format.JSON:
        write_json({
            "sub": told.sub, "day": day, "timezone": told.timezone, "answer": told.answer,
            "channels": [{"channel": each.channel, "touch_uid": each.touch_uid or None, "reasons": [
                {"code": reason.code, "tone": reason.tone, "says": reason.says} for reason in each.reasons
            ]} for each in told.channels],
        })
        return
    write(printable(told.answer))
    shown = table("channel", "reason", "", "says")
    for each in told.channels:
        for place, reason in enumerate(each.reasons):
            shown.add_row("" if place else each.channel, reason.code, reason.tone, printable(reason.says))
    write(shown)
    note(f"{told.sub} on {day}, by the clock of {told.timezone}")
