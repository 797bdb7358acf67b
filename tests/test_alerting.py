"""What is watched and who is told, as the settings say; and mail that really reaches the sandbox."""

import asyncio

import pytest

from keystead import alerting
from keystead.app import App
from keystead.clock import SystemClock
from keystead.errors import Invalid
from keystead.keys import Registry
from keystead.messaging.sandbox import Outbox
from keystead.settings import Settings, load_settings


def made(valkey, **flags):
    settings = load_settings({f"alerts.{name}": value for name, value in flags.items()}, environment={})
    app = App(settings)
    return alerting.alerting(settings, valkey, SystemClock(), Registry([]), app.catalogue(), None)


async def test_without_settings_alerts_go_to_the_log_and_to_mail_that_the_sandbox_shows(valkey):
    assert made(valkey).alerts.rules.ways == ("log", "mail")


async def test_a_webhook_takes_the_place_of_the_sandbox(valkey):
    assert made(valkey, webhook_url="https://chat.example.com/hook").alerts.rules.ways == ("log", "webhook")
    both = made(valkey, webhook_url="https://chat.example.com/hook", mail_to="ops@example.com")
    assert both.alerts.rules.ways == ("log", "webhook", "mail")


async def test_an_address_that_is_none_is_refused_at_the_start(valkey):
    with pytest.raises(Invalid, match=r"alerts.webhook_url"):
        made(valkey, webhook_url="chat.example.com")


async def test_a_heartbeat_is_off_until_an_address_is_set(valkey):
    assert made(valkey).heartbeat is None
    assert made(valkey, heartbeat_url="https://checks.example.com/1").heartbeat is not None
    with pytest.raises(Invalid, match=r"alerts.heartbeat_url"):
        made(valkey, heartbeat_url="checks.example.com")


def test_what_is_switched_off_is_retired_and_nothing_else():
    def kinds(**flags):
        settings = load_settings({name.replace("__", "."): value for name, value in flags.items()}, environment={})
        return {(one.kind, one.subject) for one in alerting.retired(settings, alerting.alert_rules(settings))}

    assert kinds(backup__directory="backups") == {("alert_undelivered", "webhook")}
    off = kinds(alerts__audit_seconds=0, alerts__webhook_url="https://chat.example.com/hook")
    assert off == {("alert_undelivered", "mail"), ("undeclared_keys", ""), ("backup_late", ""), ("backup_failed", "")}


def test_every_list_of_dead_letters_is_watched():
    """One that a room declares and nobody watches would grow unseen."""
    names = {place.name for place in alerting.dead_places(App(Settings()).registry())}
    assert {"sms:to_send", "email:to_send", "touch:to_send", "daily_reminders:queued"} <= names, sorted(names)
    assert "jobs:hot" not in names, "every queue of jobs is looked at by its name"


@pytest.mark.slow
async def test_an_alert_reaches_the_sandbox_as_mail(valkey, valkey_server, tmp_path):
    from keystead.web.housekeeping import Housekeeping

    settings = load_settings({
        "valkey.url": valkey_server.url, "store.url": f"sqlite:///{tmp_path}/k.sqlite",
        "store.files_url": f"file://{tmp_path}/files", "alerts.audit_seconds": 0.0,
    }, environment={})
    app = App(settings)
    app.data_directory = tmp_path
    async with app.running(works=True) as running, asyncio.TaskGroup() as tasks:
        work = tasks.create_task(Housekeeping(running).run())
        await running.alerts.raise_("provider_down", "sms", "all of the last 20 calls failed", "critical")
        async with asyncio.timeout(60):
            while not (mails := await _mails(running)):
                await asyncio.sleep(0.1)
        work.cancel()
    assert "provider_down" in mails[0] and "sms" in mails[0]


async def _mails(running) -> list[str]:
    outbox = Outbox(running.valkey)
    return [message.text for message in await outbox.messages("email", alerting.SANDBOX_MAIL_TO)]
