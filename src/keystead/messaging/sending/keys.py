"""The keys of messaging.sending."""

from keystead.keys import Keyspace

SENDING = Keyspace("messaging.sending", tag="msg")
