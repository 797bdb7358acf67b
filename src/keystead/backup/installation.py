"""What a backup is taken of, and what one is restored to."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from keystead.settings import ValkeySettings
from keystead.stats import FamilyTables


@dataclass(frozen=True, slots=True)
class Installation:
    """Where an installation keeps everything. Making one connects to nothing.

    ``tables`` makes the tables of its statistics, and sees to it that those of all rooms are known. ``state_files`` are
    small files of the data directory that belong to the data, the secret first; with ``has_own_secret`` that one is
    set elsewhere, and not in the backup.
    """

    valkey: ValkeySettings
    lanes: int
    data_directory: Path
    database_url: str
    files_url: str
    tables: Callable[[], FamilyTables]
    state_files: tuple[str, ...] = ()
    has_own_secret: bool = False

    @property
    def is_embedded(self) -> bool:
        return self.valkey.url.startswith("embedded://")
