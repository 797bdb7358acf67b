"""Every key of the members room. What is counted of people is in ``stats.py``."""

from typing import Final

from keystead.jobs import RunFacts
from keystead.keys import AtMost, Exactly, FlagKey, Keyspace, Matching, Personal, RecordKey, StringKey
from keystead.members.models import VisitorClick, VisitorLink
from keystead.patterns import SmartLock, WorkList

MEMBERS = Keyspace("members", tag="members")

REPEAT_SECONDS: Final = 60
TIMEZONE_SECONDS: Final = 900
# A job can be replayed by hand for thirty days; after twice that nobody counts the same thing again.
COUNTED_SECONDS: Final = 60 * 86400
VISITOR_UID: Final = Matching(
    "visitor", r"v_[A-Za-z0-9_-]{5,30}", examples=("v_Jd82_", "v_k3Xw-0aVq9ZrT1bNcY7p"),
    says="v_ and 5 to 30 letters, digits, _ or -",
)
_VISITOR: Final = {"visitor_uid": VISITOR_UID}
_QUEUED: Final = ("members.visitors",)
_JOBS: Final = ("members.visitor_jobs",)

# -- counted once ---------------------------------------------------------------------------------------------------

CREATED_COUNTED = FlagKey(
    MEMBERS, "members:counted:created:{sub}", ttl=AtMost(COUNTED_SECONDS), personal=Personal(variable="sub"),
    purpose="that somebody joined was counted, and is not to be counted again", writers=("members.counting",),
    readers=("members.counting",), scripts=("members/count_created.lua",),
)
CONVERSIONS_COUNTED = FlagKey(
    MEMBERS, "members:counted:conversions:{uid}", ttl=AtMost(COUNTED_SECONDS),
    purpose="changes of one transaction were added to the counts by campaign, and are not to be added again",
    writers=("members.counting",), readers=("members.counting",), scripts=("rows_by_day/add_once.lua",),
)
CONTACTS_COUNTED = FlagKey(
    MEMBERS, "members:counted:contacts:{uid}", ttl=AtMost(COUNTED_SECONDS),
    purpose="changes of contacts of one transaction were counted, and are not to be counted again",
    writers=("members.counting",), readers=("members.counting",), scripts=("guarded/once.lua",),
)

# -- where somebody lives by the clock ------------------------------------------------------------------------------

TIMEZONE_SAID = StringKey(
    MEMBERS, "user:timezones:{sub}", str, ttl=Exactly(TIMEZONE_SECONDS), personal=Personal(variable="sub"),
    purpose="the time zone that somebody said last; whoever says it again changes nothing",
    writers=("members.timezones",), readers=("members.timezones",),
)

# -- people seen on devices -----------------------------------------------------------------------------------------


class LinkRun(RunFacts, frozen=True):
    """``updated``: the link was known. ``lost``: there is no such device, or no such person."""

    attempted: int = 0
    inserted: int = 0
    updated: int = 0
    lost: int = 0


LINKS: WorkList[VisitorLink] = WorkList(
    MEMBERS, "visitors:user_associations", VisitorLink, tries=5,
    most_dead=1000, personal=Personal(field="user_sub"), purpose="people seen on devices, to be written down",
    writers=_QUEUED, readers=_JOBS,
)
LINK_REPEATED = FlagKey(
    MEMBERS, "visitors:user_associations:{user_sub}:lock", ttl=AtMost(REPEAT_SECONDS),
    personal=Personal(variable="user_sub"), purpose="somebody was seen on a device just now; more of it is dropped",
    writers=_QUEUED, readers=_QUEUED, scripts=("members/queue.lua",),
)
LINK_LOCK = SmartLock(
    MEMBERS, "visitors:user_associations_job:lock", purpose="one run at a time writes down who was seen where",
    writers=_JOBS, readers=_JOBS,
)
LINK_RUNS: RecordKey[LinkRun] = RecordKey(
    MEMBERS, "stats:visitors:user_associations_job", LinkRun, purpose="the last run that wrote down who was seen where",
    writers=_JOBS, readers=("stats.charts",),
)

# -- clicks ---------------------------------------------------------------------------------------------------------


class ClickRun(RunFacts, frozen=True):
    """``repeated``: the click was written down before. ``lost``: there is no such device."""

    attempted: int = 0
    inserted: int = 0
    repeated: int = 0
    lost: int = 0


CLICKS: WorkList[VisitorClick] = WorkList(
    MEMBERS, "visitors:utms", VisitorClick, tries=5, most_dead=1000,
    purpose="clicks on links of campaigns, to be written down", writers=_QUEUED, readers=_JOBS,
)
CLICK_REPEATED = FlagKey(
    MEMBERS, "visitors:utms:{visitor_uid}:lock", kinds=_VISITOR, ttl=AtMost(REPEAT_SECONDS),
    purpose="a device came through a campaign just now; more of it is dropped", writers=_QUEUED, readers=_QUEUED,
    scripts=("members/queue.lua",),
)
CLICK_LOCK = SmartLock(
    MEMBERS, "visitors:utms_job:lock", purpose="one run at a time writes down clicks", writers=_JOBS,
    readers=_JOBS,
)
CLICK_RUNS: RecordKey[ClickRun] = RecordKey(
    MEMBERS, "stats:visitors:utms_job", ClickRun, purpose="the last run that wrote down clicks",
    writers=_JOBS, readers=("stats.charts",),
)
