"""Couriers wait on their lanes for a second at a time, and stop after that: too long for a test that stops many."""

import pytest


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr("keystead.messaging.sending.courier_hands.WAIT_SECONDS", 0.1)
