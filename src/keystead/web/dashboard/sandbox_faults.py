"""Switches for what the sandbox's providers do wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from nicegui import ui

from keystead.messaging.sandbox import CHANNELS, Channel, FaultBoard, Faults
from keystead.web.dashboard.live_table import button
from keystead.web.dashboard.sandbox_shown import NAMES
from keystead.web.dashboard.stepping_in import SteppingIn

Look = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Dial:
    """One slider: the fault, its name, how far it goes, and for whom it means anything."""

    fault: str
    label: str
    most: float = 1.0
    step: float = 0.01
    unit: str = "%"
    channels: tuple[Channel, ...] = CHANNELS

    def said(self, value: float) -> str:
        if self.unit == "%":
            return f"{value * 100:.0f} %"
        return f"{value:g} {self.unit}" if value or self.fault != "rate_per_second" else "off"


_WEBHOOKS: Final[tuple[Channel, ...]] = ("sms", "email")
GROUPS: Final = (
    ("Answers", (
        Dial("latency_ms", "Answer time", 5000, 50, "ms"), Dial("rate_per_second", "Rate limit", 200, 1, "per s"),
        Dial("throttle", "Throttled (429)"), Dial("server_error", "Server errors (5xx)"),
        Dial("cut_before", "Cut off, not accepted"), Dial("cut_after", "Cut off, accepted"),
    )),
    ("Delivery", (
        Dial("receipt_seconds", "Receipt after", 120, 1, "s"), Dial("undelivered", "Undelivered"),
        Dial("unregistered", "Device not registered", channels=("push",)),
        Dial("complaint", "Complaint", channels=("email",)),
    )),
    ("Receipts and webhooks", (
        Dial("lost", "Lost"), Dial("duplicated", "Duplicated", channels=_WEBHOOKS),
        Dial("reordered", "Out of order", channels=_WEBHOOKS), Dial("early", "Before the answer"),
        Dial("unknown", "Unknown status"),
    )),
)


def faults_set(faults: Faults) -> int:
    """How many faults are turned on; how long news takes is no fault."""
    return sum(getattr(faults, dial.fault) > 0 for _, dials in GROUPS for dial in dials
               if dial.fault != "receipt_seconds")


def faults_card(board: FaultBoard, step_in: SteppingIn) -> Look:
    """The sliders of one provider at a time."""
    chosen: Channel = "sms"
    rows: dict[str, tuple[Dial, ui.element, ui.element, ui.html]] = {}

    with ui.element("details").classes("ks-card sb-faults"):
        with ui.element("summary"):
            ui.html("Faults", sanitize=True, tag="h2")
            says = ui.html("", sanitize=True).classes("quiet")
        with ui.element("div").classes("sb-faults-head"):
            with ui.element("div").classes("ks-tabs").props("role=group"):
                tabs = {channel: ui.html(NAMES[channel], sanitize=True, tag="button").props("type=button")
                        for channel in CHANNELS}
            calm = button("Turn all off", says="Turn all faults of all providers off")
        with ui.element("div").classes("sb-dials"):
            for name, dials in GROUPS:
                with ui.element("section"):
                    ui.html(name, sanitize=True, tag="h3")
                    for dial in dials:
                        with ui.element("label") as row:
                            ui.html(dial.label, sanitize=True, tag="span")
                            box = ui.element("input").props(f"type=range min=0 max={dial.most} step={dial.step}")
                            value = ui.html("", sanitize=True, tag="output")
                        rows[dial.fault] = (dial, row, box, value)

    def look() -> None:
        faults = board.of(chosen)
        for fault, (dial, row, box, value) in rows.items():
            now: float = getattr(faults, fault)
            row.classes(remove="hidden") if chosen in dial.channels else row.classes(add="hidden")
            if box.props.get("value") != now:
                box.props["value"] = now
            value.set_content(dial.said(now))
        on = {channel: faults_set(board.of(channel)) for channel in CHANNELS}
        says.set_content("All providers answer as they should." if not any(on.values()) else
                         "On: " + ", ".join(f"{NAMES[channel]} {count}" for channel, count in on.items() if count))

    def choose(channel: Channel) -> None:
        nonlocal chosen
        chosen = channel
        for each, tab in tabs.items():
            tab.props(f"aria-pressed={'true' if each == chosen else 'false'}")
        look()

    async def turn(fault: str, given: str) -> None:
        dial = rows[fault][0]
        await step_in.tried(_changed(board, chosen, dial, float(given)))
        look()

    async def turn_off() -> None:
        await step_in.tried(_cleared(board))
        look()

    for channel, tab in tabs.items():
        tab.on("click", partial(choose, channel))
    for fault, (_, _, box, _) in rows.items():
        box.on("change", lambda event, fault=fault: turn(fault, event.args), js_handler="(e) => emit(e.target.value)")
    calm.on("click", turn_off)
    choose(chosen)
    return look


async def _changed(board: FaultBoard, channel: Channel, dial: Dial, value: float) -> str:
    await board.change(channel, {dial.fault: value})
    return f"{NAMES[channel]}: {dial.label.lower()}, {dial.said(value)}"


async def _cleared(board: FaultBoard) -> str:
    await board.clear()
    return "All faults are off"
