"""The messages of a touch point: their shapes, how they are stored, and how one is made into words.

Stored they are base85 of gzip of JSON: equal messages give equal text, so a hash of the text tells versions apart.
"""

import base64
import binascii
import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from keystead.errors import Corrupt
from keystead.messaging.touches.models import Channel
from keystead.messaging.touches.rendering import has, render, substituted

MOST_BYTES: Final = 4 * 1024 * 1024  # of JSON; a few letters can hold gigabytes
_GZIP: Final = 16 + zlib.MAX_WBITS


class Format(NamedTuple):
    """Words with places for parameters. ``optional``: an event need not have them."""

    template: str
    parameters: Sequence[str]
    optional: bool = False


class SmsMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A text."""

    priority: int
    uid: str
    body_format: str
    body_parameters: list[str] = []

    def formats(self) -> Iterator[Format]:
        yield Format(self.body_format, self.body_parameters)


class PushMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A notification. ``channel_id``: the channel on the device, where it has such."""

    priority: int
    uid: str
    title_format: str
    title_parameters: list[str] = []
    body_format: str
    body_parameters: list[str] = []
    channel_id: str = "default"

    def formats(self) -> Iterator[Format]:
        yield Format(self.title_format, self.title_parameters)
        yield Format(self.body_format, self.body_parameters)


class Substitution(msgspec.Struct, frozen=True, kw_only=True):
    """Where in the parameters of a template words are put, and which.

    ``optional``: left out where the event lacks one of the parameters; the template then does without.
    """

    key: list[str | int]
    format: str
    parameters: list[str] = []
    optional: bool = False


class EmailMessage(msgspec.Struct, frozen=True, kw_only=True):
    """An email: a template, with parameters that are always the same and some that follow from the event."""

    priority: int
    uid: str
    subject_format: str
    subject_parameters: list[str] = []
    template: str
    template_parameters_fixed: dict[str, Any] = {}
    template_parameters_substituted: list[Substitution] = []

    def formats(self) -> Iterator[Format]:
        yield Format(self.subject_format, self.subject_parameters)
        for one in self.template_parameters_substituted:
            yield Format(one.format, one.parameters, one.optional)


Message = SmsMessage | PushMessage | EmailMessage


class Messages(msgspec.Struct, frozen=True, kw_only=True):
    """All messages of a touch point, each channel's by rising priority."""

    sms: list[SmsMessage] = []
    push: list[PushMessage] = []
    email: list[EmailMessage] = []

    def of(self, channel: Channel) -> Sequence[Message]:
        match channel:
            case "sms":
                return self.sms
            case "push":
                return self.push
            case "email":
                return self.email

    def __iter__(self) -> Iterator[Message]:
        yield from self.sms
        yield from self.push
        yield from self.email

    def in_order(self) -> "Messages":
        """The same, sorted by priority; equals keep their order."""

        def by_priority(message: Message) -> int:
            return message.priority

        return Messages(sms=sorted(self.sms, key=by_priority), push=sorted(self.push, key=by_priority),
                        email=sorted(self.email, key=by_priority))


def pack(messages: Messages) -> str:
    """As they are stored."""
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)  # without the time of day that the gzip module would add
    raw = packer.compress(msgspec.json.encode(messages)) + packer.flush()
    return base64.b85encode(raw).decode()


def unpack(text: str) -> Messages:
    """What was stored; ``Corrupt`` for anything else, at a bounded cost."""
    try:
        unpacker = zlib.decompressobj(_GZIP)
        raw = unpacker.decompress(base64.b85decode(text), MOST_BYTES)
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise Corrupt("the messages of a touch point are cut off, or too many")
        return msgspec.json.decode(raw, type=Messages)
    except (ValueError, binascii.Error, zlib.error, msgspec.MsgspecError) as error:
        raise Corrupt(f"the messages of a touch point do not decode: {error}") from None


def etag_of(text: str) -> str:
    """What tells one version of stored messages from another."""
    return hashlib.sha256(text.encode()).hexdigest()


# -- words -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rendered:
    """A message made into words for one event. ``shown`` is what goes into the log."""

    uid: str
    shown: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """The same for the same words, whichever message they come from."""
        return hashlib.sha256(msgspec.json.encode(self.shown, order="deterministic")).hexdigest()


def rendered(message: Message, parameters: Mapping[str, Any]) -> Rendered:
    """The message with the event's parameters filled in; ``Unrenderable`` if they do not fit."""
    match message:
        case SmsMessage():
            body = render(message.body_format, message.body_parameters, parameters)
            return Rendered(message.uid, {"body": body})
        case PushMessage():
            return Rendered(message.uid, {
                "title": render(message.title_format, message.title_parameters, parameters),
                "body": render(message.body_format, message.body_parameters, parameters),
                "channel_id": message.channel_id,
            })
        case EmailMessage():
            put = [(one.key, one.format, one.parameters) for one in message.template_parameters_substituted
                   if not one.optional or all(has(parameters, name) for name in one.parameters)]
            return Rendered(message.uid, {
                "subject": render(message.subject_format, message.subject_parameters, parameters),
                "template": message.template,
                "template_parameters": substituted(message.template_parameters_fixed, put, parameters),
            })
