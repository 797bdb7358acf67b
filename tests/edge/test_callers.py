"""What a caller may touch."""

import pytest

from keystead.edge.callers import ANONYMOUS, Caller, CallerKind
from keystead.edge.refusals import Forbidden, NotLoggedIn


def test_operator_may_touch_everything():
    Caller(CallerKind.OPERATOR, "operator").require("anything")


def test_program_may_touch_what_its_token_says():
    prometheus = Caller(CallerKind.PROGRAM, "prometheus", frozenset({"metrics"}))
    prometheus.require("metrics")
    with pytest.raises(Forbidden, match="keys"):
        prometheus.require("keys")


def test_nobody_is_asked_to_log_in_even_if_scopes_were_given():
    with pytest.raises(NotLoggedIn):
        ANONYMOUS.require("metrics")
    with pytest.raises(NotLoggedIn):
        Caller(CallerKind.ANONYMOUS, scopes=frozenset({"metrics"})).require("metrics")
