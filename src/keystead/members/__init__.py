"""What we know of a person: who they are, where they live by the clock, when they were active, what brought them."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.members.activity import Activity, Seen
    from keystead.members.addresses import folded_email, normal_email, normal_phone
    from keystead.members.attribution import Attribution, Recorded
    from keystead.members.contact_changes import ERASED_JOB, REACHABILITIES_JOB, REACHABILITY_JOB
    from keystead.members.contacts import Added, Contact, Contacts, Described, Device
    from keystead.members.contacts_import import ContactsImport, Imported
    from keystead.members.contacts_lines import BrokenLine
    from keystead.members.people import Person, find_person, lock_people, reachable
    from keystead.members.push_tokens import PushTokens, Registered
    from keystead.members.suppression import EmailReason, PhoneReason, Suppression
    from keystead.members.timezones import TIMEZONE_JOB, Timezones, checked_zone, store_zone, zone_of
    from keystead.members.users import Member, Users
    from keystead.members.utms import Utm
    from keystead.members.veil import Veil
    from keystead.members.visitors import Source, Visitors
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "Activity",
    "Added",
    "Attribution",
    "BrokenLine",
    "Contact",
    "Contacts",
    "ContactsImport",
    "Described",
    "Device",
    "ERASED_JOB",
    "EmailReason",
    "Imported",
    "Member",
    "Person",
    "PhoneReason",
    "PushTokens",
    "REACHABILITIES_JOB",
    "REACHABILITY_JOB",
    "Recorded",
    "Registered",
    "Seen",
    "Source",
    "Suppression",
    "TIMEZONE_JOB",
    "Timezones",
    "Users",
    "Utm",
    "Veil",
    "Visitors",
    "checked_zone",
    "find_person",
    "folded_email",
    "lock_people",
    "normal_email",
    "normal_phone",
    "reachable",
    "store_zone",
    "zone_of",
]
