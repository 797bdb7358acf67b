"""The two ways a declared key is spelled on a server."""

from enum import Enum


class Layout(Enum):
    """``PLAIN`` gives the documented name byte for byte. ``TAGGED`` puts the hash tag in front, as a cluster needs.

    A tagged channel is published to its shard (SPUBLISH), a plain one to the whole server.
    """

    PLAIN = "plain"
    TAGGED = "tagged"
