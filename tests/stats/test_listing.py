"""What is counted, as a list."""

from keystead.stats.listing import listing

from .counted import catalogue


def test_everything_that_is_charted_is_listed_by_name():
    shown = listing(catalogue())
    assert [one.name for one in shown] == sorted(one.name for one in catalogue())
    kinds = {one.name: one.kind for one in shown}
    assert kinds["events"] == "family" and kinds["active"] == "set" and kinds["joined"] == "number"
    assert kinds["retention"] == "cohorts" and kinds["sessions"] == "views" and kinds["visitors"] == "rows"
    assert {one.name: one.rotates_at for one in shown}["plain"] == "00:15"
