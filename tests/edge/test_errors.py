"""Error → status and body."""

import pytest

from keystead import errors
from keystead.edge import refusals
from keystead.edge.errors import TABLE, problem_of, problem_of_status


@pytest.mark.parametrize(("error", "status", "type"), [
    (errors.Refused("x"), 400, "refused"),
    (errors.Invalid("x"), 400, "invalid"),
    (errors.NotFound("x"), 404, "not_found"),
    (errors.Conflict("x"), 409, "conflict"),
    (errors.LimitReached("x", retry_after_seconds=3), 429, "limit_reached"),
    (errors.NotOwner("x"), 403, "not_owner"),
    (refusals.NotLoggedIn("x"), 401, "not_logged_in"),
    (refusals.TicketUsed("x"), 401, "ticket_used"),
    (refusals.Forbidden("x"), 403, "forbidden"),
    (refusals.Blocked("x", retry_after_seconds=60), 403, "blocked"),
    (refusals.TooLarge("x"), 413, "too_large"),
    (errors.Unavailable("x"), 503, "unavailable"),
    (errors.ReplyLost("x"), 503, "unavailable"),
    (errors.GatewayError("x", transient=True), 502, "gateway"),
    (errors.Corrupt("x"), 500, "corrupt"),
    (errors.DeclarationError("x"), 500, "internal"),
    (ValueError("x"), 500, "internal"),
])
def test_the_nearest_branch_decides(error, status, type):
    problem = problem_of(error)
    assert (problem.status, problem.type) == (status, type)


def test_an_error_may_name_its_own_type():
    class PartMissing(errors.NotFound):
        problem_type = "part_does_not_exist"

    assert (problem_of(PartMissing("x")).status, problem_of(PartMissing("x")).type) == (404, "part_does_not_exist")


def test_body_is_ours_and_a_problem_document_at_once():
    assert problem_of(errors.NotFound("there is no such job")).body() == {
        "type": "not_found", "message": "there is no such job", "title": "Not found", "status": 404,
        "detail": "there is no such job",
    }


@pytest.mark.parametrize("error", [ValueError("password=hunter2"), errors.Corrupt("bytes of someone's record")])
def test_nothing_of_an_internal_error_reaches_the_client(error):
    body = problem_of(error).body()
    assert str(error) not in str(body)
    assert "log" in body["message"]


def test_waiting_time_is_rounded_up_and_at_least_a_second():
    assert problem_of(errors.LimitReached("x", retry_after_seconds=2.1)).headers == {"Retry-After": "3"}
    assert problem_of(refusals.Blocked("x", retry_after_seconds=0.0)).headers == {"Retry-After": "1"}
    assert "Retry-After" in problem_of(errors.Unavailable("x")).headers


def test_missing_credential_says_which_kind_is_wanted():
    assert problem_of(refusals.NotLoggedIn("x")).headers["WWW-Authenticate"] == "Bearer"


def test_every_error_of_the_tree_has_an_answer():
    def leaves(parent):
        yield parent
        for child in parent.__subclasses__():
            yield from leaves(child)

    for error in leaves(errors.KeysteadError):
        assert any(parent in TABLE for parent in error.__mro__)


def test_bare_statuses_have_the_same_body():
    assert problem_of_status(405).body()["type"] == "method_not_allowed"
    assert problem_of_status(422, "limit: too small").body()["status"] == 400
    assert problem_of_status(418).body()["type"] == "status_418"


def test_a_value_that_cannot_be_in_a_key_is_the_clients_mistake_and_not_repeated():
    problem = problem_of(errors.NotInKey("jobs:job:{uid}: variable uid must be ...; got 'ada@example.com'"))
    assert problem.status == 400 and "ada" not in problem.message and "jobs:" not in problem.message
