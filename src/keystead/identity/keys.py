"""The keys of identity."""

from keystead.keys import Keyspace

IDENTITY = Keyspace("identity", tag="identity")
