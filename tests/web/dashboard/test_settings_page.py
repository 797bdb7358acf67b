"""The settings in force."""

from types import SimpleNamespace

import pytest
from playwright.async_api import expect

from keystead.settings import all_settings, load_settings
from keystead.web.dashboard.settings_page import admin_keys_html, settings_html, shown_value

SETTINGS = {setting.name: setting for setting in all_settings()}


def test_a_secret_is_never_shown():
    settings = load_settings({"sms.auth_token": "top secret", "http.port": 9999}, environment={})
    shown = settings_html(settings)
    assert "top secret" not in shown and "set, not shown" in shown and ">9999<" in shown
    assert shown_value(SETTINGS["http.host_names"], "") == "empty"


def test_a_value_that_was_given_says_where(tmp_path):
    file = tmp_path / "keystead.toml"
    file.write_text('[log]\nlevel = "debug"\n')
    shown = settings_html(load_settings(
        {"http.port": 9999}, environment={"KEYSTEAD_SMS_AUTH_TOKEN": "top secret"}, file=file))

    def row(name: str) -> str:
        return shown.partition(f'<tr id="{name}">')[2].partition("</tr>")[0]

    assert "file</span>" in row("log.level") and f"{file}:2" in row("log.level")
    assert "flag</span>" in row("http.port")
    assert "KEYSTEAD_SMS_AUTH_TOKEN" in row("sms.auth_token") and "top secret" not in shown
    assert 'class="mid"></td>' in row("http.host"), "what is built in needs no word"


def test_every_setting_has_a_row_that_can_be_linked_to():
    shown = settings_html(load_settings({}, environment={}))
    assert all(f'<tr id="{name}">' in shown for name in SETTINGS)


def test_admin_keys_are_told_by_name():
    key = SimpleNamespace(id="k1", name="<b>ci</b>", scopes=("jobs", "keys"), created_at=1.7e9, revoked_at=None)
    shown = admin_keys_html([key])
    assert "&lt;b&gt;ci" in shown and "jobs, keys" in shown and "in use" in shown
    assert "keystead admin key create" in admin_keys_html([])


@pytest.mark.browser
async def test_the_page_shows_what_is_in_force(tab, site):
    await tab.goto("/settings")
    await expect(tab.get_by_label("http", exact=True)).to_contain_text("http.session_seconds")
    assert str(site.directory) not in await tab.get_by_role("main").inner_text(), "an address may hold a password"
