"""A body that is read before whoever answers reads it: all of its messages, and the same once more."""

from collections.abc import MutableMapping
from typing import Any

from starlette.types import Message, Receive


async def read_whole(receive: Receive) -> list[Message]:
    """Every message of a body; the last is no part of one if the client went away before its end."""
    messages: list[Message] = []
    while not messages or (messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False)):
        messages.append(await receive())
    return messages


def content_of(messages: list[Message]) -> bytes:
    """The bytes of the body."""
    return b"".join([message.get("body", b"") for message in messages])


def is_whole(messages: list[Message]) -> bool:
    """Whether the body came to its end."""
    return bool(messages[-1]["type"] == "http.request")


def again(messages: list[Message], receive: Receive) -> Receive:
    """What was read, and then whatever comes."""
    left = iter(messages)

    async def receive_again() -> MutableMapping[str, Any]:
        message = next(left, None)
        return await receive() if message is None else message

    return receive_again
