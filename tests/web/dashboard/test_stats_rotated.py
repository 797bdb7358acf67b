"""The line about the rotation."""

from keystead.stats.keys import RotationRun
from keystead.stats.rotated import RotationStanding
from keystead.web.dashboard.stats_rotated import rotated_html

NOW = 1_800_000_000.0
RAN = RotationRun(started_at=NOW - 3700, finished_at=NOW - 3600, running_time=100.0, days=4)


def said(run: RotationRun | None = RAN, rows: int = 12, late: dict[str, str] | None = None,
         due_at: float = NOW - 3700) -> str:
    return rotated_html(RotationStanding(NOW, run, rows, 5 if rows else 0, late or {}, due_at, NOW + 7200), NOW)


def test_yesterday_rotated_with_when_and_how_many():
    text = said()
    assert "Yesterday rotated." in text and "12 rows of 5 families" in text and "nothing is late" in text
    assert "1 h ago" in text and "1 min 40 s" in text and "in 2 h" in text


def test_what_is_late_is_named():
    text = said(late={"sms_send": "2026-03-01", "visits": "2026-02-27"})
    assert "did not rotate" in text and "2 things that are counted are late" in text
    assert text.index("visits") < text.index("sms_send") and "since 2026-02-27" in text and "op-verdict bad" in text
    many = said(late={f"family_{number}": "2026-03-01" for number in range(9)})
    assert "and 4 more" in many
    assert "has not run yet" in said(run=None, late={"a": "2026-03-01"})


def test_what_is_just_being_rotated_is_not_late():
    assert "is running" in said(late={"a": "2026-03-01"}, due_at=NOW - 60)
    assert "is running" in said(run=RotationRun(started_at=NOW - 5, finished_at=NOW - 90_000))


def test_a_young_installation_had_nothing_to_rotate():
    assert "No day was due to rotate yet" in said(run=None, rows=0)
    assert "Yesterday rotated" in said(run=None, rows=3), "somebody did it by hand"


def test_problems_lead_to_the_log():
    assert "2 problems" in said(run=RotationRun(started_at=NOW - 9, finished_at=NOW - 8, running_time=1.0, problems=2))
