"""What identity counts is declared as documented."""

from keystead.identity import stats
from tests.stats.documented import check_declared


def test_families_and_runs_are_the_documented_ones():
    names = {f"sign_in_with_oseh:{name}" for name in ("authorize", "verify_email", "exchange")}
    check_declared(stats, names, {"sign_in_with_oseh:send_delayed_job"})
