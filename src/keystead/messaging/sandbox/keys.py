"""Every key of the sandbox. What a real provider would keep lies here, so that killing the sandbox loses nothing."""

from typing import Final

from keystead.keys import TEXT as TEXT_CODEC
from keystead.keys import Keyspace, MapKey, Personal, SetKey, Sliding, SortedSetKey, StringKey
from keystead.keys.variables import TEXT
from keystead.messaging.sandbox.models import Delivery, Faults, KeyPair, Message, Subscription
from keystead.patterns import DelayedSet

SANDBOX = Keyspace("messaging.sandbox", tag="sandbox")

KEPT_SECONDS: Final = 7 * 86400
_KEPT: Final = Sliding(KEPT_SECONDS, reads=False)
_ACCEPT: Final = ("sandbox/accept.lua",)
_LEDGER: Final = ("messaging.sandbox.ledger",)
_SHOWN: Final = ("messaging.sandbox.ledger", "messaging.sandbox.outbox")

MESSAGE: StringKey[Message] = StringKey(
    SANDBOX, "sandbox:message:{id}", Message, ttl=_KEPT, personal=Personal(field="to"), scripts=_ACCEPT,
    purpose="one message that a sandbox provider took, and what is to become of it", writers=_LEDGER, readers=_SHOWN,
)
MESSAGES: SortedSetKey[str] = SortedSetKey(
    SANDBOX, "sandbox:messages", TEXT_CODEC, member="id of a message", score="unix time of its last status",
    ttl=_KEPT, scripts=_ACCEPT, purpose="all messages that are kept; the ones that ended first are dropped first",
    writers=_LEDGER, readers=_SHOWN,
)
INBOX: SortedSetKey[str] = SortedSetKey(
    SANDBOX, "sandbox:inbox:{recipient}", TEXT_CODEC, member="id of a message", score="unix time when it was taken",
    kinds={"recipient": TEXT}, ttl=_KEPT, personal=Personal(variable="recipient"), scripts=_ACCEPT,
    purpose="the messages of one recipient: a channel, a colon, an address", writers=_LEDGER, readers=_SHOWN,
)
TAKEN: SortedSetKey[str] = SortedSetKey(
    SANDBOX, "sandbox:taken", TEXT_CODEC, member="id of a message", score="its number: the first that was taken has 1",
    ttl=_KEPT, scripts=_ACCEPT, purpose="messages in the order in which they were taken, for whoever follows them",
    writers=_LEDGER, readers=_SHOWN,
)
RECIPIENTS: SortedSetKey[str] = SortedSetKey(
    SANDBOX, "sandbox:recipients", TEXT_CODEC, member="a channel, a colon, an address",
    score="unix time of the last message", ttl=_KEPT, personal=True, scripts=_ACCEPT,
    purpose="who was written to, for the page that shows it", writers=_LEDGER, readers=_SHOWN,
)
COUNTS: MapKey[int] = MapKey(
    SANDBOX, "sandbox:counts", int, fields=("{channel}:{what}",), ttl=_KEPT, scripts=_ACCEPT,
    purpose="how often a provider took something, refused, or called back", writers=_LEDGER, readers=_SHOWN,
)
DUE: DelayedSet[Delivery] = DelayedSet(
    SANDBOX, "sandbox:due", Delivery, member="a webhook to be called", most_dead=100,
    purpose="webhooks that the sandbox has yet to call", writers=(*_LEDGER, "messaging.sandbox.caller"),
    readers=("messaging.sandbox.caller",),
)
FAULTS: MapKey[Faults] = MapKey(
    SANDBOX, "sandbox:faults", Faults, fields=("push", "sms", "email"),
    purpose="how each provider is to misbehave", writers=("messaging.sandbox.faults",),
    readers=("messaging.sandbox.faults",),
)
STOPPED: SetKey[str] = SetKey(
    SANDBOX, "sandbox:stopped", TEXT_CODEC, member="a phone number that answered STOP", ttl=_KEPT, personal=True,
    purpose="numbers that the provider itself no longer writes to", writers=("messaging.sandbox.caller",),
    readers=("messaging.sandbox.faults",),
)
SUBSCRIPTIONS: MapKey[Subscription] = MapKey(
    SANDBOX, "sandbox:subscriptions", Subscription, fields=("{endpoint:text}",),
    purpose="who is told of email, and whether they confirmed it", writers=("messaging.sandbox.sns",),
    readers=("messaging.sandbox.sns", "messaging.sandbox.caller"),
)
KEY_PAIR: StringKey[KeyPair] = StringKey(
    SANDBOX, "sandbox:key_pair", KeyPair, purpose="what the sandbox signs notifications with, and its certificate",
    writers=("messaging.sandbox.sns",), readers=("messaging.sandbox.sns",),
)
