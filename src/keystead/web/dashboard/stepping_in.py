"""Asking before something is done that cannot be undone, and telling afterwards what came of it."""

import asyncio
import math
from collections.abc import Awaitable
from html import escape

from nicegui import ui

from keystead.engine.failures import ErrorReply
from keystead.errors import KeysteadError
from keystead.web.dashboard.frame import LOOK_SECONDS
from keystead.web.dashboard.live_table import button

TOLD_SECONDS = 6.0


class SteppingIn:
    """One dialog and one line of news for a page; made inside its frame."""

    def __init__(self) -> None:
        with ui.dialog() as self._dialog, ui.element("div").classes("ks-dialog").props("role=alertdialog"):
            self._title = ui.html("", sanitize=True, tag="h2")
            self._text = ui.html("", sanitize=True, tag="p")
            with ui.element("div").classes("ks-dialog-foot"):
                button("Keep as it is").on("click", lambda: self._dialog.submit(False))
                self._go = button("", tone="danger solid")
                self._go.on("click", lambda: self._dialog.submit(True))
        self._told = ui.html("", sanitize=True).classes("ks-told hidden").props("role=status aria-live=polite")
        self._until = math.inf
        ui.timer(LOOK_SECONDS, self._fade)

    async def confirmed(self, title: str, text: str, go: str) -> bool:
        """Whether the reader wants it, having read the text. Closing the dialog means no."""
        self._title.set_content(escape(title))
        self._text.set_content(escape(text))
        self._go.set_content(escape(go))
        return bool(await self._dialog)

    def tell(self, text: str, *, bad: bool = False) -> None:
        """A line at the edge of the page, for a few seconds."""
        self._told.set_content(escape(text))
        self._told.classes(remove="hidden bad", add="bad" if bad else "")
        self._until = asyncio.get_running_loop().time() + TOLD_SECONDS

    async def tried(self, work: Awaitable[str]) -> None:
        """Do it and tell what it says, or why it could not be done."""
        try:
            self.tell(await work)
        except (KeysteadError, ErrorReply) as error:
            self.tell(str(error), bad=True)

    def _fade(self) -> None:
        if asyncio.get_running_loop().time() > self._until:
            self._told.classes(add="hidden")
            self._until = math.inf
