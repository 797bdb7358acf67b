"""What the engine raises when a server does not answer. Each is also the redis-py exception its users expect."""

import redis.exceptions

from keystead.errors import Refused, ReplyLost, Unavailable

# The server's own error reply (out of memory, no permission…), for rooms above that must not know redis-py.
ErrorReply = redis.exceptions.ResponseError
# What a node of a cluster says of a key that lies elsewhere, now or for the moment.
KeyMoved = redis.exceptions.AskError


class ServerAway(Unavailable, redis.exceptions.ConnectionError):
    """No connection could be had in time; the command never left."""


class AnswerLost(ReplyLost, redis.exceptions.ConnectionError):
    """The connection broke after the command left; it may or may not have been applied."""


class NotReplicated(AnswerLost):
    """The write was applied, but too few replicas had it in time: a failover may still take it back."""

    @classmethod
    def by(cls, had: object, wanted: int, seconds: float) -> "NotReplicated":
        """``had`` is the answer to WAIT: how many replicas, or why the server did not say."""
        seen = f"{had} of {wanted} replicas had it after {seconds:g} s" if isinstance(had, int) else str(had)
        return cls(f"the write was applied, but a failover may still take it back: {seen}")


class LoginRefused(Unavailable, redis.exceptions.AuthenticationError):
    """The server is there and does not let us in; waiting will not help."""


class ServerTooOld(Unavailable, redis.exceptions.ConnectionError):
    """The server speaks an older dialect than the engine needs."""


class NotSent(Exception):
    """Inside the engine only: the connection broke before the command was written, so sending it again is safe."""


class CutOff(Refused):
    """A listener fell too far behind and was cut off; ``dropped`` messages were not delivered."""

    def __init__(self, dropped: int) -> None:
        super().__init__(f"the listener was too slow and was cut off with {dropped} messages waiting; subscribe again")
        self.dropped = dropped
