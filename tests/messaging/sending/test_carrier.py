"""What a request says of its provider."""

import pytest

from keystead.keys import Layout
from keystead.messaging.sending import Carried, Health
from keystead.messaging.sending.carrier import health_of
from keystead.patterns import Writes


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ([Health.FINE, Health.FINE], Health.FINE),
        ([Health.FINE, Health.NOT_CALLED], Health.FINE),
        ([Health.FINE, Health.THROTTLED], Health.THROTTLED),
        ([Health.THROTTLED, Health.FAILED], Health.FAILED),
        ([Health.NOT_CALLED], Health.NOT_CALLED),
        ([], Health.NOT_CALLED),
    ],
)
def test_the_worst_answer_counts(seen, expected):
    assert health_of([Carried(Writes(Layout.PLAIN), health) for health in seen]) is expected
