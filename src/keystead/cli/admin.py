"""``keystead admin``: the keys with which programs use the HTTP interface, and the end of sessions and tokens."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from keystead.cli.output import Format, FormatOption, emit, note, printable, table, write, write_json
from keystead.cli.place import refuse_beside_demo
from keystead.cli.session import connected, run_settings, wait_for
from keystead.errors import Invalid, NotFound

if TYPE_CHECKING:
    from keystead.edge import Endings
    from keystead.operations import AdminKey, AdminKeys
    from keystead.settings import Settings

T = TypeVar("T")


def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The program that will hold it, such as shop.")],
    scope: Annotated[
        list[str],
        typer.Option(help="What it may reach: admin, alerts, blocks, jobs, keys, messaging, metrics, stats, users, or "
                          "* for everything. Give it once for each."),
    ],
    days: Annotated[
        float | None, typer.Option(metavar="DAYS", help="How long it works.", show_default="until it is revoked")
    ] = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Make a key and print it, once: it is kept nowhere.

    Send it as `Authorization: Bearer KEY`. A server that runs knows it within seconds.
    """
    if days is not None and not 0 < days <= 3650:
        raise Invalid(f"a key works for a while: --days takes a number above 0 and up to 3650, not {days:g}")

    async def make(keys: "AdminKeys") -> tuple["AdminKey", str]:
        made = await keys.create(name, scope, lasts_seconds=None if days is None else days * 86400)
        return made.key, made.text

    key, text = wait_for(_with_keys(_settings(context), make))
    if format is Format.JSON:
        write_json({"key": text, **_facts(key, key.created_at)})
        return
    emit(text + "\n")
    note(f"This is the only time the key is shown. Take it back with: keystead admin key revoke {key.id}")


def list_keys(context: typer.Context, format: FormatOption = Format.TABLE) -> None:
    """Every key, the newest first, without its secret."""
    async def read(keys: "AdminKeys") -> list["AdminKey"]:
        return await keys.list()

    found, now = wait_for(_with_keys(_settings(context, begins=False), read)), datetime.now(UTC).timestamp()
    if format is Format.JSON:
        write_json([_facts(key, now) for key in found])
        return
    rows = table("id", "name", "scopes", "state", "created", "last used")
    for key in found:
        rows.add_row(key.id, printable(key.name), " ".join(sorted(key.scopes)), key.state(now), _day(key.created_at),
                     _day(key.last_used_at))
    write(rows)


def revoke(
    context: typer.Context,
    id: Annotated[str, typer.Argument(metavar="ID", help="The id, as `keystead admin key list` shows it.")],
) -> None:
    """Take a key back. A server that runs refuses it within five seconds."""
    if id.startswith("ksk_"):  # whoever has the whole key at hand may give that; its secret goes no further
        id = id.removeprefix("ksk_").partition("_")[0]

    async def take_back(keys: "AdminKeys") -> "AdminKey":
        return await keys.revoke(id)

    key = wait_for(_with_keys(_settings(context, begins=False), take_back))
    note(f"revoked {key.id} ({printable(key.name)})")


def _settings(context: typer.Context, *, begins: bool = True) -> "Settings":
    """``begins``: where there is no installation yet, one is begun; who only looks for keys finds none there."""
    from keystead.app import App
    from keystead.store.address import parse_address

    settings = run_settings(context)
    refuse_beside_demo(context, settings)
    app = App(settings)
    address = parse_address(app.database_url)
    if not begins and address.dialect == "sqlite" and not address.path.exists():
        raise NotFound(f"there is no installation in {app.data_directory}; name its directory with --data")
    return settings


def end_sessions(context: typer.Context) -> None:
    """Log everybody out of the dashboard. Servers that run refuse their cookies within a few seconds."""
    from keystead.web.callers import OPERATOR, SESSION_PURPOSE

    async def end() -> None:
        async with _endings(run_settings(context)) as endings:
            await endings.end_all(SESSION_PURPOSE, OPERATOR)

    wait_for(end())
    note("everybody is logged out; `keystead login-link` prints a new link")


def revoke_token(
    context: typer.Context,
    token: Annotated[str, typer.Argument(metavar="ID", help="The id that `keystead token` told, or the whole token.")],
) -> None:
    """Take back a token of `keystead token`. Servers that run refuse it within a few seconds."""
    from keystead.app import App
    from keystead.web import token_id

    settings = run_settings(context)

    async def end() -> str:
        async with _endings(settings) as endings:  # first: where nothing runs, no secret is begun either
            id = token_id(App(settings), token)
            await endings.end_token(id)
            return id

    note(f"revoked {wait_for(end())}")


@asynccontextmanager
async def _endings(settings: "Settings") -> AsyncIterator["Endings"]:
    from keystead.app import App
    from keystead.clock import real
    from keystead.edge import TICKET_MOST_SECONDS, Endings
    from keystead.engine import sync_clock

    async with connected(settings) as valkey:
        clock = App(settings).clock()
        await sync_clock(valkey, clock)
        yield Endings(valkey, real(clock), keeps_seconds=max(settings.http.session_seconds, TICKET_MOST_SECONDS))


async def _with_keys(settings: "Settings", work: "Callable[[AdminKeys], Awaitable[T]]") -> T:
    async with _keys(settings) as keys:
        return await work(keys)


@asynccontextmanager
async def _keys(settings: "Settings") -> AsyncIterator["AdminKeys"]:
    """Only the tables are needed; the server may run or not."""
    from keystead.app import App
    from keystead.clock import SystemClock
    from keystead.installation import check_mark
    from keystead.operations import AdminKeys
    from keystead.store import Database

    app = App(settings)
    check_mark(app.data_directory)  # a key made in what is half restored would be gone with it
    with suppress(OSError):  # where it is needed, and cannot be made, the database says so
        app.data_directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with Database.open(app.database_url) as database:
        await database.migrate()
        yield AdminKeys(database, SystemClock())


def _facts(key: "AdminKey", now: float) -> dict[str, object]:
    return {"id": key.id, "name": key.name, "scopes": sorted(key.scopes), "state": key.state(now),
            "created_at": key.created_at, "expires_at": key.expires_at, "revoked_at": key.revoked_at,
            "last_used_at": key.last_used_at}


def _day(at: float | None) -> str:
    return "never" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
