"""``keystead backup`` and ``keystead restore``."""

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from keystead.cli.message_channels import count_waiting, hold_sending
from keystead.cli.modules import users_program
from keystead.cli.output import (
    Format,
    FormatOption,
    console,
    fact_grid,
    human_bytes,
    human_seconds,
    note,
    write,
    write_json,
)
from keystead.cli.session import SET, run_settings, setting_pairs, wait_for
from keystead.errors import Invalid

if TYPE_CHECKING:
    from keystead.app import App
    from keystead.backup import Restored, Taken
    from keystead.backup.models import Manifest
    from keystead.engine import Valkey
    from keystead.settings import Settings

T = TypeVar("T")

PassphraseOption = Annotated[
    Path | None,
    typer.Option("--passphrase-file", metavar="FILE", show_default="setting backup.passphrase_file, or none",
                 help="File with the passphrase that the archive is sealed with."),
]


def backup(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", show_default=False, help="The archive to write, or to check.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", show_default=False, help="Write a file named by the time into this "
                     "directory, as a daily timer does."),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=1, metavar="COUNT", show_default=False,
                     help="With --to: remove all backups of this installation there but so many of the newest."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Take no backup: see whether FILE is whole and can be restored.")
    ] = False,
    passphrase_file: PassphraseOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Write Valkey, SQL and object files of a running installation into one archive, all of one moment.

    Nothing is stopped: writes wait for some milliseconds. The archive holds the secret of the data directory and
    personal data, so only you may read it; seal it with a passphrase before it leaves this machine.
    """
    settings = run_settings(context, backup_passphrase_file=_text(passphrase_file))
    if (file is None) == (to is None):
        raise Invalid("say where: keystead backup FILE, or keystead backup --to DIR --keep 7")
    if check and file is None:
        raise Invalid("say which archive: keystead backup --check FILE")
    if keep is not None and to is None:
        raise Invalid("--keep removes old backups of a directory, so it needs --to DIR")
    if check:
        assert file is not None
        _check(settings, file, format)
        return
    _take(_app(settings), file, to, keep, format)


def _take(app: "App", file: Path | None, to: Path | None, keep: int | None, format: Format) -> None:
    from keystead.backup import keep_newest

    with _progress() as told:
        if to is not None:
            work = app.backup().take_into(to, told)
        else:
            assert file is not None
            work = app.backup().take(file, told)
        taken = wait_for(_stopped_by_sigterm(work))
    removed: list[Path] = []
    if to is not None and keep is not None:
        removed = keep_newest(to, keep, taken.manifest.head.installation, spare=taken.path)
    facts = _taken_facts(taken)
    if format is Format.JSON:
        write_json(facts | {"removed": [str(path) for path in removed]})
    else:
        _show_taken(taken)
        for path in removed:
            note(f"removed {path}")
    for warning in taken.manifest.warnings:
        note(warning)


def _check(settings: "Settings", file: Path, format: Format) -> None:
    from keystead.backup import check

    with _spinner("Checking…"):
        checked = wait_for(check(file, passphrase=_passphrase(settings)))
    head = checked.manifest.head
    if format is Format.JSON:
        write_json({"file": str(file), "ok": True, "keys": checked.keys, "rows": checked.rows,
                    "object_files": checked.manifest.files.count, "taken_at": head.taken_at,
                    "one_moment": head.one_moment, "keystead_version": head.keystead_version})
    else:
        write(fact_grid([
            ("archive", f"{file} is whole and can be restored"), *_manifest_facts(checked.manifest),
            ("rows", f"{checked.rows:,}"),
        ]))
    for warning in checked.manifest.warnings:
        note(warning)


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The archive.")],
    hold: Annotated[
        bool,
        typer.Option("--hold-sending", help="Pause all channels, so that nothing goes out until "
                     "`keystead message resume all`."),
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Also where there is something: keys, rows and files that are there go; "
                           "what was in a data directory is moved beside it.")
    ] = False,
    settings_given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", show_default=False,
                     help="Any setting of the target, such as store.url=postgresql://...; may be given several times."),
    ] = None,
    passphrase_file: PassphraseOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Restore an archive into an empty data directory, or to a server and a database that hold nothing.

    With --url the database is the one of the settings: --set store.url=postgresql://... names another. The
    installation must not be running. What is restored in part, after a crash, refuses to start until this is run again
    with --replace. Messages that waited at the moment of the backup go out when it starts, also those that had gone
    out since; --hold-sending lets you look first.
    """
    context.meta[SET] = {**context.meta.get(SET, {}), **setting_pairs(settings_given)}
    settings = run_settings(context, backup_passphrase_file=_text(passphrase_file))
    from keystead.backup import Restore

    app = _app(settings)
    waiting: dict[str, int] = {}

    async def prepare(valkey: "Valkey") -> None:
        waiting.update(await count_waiting(valkey))
        if hold:
            await hold_sending(valkey)

    with _progress() as told:
        work = Restore(app.installation(), passphrase=_passphrase(settings), replace=replace)
        restored = wait_for(_stopped_by_sigterm(work.run(file, prepare=prepare, progress=told)))
    if format is Format.JSON:
        write_json({"file": str(file), "keys": restored.keys, "waiting": waiting, "sending_held": hold,
                    "taken_at": restored.manifest.head.taken_at, "object_files": restored.manifest.files.count,
                    "warnings": list(restored.warnings)})
    else:
        _show_restored(app, restored, waiting, hold)
    for warning in restored.warnings:
        note(warning)


def _show_restored(app: "App", restored: "Restored", waiting: dict[str, int], hold: bool) -> None:
    place = str(app.data_directory) if app.installation().is_embedded else "the server"
    write(fact_grid([
        ("restored to", place), *_manifest_facts(restored.manifest), ("keys there now", f"{restored.keys:,}"),
    ]))
    ago = human_seconds(max(1, time.time() - restored.manifest.head.taken_at))
    told = ", ".join(f"{name} {count:,}" for name, count in waiting.items() if count)
    if hold:
        note(f"all channels are paused; `keystead message resume all` lets them go on. Waiting: {told or 'nothing'}")
    elif told:
        note(f"waiting at the moment of the backup, {ago} ago: {told}. They go out when this is started, also those "
             "that went out since; restore with --hold-sending to look first")


def _show_taken(taken: "Taken") -> None:
    write(fact_grid([
        ("archive", str(taken.path)), ("size", human_bytes(taken.bytes)), ("took", human_seconds(taken.seconds)),
        ("writes held", f"{taken.manifest.held_ms:.1f} ms"), *_manifest_facts(taken.manifest),
    ]))


def _taken_facts(taken: "Taken") -> dict[str, Any]:
    manifest = taken.manifest
    return {
        "path": str(taken.path), "bytes": taken.bytes, "seconds": round(taken.seconds, 3), "held_ms": manifest.held_ms,
        "taken_at": manifest.head.taken_at, "one_moment": manifest.head.one_moment, "keys": manifest.valkey_keys,
        "object_files": manifest.files.count, "warnings": list(manifest.warnings),
    }


def _manifest_facts(manifest: "Manifest") -> list[tuple[str, object]]:
    head = manifest.head
    at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(head.taken_at))
    files = "in a bucket, not in the archive" if manifest.files.kept_elsewhere else (
        f"{manifest.files.count:,}, {human_bytes(manifest.files.bytes)}")
    return [
        ("moment", at if head.one_moment else f"{at}; Valkey and SQL are not of one moment"),
        ("keys", f"{manifest.valkey_keys:,}, {head.layout} names, from {head.valkey_server}"),
        ("SQL", f"{head.sql_dialect}, tables {head.migration}"), ("object files", files),
    ]


def _app(settings: "Settings") -> "App":
    from importlib.util import find_spec

    if find_spec("sqlalchemy") is None or find_spec("alembic") is None:
        raise Invalid("backups need another package: pip install 'keystead[server]'")
    from keystead.app import App

    return App(settings, users_program(settings.program.modules))


def _passphrase(settings: "Settings") -> bytes | None:
    from keystead.backup import read_passphrase

    path = settings.backup.passphrase_file
    return read_passphrase(Path(path)) if path else None


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


async def _stopped_by_sigterm(work: Coroutine[None, None, T]) -> T:
    """A timer that is stopped sends SIGTERM: then, as after Ctrl-C, nothing half-written may stay."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    stopped: list[bool] = []

    def stop() -> None:
        stopped.append(True)
        task.cancel()

    with suppress(NotImplementedError, RuntimeError, ValueError):  # not in the main thread, as in some tests
        loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        return await work
    except asyncio.CancelledError:
        if stopped:
            raise KeyboardInterrupt from None
        raise


@contextmanager
def _spinner(says: str) -> Iterator[None]:
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield
        return
    with screen.status(says):
        yield


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar on standard error while someone watches; nothing otherwise."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True) as bars:
        bar = bars.add_task("Starting", total=None)
        yield lambda what, done, of: bars.update(bar, description=what, completed=done, total=of or None)
