"""The keys of text messages."""

from keystead.keys import Keyspace

SMS = Keyspace("messaging.sms", tag="msg")
