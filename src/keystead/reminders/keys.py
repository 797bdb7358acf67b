"""The keys of daily reminders."""

from keystead.keys import Keyspace

REMINDERS = Keyspace("reminders", tag="rem")
