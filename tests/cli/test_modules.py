import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from keystead.cli.modules import import_users_module
from keystead.errors import Invalid


@pytest.fixture
def program(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(shop)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield shop
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def load(name: str):
    return import_users_module(name, takes="it takes one such as shop.keys", wanted="things")


def test_a_module_is_found_in_the_working_directory(program: Path) -> None:
    assert load("shop.empty").NOTHING == 1


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "an empty name is not the name of a module; it takes one such as shop.keys"),
        ("a-b", "a-b is not the name of a module"),
        ("nowhere", "there is no module nowhere to take things from"),
        ("shop.nowhere", r"there is no module shop\.nowhere"),
        ("shop.py", r"there is no module shop\.py .*; leave out \.py: shop$"),
        ("shop.broken", r"shop\.broken cannot be imported: invalid syntax \(.*broken\.py, line 1\)"),
        ("shop.needy", "it needs a_package_that_nobody_has, which is not installed"),
        ("shop.raising", r"cannot be imported: KeyError: 'x' \(.*raising\.py, line 1\)"),
    ],
)
def test_what_cannot_be_imported_is_told_with_the_reason(program: Path, name: str, says: str) -> None:
    (program / "shop" / "raising.py").write_text("{}['x']\n")
    with pytest.raises(Invalid, match=says):
        load(name)
