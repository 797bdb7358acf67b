"""The keys of push messages."""

from keystead.keys import Keyspace

PUSH = Keyspace("messaging.push", tag="msg")
