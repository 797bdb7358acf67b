"""The keys of email."""

from keystead.keys import Keyspace

EMAIL = Keyspace("messaging.email", tag="msg")
