"""The rooms that write to people, wired; the walk through all of them is in ``tests/scenarios``."""

import pytest

from keystead.app import App
from keystead.errors import Invalid
from keystead.settings import load_settings


def installation(valkey_server, tmp_path, **flags: object) -> App:
    given = {"valkey.url": valkey_server.url, "store.url": f"sqlite:///{tmp_path}/test.sqlite",
             "store.files_url": (tmp_path / "files").as_uri()}
    return App(load_settings({**given, **flags}, environment={}))


async def test_a_process_that_does_not_work_has_no_crew_and_no_providers(valkey, valkey_server, tmp_path):
    async with installation(valkey_server, tmp_path).running() as running:
        assert running.crewed is None and running.heard is None and running.sandbox is None
        assert running.switchboard.messaging is not None


async def test_who_works_all_the_time_needs_no_single_runs(valkey, valkey_server, tmp_path):
    async with installation(valkey_server, tmp_path).running(works=True) as running:
        assert running.crewed is not None
        assert len(running.crewed.crew) > 15
        names = {each.name for each in running.crewed.recurring}
        assert "keystead.sms.send" not in names and "keystead.reminders.recheck_counts" in names
        assert "keystead.sms.send" in running.book and "touch.sms_success_handler" in running.book


async def test_without_workers_the_calendar_runs_the_documented_jobs(valkey, valkey_server, tmp_path):
    app = installation(valkey_server, tmp_path, **{"messaging.workers": 0})
    async with app.running(works=True) as running:
        assert running.crewed is not None
        names = {each.name for each in running.crewed.recurring}
        assert {"keystead.sms.send", "keystead.push.check", "keystead.touches.log", "keystead.links.find_leaks",
                "keystead.email.reconcile", "keystead.reminders.assign_times"} <= names
        assert {type(work).__name__ for work in running.crewed.crew} == {"JobRelay"}


@pytest.mark.parametrize(("flags", "own", "certificate"), [
    ({}, True, "http://127.0.0.1:8400/sandbox/sns/"),
    ({"email.url": "http://127.0.0.1:9/sandbox/ses"}, True, "http://127.0.0.1:9/sandbox/sns/"),
    ({"email.url": "http://127.0.0.1:9/sandbox/ses", "sms.url": "http://127.0.0.1:9/sandbox/twilio",
      "push.url": "http://127.0.0.1:9/sandbox/expo"}, False, "http://127.0.0.1:9/sandbox/sns/"),
    ({"email.provider": "smtp", "email.url": "smtp://127.0.0.1:9", "sms.provider": "twilio",
      "sms.auth_token": "a secret", "push.provider": "expo"}, False, ""),
])
async def test_a_sandbox_is_served_for_channels_that_name_no_other_place(
    valkey, valkey_server, tmp_path, flags, own, certificate
):
    async with installation(valkey_server, tmp_path, **flags).running(works=True) as running:
        assert running.heard is not None
        assert (running.sandbox is not None) is own
        assert running.heard.verifier._trust.certificate_url.startswith(certificate)


async def test_who_only_works_hears_nobody_and_who_only_answers_has_no_crew(valkey, valkey_server, tmp_path):
    app = installation(valkey_server, tmp_path)
    async with app.running(works=True, answers=False) as running:
        assert running.crewed is not None and running.heard is None
    async with app.running(works=False, answers=True) as running:
        assert running.crewed is None and running.sandbox is not None


async def test_what_the_sandbox_has_is_fetched_without_going_out(valkey, valkey_server, tmp_path):
    """The address of the world may lead through a proxy, or nowhere yet."""
    app = installation(valkey_server, tmp_path, **{"messaging.public_url": "https://app.example.com"})
    async with app.running(works=False, answers=True) as running:
        assert running.heard is not None and running.sandbox is not None
        assert running.sandbox.certificate_url.startswith("https://app.example.com/sandbox/sns/")
        found = await running.heard.verifier._fetch(running.sandbox.certificate_url)
        assert found is not None and found.raw.startswith(b"-----BEGIN CERTIFICATE")


async def test_a_provider_without_a_secret_is_refused(valkey, valkey_server, tmp_path):
    with pytest.raises(Invalid, match=r"sms\.auth_token is not set"):
        async with installation(valkey_server, tmp_path, **{"sms.provider": "twilio"}).running():
            pass
