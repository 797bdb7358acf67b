"""What we know of a person: who they are, where they live by the clock, when they were active, what brought them."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.members.activity import Activity, Seen
    from keystead.members.attribution import Attribution, Recorded
    from keystead.members.timezones import Timezones, checked_zone
    from keystead.members.users import Member, Users
    from keystead.members.utms import Utm
    from keystead.members.visitors import Source, Visitors
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "Activity",
    "Attribution",
    "Member",
    "Recorded",
    "Seen",
    "Source",
    "Timezones",
    "Users",
    "Utm",
    "Visitors",
    "checked_zone",
]
