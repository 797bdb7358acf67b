"""Where the parts of an archive go besides Valkey: the database, the object files, the small files of the directory."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from keystead.backup.archive import STATE
from keystead.backup.installation import Installation
from keystead.backup.pinning import files_directory
from keystead.backup.rows import all_tables, copy_rows, foreign_tables, learn_columns, remove_rows, require_empty
from keystead.backup.threads import in_thread
from keystead.backup.unfinished import sync_directory
from keystead.backup.unpacking import Unpacked
from keystead.errors import Conflict
from keystead.installation import RESTORING_FILE
from keystead.store import Database
from keystead.store.address import parse_address

_LOGS = ("-wal", "-shm", "-journal")
Told = Callable[[str, int, int], None]


class Placing:
    """Puts the parts of one archive to one installation. ``replace``: what is there already goes.

    ``inside`` is the data directory that is being made, and ``made`` where it is made: what belongs into the one is put
    into the other. ``warnings`` tell what was left out.
    """

    def __init__(
        self, to: Installation, *, replace: bool, inside: Path | None = None, made: Path | None = None
    ) -> None:
        self._to, self._replace, self._inside, self._made = to, replace, inside, made
        self.warnings: list[str] = []

    @property
    def is_all_inside(self) -> bool:
        """Everything lies in the data directory, so that it can appear in one step."""
        address, root = parse_address(self._to.database_url), files_directory(self._to.files_url)
        return address.dialect == "sqlite" and self._is_inside(address.path) and (root is None or self._is_inside(root))

    async def require_free(self) -> None:
        """See that database and files hold nothing yet, wherever they are besides the data directory."""
        if self._replace:
            return
        address = parse_address(self._to.database_url)
        if address.dialect == "sqlite":
            if address.path.exists() and address.path.stat().st_size and not self._is_inside(address.path):
                raise Conflict(f"{address.shown} is there already; name another one with --set store.url=..., or "
                               "replace it with --replace")
            for left in (Path(f"{address.path}{end}") for end in _LOGS):
                if left.exists() and not self._is_inside(left):  # it would be taken for changes of the restored one
                    raise Conflict(f"{left} is left of another database; move it away, or remove it with --replace")
        else:
            async with Database.open(self._to.database_url) as database, database.reading() as sql:
                await require_empty(sql, self._to.tables(), database.shown)
        root = files_directory(self._to.files_url)
        if root is not None and not self._is_inside(root) and _has_files(root):
            raise Conflict(f"the directory of files {root} is not empty; move it away, or replace it with --replace")

    async def put_sql(self, unpacked: Unpacked, told: Told) -> None:
        """The database. A file appears in one step; rows in PostgreSQL come in one transaction, or none of them."""
        address = parse_address(self._to.database_url)
        if address.dialect == "sqlite":
            await in_thread(_put_file, unpacked.sql, self._placed(address.path))
            return
        families = self._to.tables()
        async with Database.open(f"sqlite:///{unpacked.sql}") as kept, Database.open(self._to.database_url) as target:
            await kept.migrate()
            await target.migrate()
            async with kept.reading() as source:
                await learn_columns(source, families)
                await families.ensure(target)
                if left_out := await foreign_tables(source, families):
                    self.warnings.append(f"{len(left_out)} tables of the backup are not Keystead's and were not "
                                         f"restored: {', '.join(left_out[:5])}")
                async with target.transaction() as sql:
                    if self._replace:
                        await remove_rows(sql, families)
                    await require_empty(sql, families, target.shown)
                    await copy_rows(source, target, sql, all_tables(families),
                                    lambda table, count: told(f"SQL {table}", count, 0))

    def put_files(self, unpacked: Unpacked) -> None:
        """The object files, where they lie in a directory."""
        root = files_directory(self._to.files_url)
        if root is None:
            if unpacked.manifest.files.count:
                self.warnings.append(f"{unpacked.manifest.files.count} object files of the backup were not restored: "
                                     "this installation keeps its files in a bucket")
            return
        root = self._placed(root)
        if self._replace and _has_files(root):
            for each in _files(root):
                shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        if not unpacked.files.is_dir():
            return
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for each in unpacked.files.iterdir():
            shutil.move(each, root / each.name)

    def require_state(self, unpacked: Unpacked, directory: Path) -> None:
        """Refuse a directory that has the small files of another installation."""
        for kept in self._state(unpacked):
            there = directory / kept.name
            if there.exists() and there.read_bytes() != kept.read_bytes() and not self._replace:
                raise Conflict(f"{there} belongs to another installation; move it away, or replace it with --replace")

    def put_state(self, unpacked: Unpacked, directory: Path) -> None:
        """The small files; only those that an installation has."""
        found = self._state(unpacked)
        if found:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for kept in found:
            shutil.copyfile(kept, directory / kept.name)
            (directory / kept.name).chmod(0o600)

    def _state(self, unpacked: Unpacked) -> list[Path]:
        place = unpacked.directory / STATE
        return [place / name for name in self._to.state_files if (place / name).is_file()]

    def _is_inside(self, path: Path) -> bool:
        return self._inside is not None and path.absolute().is_relative_to(self._inside)

    def _placed(self, path: Path) -> Path:
        if self._made is None or self._inside is None or not self._is_inside(path):
            return path
        return self._made / path.absolute().relative_to(self._inside)


def appear(made: Path, target: Path) -> None:
    """Let a data directory appear under its name, which is free or an empty directory, in one step."""
    sync_tree(made)
    if target.exists():
        target.rmdir()
    made.rename(target)
    sync_directory(target.parent)


def move_in(made: Path, target: Path) -> Path | None:
    """Let what was made take the place of what is in a directory, which has the mark of an unfinished restore.

    What was there goes beside it; says where that is, if there was anything.
    """
    sync_tree(made)
    old = [each for each in target.iterdir() if each.name != RESTORING_FILE]
    aside = target.with_name(f"{target.name}.replaced-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    number = 1
    while aside.exists():
        number += 1
        aside = aside.with_name(f"{aside.name.removesuffix(f'-{number - 1}')}-{number}")
    if old:
        aside.mkdir(mode=0o700)
    for each in old:
        each.rename(aside / each.name)
    for each in list(made.iterdir()):
        each.rename(target / each.name)
    return aside if old else None


def sync_tree(made: Path) -> None:
    """Force everything below a directory to the disk."""
    for folder, _, names in os.walk(made):
        for name in names:
            handle = os.open(Path(folder, name), os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        sync_directory(Path(folder))


def _put_file(database: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name}.restoring")
    try:
        shutil.move(database, beside)
        for end in _LOGS:  # of the one that is replaced: they would be taken for changes of the restored one
            Path(f"{place}{end}").unlink(missing_ok=True)
        beside.replace(place)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
    sync_directory(place.parent)


def _files(root: Path) -> list[Path]:
    return [each for each in root.iterdir() if not each.name.startswith(".")]


def _has_files(root: Path) -> bool:
    return root.is_dir() and bool(_files(root))
