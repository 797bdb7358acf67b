"""The sandbox: what each person would have received, and what the providers do wrong."""

from functools import partial
from html import escape
from importlib.resources import files
from typing import Final, cast

from nicegui import ui

from keystead.app import Running
from keystead.errors import Unavailable
from keystead.messaging.sandbox import CHANNELS, Channel, FaultBoard, Ledger, Outbox, Recipient, text_us
from keystead.web.dashboard.frame import LOOK_SECONDS, page_frame
from keystead.web.dashboard.jobs_shown import plural
from keystead.web.dashboard.sandbox_faults import faults_card, faults_set
from keystead.web.dashboard.sandbox_shown import NAMES, icon, recipient_row, shown_messages
from keystead.web.dashboard.stepping_in import SteppingIn
from keystead.web.sampler import Sampler

MOST_RECIPIENTS: Final = 100
MOST_MESSAGES: Final = 30
FIRST_STEPS: Final = """<div class="ks-first"><h2>Nothing has been sent yet</h2>
<p>While a channel's provider is <span class="mono">sandbox</span>, its messages go nowhere and are shown here as the
person would have seen them: texts, push messages, email.</p>
<p>Write to somebody whose address is known:</p>
<pre class="ks-code">keystead message send USER daily_reminder</pre>
<p>This page moves by itself as soon as there is something to show.</p></div>"""


class _Page:
    """One viewer's page: who is looked at, and what was last shown of them."""

    def __init__(self, running: Running) -> None:
        self._clock = running.clock
        self._account_sid = running.settings.sms.account_sid
        self._ledger = Ledger(running.valkey, running.clock)
        self._outbox = Outbox(running.valkey)
        self.board = FaultBoard(running.valkey)
        self.channel: Channel | None = None
        self.like = ""
        self.chosen: tuple[Channel, str] | None = None
        self._shown: object = None
        self._rows: dict[tuple[Channel, str], ui.html] = {}

    def build(self) -> None:
        self.step_in = SteppingIn()
        with ui.element("div").classes("ks-head"):
            with ui.element("div"):
                ui.html("Sandbox", sanitize=True, tag="h1")
                ui.html("What each person would have received. Nothing of it was delivered.", sanitize=True, tag="p")
            self._state = ui.html("", sanitize=True, tag="span").classes("ks-state").props("role=status")
        with ui.element("section").classes("ks-card hidden") as self._first:
            ui.html(FIRST_STEPS, sanitize=False)
        with ui.element("div").classes("sb-two") as self._two:
            self._build_recipients()
            self._build_messages()
        self._faults_look = faults_card(self.board, self.step_in)

    def _build_recipients(self) -> None:
        with ui.element("section").classes("ks-card sb-people").props('aria-label="Recipients"'):
            with ui.element("div").classes("sb-people-head"):
                box = ui.element("input").classes("ks-filter")
                box.props('type=search placeholder="Find an address…" aria-label="Find an address" autocomplete=off')
                with ui.element("div").classes("ks-tabs").props("role=group"):
                    tabs = {name: ui.html(label, sanitize=True, tag="button").props("type=button")
                            for name, label in (("", "All"), *((each, NAMES[each]) for each in CHANNELS))}
            self._list = ui.element("div").classes("sb-rows")
            self._none = ui.html("Nobody like that.", sanitize=True).classes("ks-empty hidden")

        async def choose(name: str) -> None:
            self.channel = cast(Channel, name) if name else None
            for each, tab in tabs.items():
                tab.props(f"aria-pressed={'true' if each == name else 'false'}")
            await self.look()

        async def find(like: str) -> None:
            self.like = like.strip()
            await self.look()

        for name, tab in tabs.items():
            tab.props(f"aria-pressed={'false' if name else 'true'}")
            tab.on("click", partial(choose, name))
        box.on("input", lambda event: find(event.args), throttle=0.2, js_handler="(e) => emit(e.target.value)")

    def _build_messages(self) -> None:
        with ui.element("section").classes("ks-card sb-messages").props('aria-label="Messages"'):
            self._title = ui.html("", sanitize=False).classes("ks-card-head")
            self._body = ui.html("", sanitize=False)
            with ui.element("form").classes("sb-reply hidden").props("onsubmit=return(false)") as self._reply:
                words = ui.element("input").classes("ks-filter")
                words.props('placeholder="Answer as this person, such as STOP" aria-label="Answer" maxlength=1600')
                send = ui.html("Answer", sanitize=True, tag="button").classes("ks-btn accent").props("type=submit")
                send.props["aria-label"] = "Send the answer"

        async def answer(text: str) -> None:
            if self.chosen is not None and text.strip():
                await self.step_in.tried(self._answered(self.chosen[1], text))
                await self.look()

        self._reply.on("submit", lambda event: answer(event.args), js_handler="""(e) => {
            e.preventDefault(); const box = e.target.querySelector("input"); emit(box.value); box.value = ""; }""")

    async def _answered(self, number: str, text: str) -> str:
        await text_us(self._ledger, self._clock, self._account_sid, number, text)
        return f"Texted as {number}"

    async def look(self) -> None:
        """Bring everything up to date. While the server is away the banner says so and the rest stays as it was."""
        try:
            await self.board.refresh()
            people = await self._outbox.recipients(most=MOST_RECIPIENTS, channel=self.channel, like=self.like)
            if self.chosen is None and people:
                self.chosen = (people[0].channel, people[0].address)
            self._show_people(people)
            await self._show_messages()
        except Unavailable:
            return
        on = sum(faults_set(faults) for faults in self.board.all().values())
        self._state.set_content("No faults" if not on else f"{on} fault{'' if on == 1 else 's'} on")
        self._state.classes(remove="warn" if not on else "", add="warn" if on else "")
        self._faults_look()

    def _show_people(self, people: list[Recipient]) -> None:
        bare = not people and not self.like and self.channel is None
        for element, hidden in ((self._first, not bare), (self._two, bare), (self._none, bool(people))):
            element.classes(add="hidden") if hidden else element.classes(remove="hidden")
        wanted = [(each.channel, each.address) for each in people]
        for gone in [key for key in self._rows if key not in wanted]:
            self._rows.pop(gone).delete()
        now = self._clock.now()
        for place, each in enumerate(people):
            key = (each.channel, each.address)
            if key not in self._rows:
                with self._list:
                    made = ui.html("", sanitize=False, tag="button").classes("sb-row").props("type=button")
                    made.on("click", partial(self.choose, key))
                self._rows[key] = made
            row = self._rows[key]
            row.set_content(recipient_row(each, now))
            row.props(f"aria-pressed={'true' if key == self.chosen else 'false'}")
            row.style(f"order: {place}")

    async def choose(self, key: tuple[Channel, str]) -> None:
        self.chosen = key
        await self.look()

    async def _show_messages(self) -> None:
        if self.chosen is None:
            return
        channel, address = self.chosen
        messages = await self._outbox.messages(channel, address, most=MOST_MESSAGES)
        now = self._clock.now()
        # Sent anew only when something changed: a mail in its frame would flicker otherwise.
        shown = (self.chosen, [(message.id, message.step_at(now).status) for message in messages])
        if shown == self._shown:
            return
        self._shown = shown
        number = plural(len(messages), "message") if len(messages) < MOST_MESSAGES else f"the latest {MOST_MESSAGES}"
        self._title.set_content(f'<h2 class="sb-address">{icon(channel)}<span class="mono">{escape(address)}</span>'
                                f'</h2><span class="quiet">{number}</span>')
        self._body.set_content(shown_messages(channel, messages, now))
        self._reply.classes(remove="hidden") if channel == "sms" else self._reply.classes(add="hidden")


async def show_sandbox(running: Running, sampler: Sampler, channel: str = "", to: str = "") -> None:
    """Build the page for one viewer; it then moves by itself. ``channel`` and ``to`` name whom to begin with."""
    css = files("keystead.web").joinpath("assets", "sandbox.css").read_text(encoding="utf-8")
    page = _Page(running)
    if channel in CHANNELS and to:
        page.chosen = (channel, to)
    with page_frame(sampler, running.clock, current="/sandbox"):
        ui.add_head_html(f"<style>{css}</style>")
        page.build()
    await page.look()
    ui.timer(LOOK_SECONDS, page.look)
