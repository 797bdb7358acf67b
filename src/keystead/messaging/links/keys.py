"""The keys of trackable links."""

from keystead.keys import Keyspace

LINKS = Keyspace("messaging.links", tag="lnk")
