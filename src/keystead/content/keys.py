"""The keys of content."""

from keystead.keys import Keyspace

CONTENT = Keyspace("content", tag="content")
