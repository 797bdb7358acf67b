"""What is counted of signing in, and the run of its job."""

from typing import Final

from keystead.dates import LOS_ANGELES
from keystead.identity.keys import IDENTITY
from keystead.jobs import RunFacts
from keystead.keys import RecordKey
from keystead.patterns import DailyFamily

_COUNTED: Final = ("identity",)
_JOBS: Final = ("identity.jobs",)
_SHOWN: Final = ("stats.charts", "stats.rotation")

AUTHORIZE = DailyFamily(
    IDENTITY, "sign_in_with_oseh:authorize",
    counts=(
        "check_attempts", "check_elevation_acknowledged", "login_attempted", "create_attempted",
        "password_reset_attempted", "password_update_attempted",
    ),
    breakdowns={
        "check_failed": "reason", "check_elevated": "reason", "check_elevation_failed": "reason",
        "check_elevation_succeeded": "outcome:reason", "check_succeeded": "how", "login_failed": "reason",
        "login_succeeded": "code:email", "create_failed": "reason", "create_succeeded": "code",
        "password_reset_failed": "reason", "password_reset_confirmed": "outcome", "password_update_failed": "reason",
        "password_update_succeeded": "email before",
    },
    held_days=2, zone=LOS_ANGELES, table="siwo_authorize_stats", chart="daily_siwo_authorize",
    identities=(
        "login_failed + login_succeeded = login_attempted",
        "create_failed + create_succeeded = create_attempted",
        "password_reset_failed + password_reset_confirmed = password_reset_attempted",
        "password_update_failed + password_update_succeeded = password_update_attempted",
    ),
    purpose="signing in: checks, log-ins, new accounts, passwords", writers=_COUNTED, readers=_SHOWN,
)

VERIFY_EMAIL = DailyFamily(
    IDENTITY, "sign_in_with_oseh:verify_email",
    counts=("email_requested", "email_succeeded", "verify_attempted"),
    breakdowns={
        "email_failed": "reason", "verify_failed": "reason", "verify_succeeded": "email before",
    },
    held_days=2, zone=LOS_ANGELES, table="siwo_verify_email_stats", chart="daily_siwo_verify_email",
    purpose="addresses being proved", writers=_COUNTED, readers=_SHOWN,
)

EXCHANGE = DailyFamily(
    IDENTITY, "sign_in_with_oseh:exchange",
    counts=("attempted", "succeeded"),
    breakdowns={
        "failed": "reason",
    },
    held_days=2, zone=LOS_ANGELES, table="siwo_exchange_stats", chart="daily_siwo_exchange",
    identities=(
        "succeeded + failed = attempted",
    ),
    purpose="codes exchanged for tokens", writers=_COUNTED, readers=_SHOWN,
)

# -- the last run of each job ------------------------------------------------------------------------------------------


class SendDelayedRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the job that sends email that was held back counts."""

    attempted: int = 0
    moved: int = 0


SEND_DELAYED_RUN = RecordKey(
    IDENTITY, "stats:sign_in_with_oseh:send_delayed_job", SendDelayedRun,
    purpose="the last run of the job that sends email that was held back; running_time in seconds",
    writers=_JOBS, readers=_SHOWN,
)
