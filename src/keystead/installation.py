"""The mark of a data directory: which version of Keystead wrote it last.

An older directory, with an older mark or none, is brought up to date when it is started: tables by their migrations,
values in Valkey by being read as they were. The way back does not exist, so a newer one is refused.
"""

import json
import re
import secrets
from importlib.metadata import version
from pathlib import Path
from typing import Final

from keystead.errors import Invalid

MARK_FILE: Final = "keystead.json"
RESTORING_FILE: Final = "restoring.json"  # a restore into this directory has begun and not ended


def this_version() -> str:
    """The version that runs."""
    return version("keystead")


def check_mark(directory: Path) -> str | None:
    """The version that wrote the directory, or None if none has yet, or one from before there were marks.

    Refuses with ``Invalid`` a directory of a newer version, a mark that cannot be read, and a directory that is half
    restored. Writes nothing.
    """
    path = directory / MARK_FILE
    try:
        if (directory / RESTORING_FILE).exists():
            raise Invalid(f"a restore into {directory} has not ended: only part of the data may be there; if it is not "
                          "running any more, begin it again with --replace")
        found = str(json.loads(path.read_text(encoding="utf-8"))["version"])
        written = _release(found)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise Invalid(f"{directory} is a file; name a directory for the data, which is made if it is missing") from None
    except PermissionError as error:
        raise _unusable(directory, error) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise Invalid(f"{path}, which says what version wrote the data, cannot be read: {reason}; restore it, or "
                      f"remove it if you know that no newer Keystead than {this_version()} was used here") from None
    if written > _release(this_version()):
        raise Invalid(f"{directory} was written by Keystead {found}, and this is {this_version()}, which does not know "
                      f"what changed since; install {found} or newer, or restore a backup from before")
    return found


def write_mark(directory: Path) -> None:
    """Say that this version wrote the directory, which is made if it is missing. Refuses one that cannot be written."""
    if check_mark(directory) == this_version():
        return
    draft = directory / f"{MARK_FILE}.{secrets.token_hex(6)}"
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft.write_text(json.dumps({"version": this_version()}) + "\n", encoding="utf-8")
        draft.replace(directory / MARK_FILE)  # whole, whenever we are killed
    except OSError as error:
        raise _unusable(directory, error) from error


def _unusable(directory: Path, error: OSError) -> Invalid:
    return Invalid(f"{directory} cannot be written: {error.strerror}; name a directory of your own with "
                   "installation.directory, or embedded://DIR")


def _release(text: str) -> tuple[int, ...]:
    """The numbers of a version, so that 0.10 is newer than 0.9; what follows them does not count."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    if found is None:
        raise ValueError(text)
    numbers = [int(part) for part in found[0].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
