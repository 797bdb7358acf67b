"""Sliders for faults."""

import msgspec

from keystead.messaging.sandbox import Faults
from keystead.web.dashboard.sandbox_faults import GROUPS, Dial, faults_set


def test_every_slider_turns_a_fault_that_exists_within_what_it_may_be():
    for _, dials in GROUPS:
        for dial in dials:
            value = msgspec.convert({dial.fault: dial.most}, Faults)
            assert getattr(value, dial.fault) == dial.most
            assert dial.channels


def test_every_fault_that_is_a_share_has_a_slider():
    shares = {field.name for field in msgspec.structs.fields(Faults)
              if field.default == 0.0 and isinstance(field.default, float)}
    assert shares == {dial.fault for _, dials in GROUPS for dial in dials} - {"receipt_seconds"}


def test_faults_that_are_on_are_counted():
    assert faults_set(Faults()) == 0
    assert faults_set(Faults(throttle=0.1, latency_ms=5, receipt_seconds=90)) == 2


def test_values_are_said_with_their_unit():
    assert Dial("throttle", "T").said(0.25) == "25 %"
    assert Dial("latency_ms", "L", 5000, 50, "ms").said(150) == "150 ms"
    assert Dial("rate_per_second", "R", 200, 1, "per s").said(0) == "off"
