"""One clear line: whether the days that are over have left for their tables; when, how many rows, and what is late."""

from html import escape
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.clock import speed_of
from keystead.stats.rotated import RotationStanding, rotation_standing
from keystead.web.dashboard.jobs_shown import moment, plural
from keystead.web.dashboard.operator_frame import Look, add_operator_css, verdict
from keystead.web.dashboard.shown import shown_ago, shown_count, shown_duration
from keystead.web.dashboard.stats_shown import shown_took
from keystead.web.stats_watch import StatsWatch

EVERY_SECONDS: Final = 10.0
MOST_NAMED: Final = 5


def rotated_line(running: Running, watch: StatsWatch) -> Look:
    """Build the line where the caller stands; what it gives brings it up to date."""

    async def read(_: RotationStanding | None) -> RotationStanding:
        return await rotation_standing(running.valkey, running.database, running.catalogue, running.clock)

    add_operator_css()
    shared = watch.share("rotated", read, EVERY_SECONDS)
    line = ui.html("", sanitize=False).props("role=status data-rotated")

    def look() -> None:
        shared.want()
        if shared.value is not None and (
                text := rotated_html(shared.value, running.clock.now(), speed_of(running.clock))) != line.content:
            line.set_content(text)

    return look


def rotated_html(stands: RotationStanding, now: float, speed: float = 1.0) -> str:
    """``speed``: of the installation's clock; how long a run took is said in real time."""
    run = stands.run
    ran = ""
    if run is not None and run.finished_at is not None and not stands.is_running:
        ran = (f'The rotation last ran <span title="{moment(run.started_at)}">{shown_ago(now - run.finished_at)}</span>'
               f" and took {shown_took(None if run.running_time is None else run.running_time / speed)}.")
        if run.problems:
            ran += (f' It had <b>{plural(run.problems, "problem")}</b>; '
                    'the <a class="ks-link" href="/log?room=stats">log</a> tells.')
    coming = f" The next one is due in {shown_duration(stands.next_at - now)}." if stands.next_at is not None else ""
    wrote = f"{plural(stands.rows, 'row')} of {plural(stands.families, 'family', 'families')} in the last 24 hours"
    if stands.is_late:
        named = ", ".join(f'<span class="mono">{escape(name)}</span> since {escape(day)}'
                          for name, day in sorted(stands.late.items(), key=lambda item: item[1])[:MOST_NAMED])
        more = f" and {shown_count(len(stands.late) - MOST_NAMED)} more" if len(stands.late) > MOST_NAMED else ""
        never = "" if ran else "The rotation has not run yet."
        return verdict(f"<b>Yesterday did not rotate.</b> {plural(len(stands.late), 'thing')} that "
                       f"{'is' if len(stands.late) == 1 else 'are'} counted {'is' if len(stands.late) == 1 else 'are'} "
                       f"late: {named}{more}.<small>{ran or never} It wrote {wrote}.{coming} "
                       "<span class=mono>keystead stats rotate</span> does it now.</small>", "bad")
    if stands.is_running or stands.late:
        return verdict(f"<b>The rotation is running.</b><small>{wrote[0].upper()}{wrote[1:]}.{coming}</small>", "warn")
    if run is None and not stands.rows:
        return verdict(f"<b>Nothing is late.</b> No day was due to rotate yet.<small>{coming.strip()}</small>", "quiet")
    return verdict(f"<b>Yesterday rotated.</b> Every day that was due is in its table: {wrote}; nothing is late."
                   f"<small>{ran}{coming}</small>", "warn" if run is not None and run.problems else "")
