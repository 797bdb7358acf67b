"""What members counts is declared as documented."""

from keystead.members import stats
from tests.stats.documented import check_declared


def test_families_are_the_documented_ones():
    catalogue = check_declared(stats, {"push_tokens", "contact_methods"})
    assert catalogue.families["push_tokens"].gauges == ("total",)
    assert {name: (one.table, one.monthly, one.held_days) for name, one in catalogue.day_sets.items()} == {
        "daily_new_users": ("new_user_stats", False, 1),
        "daily_active_users": ("daily_active_user_stats", False, 1),
        "monthly_active_users": ("monthly_active_user_stats", True, 1),
    }
    assert catalogue.cohorts["retention"].periods == (0, 1, 7, 30, 90)
    assert catalogue.cohorts["retention"].table == "retention_stats"
    assert catalogue.rows["visitors"].table == "daily_utm_conversion_stats"
    assert set(catalogue.totals) == {"users"}


def test_sets_of_people_are_personal():
    sets = (stats.DAILY_ACTIVE.day_key, stats.MONTHLY_ACTIVE.day_key)
    assert all(key.personal for key in sets) and not stats.NEW_USERS.day_key.personal
