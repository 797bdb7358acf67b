"""Fronts that open when they are used."""

import subprocess
import sys

import pytest

from keystead.fronts import opened_when_used


def said(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_keys_of_all_rooms_are_read_without_loading_what_their_rooms_stand_on():
    heavy = "('sqlalchemy', 'alembic', 'aiosqlite', 'asyncpg', 'aiobotocore')"
    assert said("from keystead.app import App; from keystead.settings import Settings; import sys\n"
                f"App(Settings()).registry(); print([name for name in {heavy} if name in sys.modules])") == "[]"


def test_a_front_gives_what_it_offers_and_nothing_else():
    program = ("from keystead.store import Database, jobs; import keystead.store as front\n"
               "assert Database is front.Database and jobs.__name__ == 'keystead.store.jobs'\n"
               "from keystead.store.database import Database as same; assert same is Database\n"
               "print(sorted(set(front.__all__) - {name for name in front.__all__ if hasattr(front, name)}))")
    assert said(program) == "[]"
    with pytest.raises(ImportError):
        from keystead.store import Datebase  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(AttributeError, match=r"keystead\.store has no Nothing"):
        opened_when_used("keystead.store")("Nothing")


@pytest.mark.parametrize("room", ["members", "stats", "store"])
def test_everything_a_lazy_front_names_is_there(room):
    assert said(f"import keystead.{room} as front; print([n for n in front.__all__ if not hasattr(front, n)])") == "[]"
