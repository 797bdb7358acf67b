"""What a caller may touch."""

import pytest

from keystead.edge.callers import ANONYMOUS, Caller, CallerKind
from keystead.edge.refusals import Forbidden, NotLoggedIn
from keystead.errors import Invalid


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


def test_a_person_is_themselves_and_may_touch_nothing_by_scope():
    ada = Caller(CallerKind.USER, "user_ada")
    assert ada.require_user() == "user_ada"
    with pytest.raises(Forbidden):
        ada.require("keys")
    with pytest.raises(Forbidden, match="another"):
        Caller(CallerKind.USER, "user_ada", acts_for="user_ben").require_user()
    assert Caller(CallerKind.USER, "user_ada", acts_for="user_ada").require_user() == "user_ada"


def test_a_program_acts_for_people_only_with_the_scope_and_a_name():
    assert Caller(CallerKind.PROGRAM, "shop", frozenset({"users"}), "user_ada").require_user() == "user_ada"
    with pytest.raises(Forbidden, match="users"):
        Caller(CallerKind.PROGRAM, "shop", frozenset({"keys"}), "user_ada").require_user()
    with pytest.raises(Invalid, match="x-user-sub"):
        Caller(CallerKind.PROGRAM, "shop", frozenset({"users"})).require_user()


def test_an_operator_acts_for_whom_it_names_and_nobody_acts_for_anyone():
    assert Caller(CallerKind.OPERATOR, "operator", acts_for="user_ada").require_user() == "user_ada"
    with pytest.raises(Invalid):
        Caller(CallerKind.OPERATOR, "operator").require_user()
    with pytest.raises(NotLoggedIn):
        Caller(CallerKind.ANONYMOUS, acts_for="user_ada").require_user()


@pytest.mark.parametrize("name", ["user_ada user_ben", "a:b", "{a}", "a\nb", "x" * 256])
def test_what_can_be_nobody_is_refused_before_anything_is_looked_up(name):
    with pytest.raises(Invalid, match="names nobody"):
        Caller(CallerKind.OPERATOR, "operator", acts_for=name).require_user()
