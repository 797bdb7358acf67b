"""The settings in force in this process and where each came from; what is secret is not shown."""

from html import escape
from itertools import groupby
from typing import Any

from nicegui import ui

from keystead.app import Running
from keystead.setting import Setting
from keystead.settings import Settings, all_settings
from keystead.web.dashboard.frame import page_frame
from keystead.web.dashboard.jobs_shown import moment
from keystead.web.dashboard.shown import chip
from keystead.web.sampler import Sampler


async def show_settings(running: Running, sampler: Sampler, *, with_keys: bool) -> None:
    """Build the page; settings do not change while a process runs. ``with_keys``: also who holds admin keys."""
    keys = getattr(running, "admin_keys", None) if with_keys else None
    listed = await keys.list() if keys is not None else ()
    with page_frame(sampler, running.clock):
        with ui.element("div").classes("ks-head"), ui.element("div"):
            ui.html("Settings", sanitize=True, tag="h1")
            ui.html("What is in force in this process, read once at its start. Flags come before the environment, the "
                    "environment before the file, the file before what is built in; what somebody gave says where.",
                    sanitize=True, tag="p")
        ui.html(settings_html(running.settings), sanitize=False)
        if keys is not None:
            ui.html(admin_keys_html(listed), sanitize=False)


def settings_html(settings: Settings) -> str:
    """A card for each section."""
    cards = []
    for section, members in groupby(all_settings(), key=lambda each: each.name.partition(".")[0]):
        rows = "".join(_row(settings, each) for each in members)
        cards.append(f'<section class="ks-card" aria-label="{escape(section)}"><div class="ks-card-head"><h2>'
                     f'{escape(section)}</h2></div><table class="ks-table ks-settings"><tbody>{rows}</tbody></table>'
                     "</section>")
    return "".join(cards)


def _row(settings: Settings, setting: Setting) -> str:
    value, origin = settings.value(setting.name), settings.origin(setting.name)
    came = "" if origin.kind == "default" else (
        chip(origin.kind, "good") + ("" if origin.where == origin.kind
                                     else f'<div class="quiet mono">{escape(origin.where)}</div>'))
    return (f'<tr id="{escape(setting.name)}"><td><span class="mono">{escape(setting.name)}</span>'
            f'<div class="quiet">{escape(setting.says)}</div></td>'
            f'<td class="mono">{escape(shown_value(setting, value))}</td>'
            f'<td class="mid">{came}</td></tr>')


def shown_value(setting: Setting, value: object) -> str:
    """The value, unless it is or holds a secret."""
    if setting.secret and value != setting.default:
        return "set, not shown"
    return "empty" if value == "" else str(value)


def admin_keys_html(listed: Any) -> str:
    """Who may use the HTTP interface, by name; the keys themselves are known to nobody."""
    rows = "".join(
        f'<tr><td><b>{escape(key.name)}</b><div class="quiet mono">{escape(str(key.id))}</div></td>'
        f"<td>{escape(', '.join(sorted(key.scopes)))}</td><td class=\"mid\">"
        f'{chip("revoked", "bad") if key.revoked_at else chip("in use", "good")}'
        f'<div class="quiet">since {moment(key.created_at)}</div></td></tr>' for key in listed)
    empty = ('<div class="ks-empty">There is none. Make one with <span class="mono">keystead admin key create</span>.'
             "</div>")
    return ('<section class="ks-card" id="admin-keys" aria-label="Admin keys"><div class="ks-card-head"><h2>Admin keys'
            "</h2></div>" + (f'<table class="ks-table ks-settings"><tbody>{rows}</tbody></table>' if rows else empty)
            + "</section>")
