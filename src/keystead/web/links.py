"""The links and tokens that let people and programs in, made by whoever may read the data directory."""

import json
import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

from keystead.app import App
from keystead.edge import SCOPES, TICKET_UID, TOKEN_MOST_SECONDS, TicketRefused, Tickets
from keystead.errors import Invalid, Unavailable
from keystead.operations import KEY_SUBJECT
from keystead.settings import HttpSettings
from keystead.web.callers import LOGIN_PURPOSE, OPERATOR, TOKEN_PURPOSE

ADDRESS_FILE = "http.json"
ANSWER_SECONDS = 0.5


def login_link(app: App) -> str:
    """A new one-time link to the dashboard of the installation that runs in this data directory."""
    return link_to(read_address(app.data_directory), app.tickets(), app.settings.http)


def link_to(base_url: str, tickets: Tickets, settings: HttpSettings) -> str:
    ticket = tickets.issue(LOGIN_PURPOSE, OPERATOR, lasts_seconds=settings.login_link_seconds, once=True)
    return f"{base_url}/login?ticket={quote(ticket)}"


def program_token(app: App, name: str, scopes: tuple[str, ...], *, lasts_seconds: float) -> str:
    """A bearer token for a program, for example for whatever reads ``/metrics``; taken back by its ``token_id``."""
    for scope in scopes:
        if scope not in SCOPES:
            raise Invalid(f"there is no scope {scope!r}; known are {', '.join(SCOPES)}")
    if not name or name == OPERATOR or name.startswith(KEY_SUBJECT):  # each of those is somebody else
        raise Invalid("a token needs the name of the program that will hold it, such as prometheus")
    if not 0 < lasts_seconds <= TOKEN_MOST_SECONDS:
        raise Invalid(f"a token works for a while: for days above 0 and up to {TOKEN_MOST_SECONDS // 86400}, not "
                      f"{lasts_seconds / 86400:g}")
    return app.tickets().issue(TOKEN_PURPOSE, name, lasts_seconds=lasts_seconds, scopes=scopes)


def token_id(app: App, text: str) -> str:
    """The id of a token, from the token or the id itself. ``Invalid`` for what is no token of this installation.

    Tokens are kept nowhere, so an id is only looked at for its shape.
    """
    if TICKET_UID.fullmatch(text):
        return text
    try:
        return app.tickets().read(TOKEN_PURPOSE, text).uid
    except TicketRefused as error:
        raise Invalid(f"there is nothing to take back: {error}") from None


def write_address(directory: Path, base_url: str) -> None:
    """Remember where the installation can be reached, for commands that print links.

    Of several processes that answer for it, the first is remembered for as long as it does.
    """
    try:
        other = urlsplit(read_address(directory))
        socket.create_connection((other.hostname or "", other.port or 80), ANSWER_SECONDS).close()
    except (Unavailable, OSError, ValueError):
        with suppress(OSError):  # with a server and a secret of its own an installation needs no directory
            (directory / ADDRESS_FILE).write_text(json.dumps({"url": base_url}), encoding="utf-8")


def forget_address(directory: Path, base_url: str) -> None:
    """Nothing is reached at ``base_url`` any more; an address of another process stays."""
    with suppress(Unavailable):
        if read_address(directory) == base_url:
            (directory / ADDRESS_FILE).unlink(missing_ok=True)


def read_address(directory: Path) -> str:
    """``Unavailable`` when nothing runs there."""
    try:
        url = json.loads((directory / ADDRESS_FILE).read_text(encoding="utf-8"))["url"]
    except (OSError, ValueError, KeyError, TypeError):
        raise Unavailable(f"nothing runs in {directory}; start it with: keystead up") from None
    return str(url)
