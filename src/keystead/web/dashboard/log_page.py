"""The log of this process as it is written: filtered by level, room and text, followed or held still."""

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from typing import Final
from urllib.parse import quote

from nicegui import ui
from nicegui.events import GenericEventArguments

from keystead.app import Running
from keystead.telemetry import KEPT_LINES, LogLine, LogRing, log_lines
from keystead.web.dashboard.jobs_shown import cut, job_address, plural
from keystead.web.dashboard.live_table import button
from keystead.web.dashboard.messages_look import trace_address
from keystead.web.dashboard.operator_frame import operator_frame, operator_head
from keystead.web.dashboard.stats_frame import keep_looking
from keystead.web.sampler import Sampler
from keystead.web.searching import MESSAGE_UIDS

SHOWN_LINES: Final = 200
LEVELS: Final = ("debug", "info", "warning", "error")
LONGEST_ASKED: Final = 200
_REQUEST: Final = "request_id"
_TRACED: Final = "exception"  # where it came from, over several lines


class LogFilter:
    """What one viewer wants to see."""

    def __init__(self, level: str = "", room: str = "", text: str = "") -> None:
        self.level = level if level in LEVELS else "info"
        self.room, self.text = room[:LONGEST_ASKED], text[:LONGEST_ASKED]

    def wants(self, line: LogLine) -> bool:
        """Its level or a more serious one, its room or one inside it, and every word somewhere in the line."""
        if LEVELS.index(line.level) < LEVELS.index(self.level):
            return False
        if self.room and line.room != self.room and not line.room.startswith(f"{self.room}."):
            return False
        words = self.text.lower().split()
        return not words or all(word in _whole(line) for word in words)

    def chosen(self, lines: Iterable[LogLine]) -> list[LogLine]:
        return [line for line in lines if self.wants(line)]


def _whole(line: LogLine) -> str:
    fields = " ".join(f"{name}={value}" for name, value in line.fields.items())
    return f"{line.room} {line.event} {fields}".lower()


def show_log(
    running: Running, sampler: Sampler, *, level: str = "", room: str = "", text: str = "", ring: LogRing = log_lines
) -> None:
    """Build the page for one viewer; it then moves by itself until they hold it still."""
    wanted, held, drawn = LogFilter(level, room, text), False, -1
    rooms: list[str] = []
    with operator_frame(running, sampler, "/log"):
        state = operator_head("Log", f"The last {KEPT_LINES:,} lines of this process, newest first. Other processes "
                                     "write their own.")
        with ui.element("section").classes("ks-card").props('aria-label="Log"'):
            with ui.element("div").classes("ks-card-head"):
                with ui.element("div").classes("op-tools"):
                    levels = ui.element("select").classes("ks-filter").props('aria-label="Least level"')
                    with levels:
                        for name in LEVELS[1:]:
                            _option(name, f"{name} and above" if name != "error" else "only errors",
                                    chosen=name == wanted.level)
                    of_room = ui.element("select").classes("ks-filter").props('aria-label="Room"')
                    with of_room:
                        _option("", "every room", chosen=not wanted.room)
                    box = ui.element("input").classes("ks-filter")
                    box.props('type=search placeholder="Words, uid or request id…" aria-label="Text in the lines"')
                    box.props["value"] = wanted.text
                    hold = button("Pause", says="Hold the lines still")
                counted = ui.html("", sanitize=True).classes("quiet").props("role=status")
            lines = ui.html("", sanitize=False, tag="ol").classes("op-log").props("tabindex=0 aria-label=Lines")

    def offer_rooms(found: list[LogLine]) -> None:
        for name in sorted({line.room for line in found} - set(rooms)):
            rooms.append(name)
            with of_room:
                _option(name, name, chosen=name == wanted.room)

    def draw() -> None:
        nonlocal drawn
        kept = ring.after()
        drawn = kept[-1].number if kept else 0
        offer_rooms(kept)
        found = wanted.chosen(kept)
        shown = found[-SHOWN_LINES:]
        more = f", the newest {SHOWN_LINES} are shown" if len(found) > SHOWN_LINES else ""
        counted.set_content(f"{plural(len(found), 'line')} of {len(kept):,}{more}")
        lines.set_content("".join(line_html(line) for line in reversed(shown)) or _nothing(bool(kept)))

    def look() -> None:
        state("Held still" if held else "Following", "warn" if held else "")
        if not held and ring.after(drawn):
            draw()

    def turn() -> None:
        nonlocal held
        held = not held
        hold.set_content("Follow" if held else "Pause")
        hold.props["aria-label"] = "Follow again" if held else "Hold the lines still"
        if not held:
            draw()
        look()

    def choose_level(event: GenericEventArguments) -> None:
        wanted.level = str(event.args) if str(event.args) in LEVELS else wanted.level
        draw()

    def choose_room(event: GenericEventArguments) -> None:
        wanted.room = str(event.args)[:LONGEST_ASKED]
        draw()

    def choose_text(event: GenericEventArguments) -> None:
        wanted.text = str(event.args)[:LONGEST_ASKED]
        draw()

    hold.on("click", turn)
    levels.on("change", choose_level, js_handler="(event) => emit(event.target.value)")
    of_room.on("change", choose_room, js_handler="(event) => emit(event.target.value)")
    box.on("input", choose_text, throttle=0.2, js_handler="(event) => emit(event.target.value)")
    draw()
    keep_looking(look)


def _option(value: str, label: str, *, chosen: bool) -> None:
    made = ui.html(escape(label), sanitize=True, tag="option")
    made.props["value"] = value
    if chosen:
        made.props["selected"] = True


def _nothing(any_line: bool) -> str:
    words = "No line is like that." if any_line else (
        "Nothing was written yet. A healthy process says little: what fails, waits or is given up shows here.")
    return f'<li class="none"><span class="says quiet">{words}</span></li>'


def line_html(line: LogLine) -> str:
    """One line; ids lead to what they are about, and a request id to all lines of that request."""
    at = datetime.fromtimestamp(line.at, UTC)
    of_job = "job" in line.fields
    fields = " ".join(f"{escape(name)}={_value(name, value, of_job)}" for name, value in line.fields.items()
                      if name != _TRACED)
    traced = f"<pre>{escape(line.fields[_TRACED])}</pre>" if line.fields.get(_TRACED) else ""
    whole, shown = at.isoformat(timespec="milliseconds"), f"{at.strftime('%H:%M:%S')}.{at.microsecond // 1000:03}"
    return (
        f'<li><time title="{whole}">{shown}</time><span class="{line.level}">{line.level}</span>'
        f'<span class="room">{escape(line.room)}</span>'
        f'<span class="says">{escape(line.event)} <span class="fields">{fields}</span>{traced}</span></li>'
    )


def _value(name: str, value: str, of_job: bool) -> str:
    shown = escape(cut(value))
    if name == _REQUEST:
        return f'<a href="/log?text={quote(value, safe="")}" title="every line of this request">{shown}</a>'
    if name == "uid" and of_job:
        return f'<a href="{escape(job_address(value))}">{shown}</a>'
    if value.startswith(MESSAGE_UIDS):
        return f'<a href="{escape(trace_address(value))}">{shown}</a>'
    return f"<b>{shown}</b>"
