"""The keys of messaging.sandbox."""

from keystead.keys import Keyspace

SANDBOX = Keyspace("messaging.sandbox", tag="sandbox")
