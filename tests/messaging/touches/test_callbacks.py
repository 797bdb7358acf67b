"""What a callback must be like, and what becomes of one that is not."""

import pytest

from keystead.errors import Invalid
from keystead.jobs import JobRef
from keystead.keys import Layout
from keystead.messaging.touches.callbacks import MOST_NAME, call_back, check_callback
from keystead.patterns import Writes


@pytest.mark.parametrize("callback", [None, JobRef("a"), JobRef("a", {}, "own"), JobRef("a", {}, "hot")])
def test_callbacks_that_can_be_queued(callback):
    check_callback(callback)


@pytest.mark.parametrize("callback", [
    JobRef(""), JobRef("x" * (MOST_NAME + 1)), JobRef("a", {}, "our:own"), JobRef("a", {}, "{own}"),
    JobRef("a", {}, "o\nwn"),
])
def test_others_are_refused(callback):
    with pytest.raises(Invalid, match="callback"):
        check_callback(callback)


@pytest.mark.parametrize("layout", [Layout.PLAIN, Layout.TAGGED])
@pytest.mark.parametrize("callback, said", [
    (None, "none"), ("", "none"), (JobRef("a"), "queued"), ('{"name":"a"}', "queued"), ("{", "cannot be queued"),
    (JobRef("a", {}, "our:own"), "cannot be queued"),
])
def test_what_becomes_of_a_callback_is_said(layout, callback, said):
    writes = Writes(layout)
    assert call_back(writes, "tch_1", callback, 1.0) == said
    assert bool(writes) is (said == "queued")
