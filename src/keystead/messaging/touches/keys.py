"""The keys of touches."""

from keystead.keys import Keyspace

TOUCHES = Keyspace("messaging.touches", tag="msg")
