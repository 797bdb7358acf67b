"""What we know of a person: who they are, where they live by the clock, when they were active, what brought them."""

from keystead.members.activity import Activity, Seen
from keystead.members.timezones import Timezones, checked_zone
from keystead.members.users import Member, Users

__all__ = ["Activity", "Member", "Seen", "Timezones", "Users", "checked_zone"]
