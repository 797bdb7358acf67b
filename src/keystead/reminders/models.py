"""What lies in Valkey of daily reminders."""

import msgspec


class DueReminder(msgspec.Struct, frozen=True):
    """A reminder on one day of its reader. The same reminder on the same day is always the same bytes."""

    uid: str
    unix_date: int


class Progress(msgspec.Struct, frozen=True):
    """How far one day in one zone is: the last row that got its time, and whether there can be no more."""

    start_time: int = -1
    uid: str = ""
    finished: int = 0
