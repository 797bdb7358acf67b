"""What reminders counts is declared as documented."""

from keystead.reminders import stats
from tests.stats.documented import check_declared


def test_families_and_runs_are_the_documented_ones():
    catalogue = check_declared(stats, {"daily_reminders", "daily_reminder_registrations"}, {
        "daily_reminders:assign_time_job", "daily_reminders:send_job",
    })
    changes = catalogue.families["user_notification_settings"]
    assert len(changes.events) == 20 and "unset:text-any" in changes.events and "unset:unset" not in changes.events
    assert changes.day_keys[0].pattern == "stats:daily_user_notification_settings:{unix_date}"
    assert (changes.table, changes.columns) == ("user_notification_setting_stats", ("old_preference", "new_preference"))
    assert (changes.held_days, changes.channel) == (1, None)
