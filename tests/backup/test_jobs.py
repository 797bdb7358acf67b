"""The backup of every day: when it runs, what it keeps, and who hears that it failed."""

import pytest

from keystead.backup.jobs import TAKE, recurring, register
from keystead.backup.lateness import FAILED
from keystead.clock import SystemClock
from keystead.errors import Invalid
from keystead.jobs import JobBook
from keystead.operations import Alerts
from keystead.settings import BackupSettings

from .installations import app_at, migrated


def test_it_is_off_until_a_directory_is_set():
    assert recurring(BackupSettings()) == ()
    (one,) = recurring(BackupSettings(directory="backups", start_hour=4))
    assert one.job == TAKE and "4" in str(one.when)
    for wrong in ({"start_hour": 24}, {"keep_files": 0}):
        with pytest.raises(Invalid):
            recurring(BackupSettings(directory="backups", **wrong))


async def test_one_that_fails_opens_an_alert_that_the_next_one_clears(valkey, valkey_server, tmp_path):
    app = app_at(valkey_server.url, tmp_path / "own")
    settings, alerts, book = BackupSettings(directory=str(tmp_path / "kept")), Alerts(valkey, SystemClock()), JobBook()
    register(book, app.backup(), alerts, settings)
    take = book.get(TAKE).function
    with pytest.raises(Invalid, match="ever started"):
        await take()
    (alert,) = await alerts.open()
    assert alert.kind == FAILED and alert.severity == "critical" and "ever started" in alert.says
    async with migrated(app):
        told = await take()
    assert await alerts.open() == []
    assert told["bytes"] > 0 and [each.name for each in (tmp_path / "kept").iterdir()] == [told["path"].split("/")[-1]]


async def test_one_that_fails_in_a_way_nobody_foresaw_opens_an_alert_too(valkey, valkey_server, tmp_path, monkeypatch):
    app = app_at(valkey_server.url, tmp_path / "own")
    alerts, book, backup = Alerts(valkey, SystemClock()), JobBook(), app.backup()

    async def broken(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(backup, "take_into", broken)
    register(book, backup, alerts, BackupSettings(directory=str(tmp_path / "kept")))
    with pytest.raises(OSError, match="Input"):
        await book.get(TAKE).function()
    (alert,) = await alerts.open()
    assert alert.kind == FAILED and "OSError" in alert.says


async def test_a_worker_has_it_in_its_calendar(valkey, valkey_server, tmp_path):
    off = app_at(valkey_server.url, tmp_path / "own")
    on = app_at(valkey_server.url, tmp_path / "own", backup__directory=str(tmp_path / "kept"))
    async with off.running(works=True) as running:
        assert TAKE not in {one.job for one in running.calendar} and running.book.get(TAKE) is None
    async with on.running(works=True) as running:
        assert TAKE in {one.job for one in running.calendar} and running.book.get(TAKE) is not None
