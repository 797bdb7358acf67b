import sys

import pytest

from keystead.app import ROOMS
from keystead.cli.registries import load_registry
from keystead.errors import Invalid
from keystead.keys import Layout
from keystead.pace import PACE_FILE
from keystead.settings import load_settings

from .command import keystead


@pytest.fixture(autouse=True)
def working_directory(shop, monkeypatch):
    monkeypatch.chdir(shop)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def rooms(*sources: str) -> set[str]:
    return {declaration.room for declaration in load_registry(sources, Layout.PLAIN)}


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        (["shop.keys"], {"shop", "club"}),
        (["shop.keys:SHOP"], {"shop"}),
        (["shop.keys:ALL"], {"shop", "club"}),
        (["shop.keys:CLUB", "shop.keys"], {"shop", "club"}),
        (["shop.keys:CLUB", "keystead"], {"club", *ROOMS}),
        ([], set(ROOMS)),
    ],
)
def test_declarations_are_taken_from_where_they_are_named(sources, found):
    assert rooms(*sources) == found


def test_an_installation_brings_the_declarations_of_its_program(tmp_path):
    plain = load_settings({"valkey.url": f"embedded://{tmp_path}"}, environment={})
    shop = load_settings({"valkey.url": f"embedded://{tmp_path}", "program.modules": "shop.keys"}, environment={})
    assert "shop" not in {one.room for one in load_registry(None, Layout.PLAIN, plain)}
    assert {"shop", "club", *ROOMS} <= {one.room for one in load_registry(None, Layout.PLAIN, shop)}
    assert {one.room for one in load_registry(["shop.keys"], Layout.PLAIN, shop)} == {"shop", "club"}


def test_a_demonstration_brings_its_own(tmp_path):
    settings = load_settings({"valkey.url": f"embedded://{tmp_path}"}, environment={})
    (tmp_path / PACE_FILE).write_text("{}")
    assert "demo.shop" in {one.room for one in load_registry(None, Layout.PLAIN, settings)}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("shop.nowhere", "no module shop.nowhere"),
        ("nowhere.at.all", "no module nowhere.at.all"),
        ("shop.empty", "holds no Keyspace"),
        ("shop.keys:NOBODY", "has no NOBODY"),
        ("shop.keys:NUMBER", "is not a Keyspace"),
        ("shop.broken", "cannot be imported"),
        ("shop.needy", "a_package_that_nobody_has"),
        ("", "module"),
        ("../shop", "module"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(source, says):
    with pytest.raises(Invalid, match=says):
        load_registry([source], Layout.PLAIN)


def test_working_directory_is_searched_by_the_command(shop):
    outcome = keystead("keys", "list", "--registry", "shop.keys:CLUB", cwd=shop)
    assert "visits:{unix_date}" in outcome.out
    assert "price" not in outcome.out


def test_environment_names_a_registry_too(shop):
    assert "price:{sku}" in keystead("keys", "list", cwd=shop, KEYSTEAD_REGISTRY="shop.keys").out


def test_error_in_the_users_module_is_one_line_with_its_place(shop):
    (shop / "shop" / "buggy.py").write_text("x = 1\n1 / 0\n")
    (shop / "shop" / "wrong.py").write_text("from keystead.keys import Keyspace\nSHOP = Keyspace('')\n")
    line = keystead("keys", "list", "--registry", "shop.buggy", cwd=shop).refused()
    assert "ZeroDivisionError" in line and "buggy.py, line 2" in line
    line = keystead("keys", "list", "--registry", "shop.wrong", cwd=shop).refused()
    assert "a keyspace needs a name" in line
