"""Messages that were there at too many deaths of their courier, or that their carrier failed on: the end is told.

Whoever adopted them could not know what follows. Each becomes a dead letter in the step that queues its failure job.
"""

from typing import TypeVar

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.keys import Undecodable
from keystead.messaging.sending.carrier import Carrier
from keystead.messaging.sending.channel import Channel
from keystead.messaging.sending.models import Outgoing
from keystead.messaging.sending.trace import trace
from keystead.patterns import Writes
from keystead.patterns.worklist_items import DeadLetter, DeadLetterCodec
from keystead.telemetry import counts, logger

T = TypeVar("T", bound=Outgoing)

SETTLE = Script("keystead.patterns", "scripts/worklist/settle.lua")
MOST = 100

counts.describe("messages_given_up", "messages that became dead letters, by channel")

_log = logger("messaging.sending")
_letters = DeadLetterCodec()


async def settle_given_up(
    valkey: Valkey, clock: Clock, channel: Channel[T], carrier: Carrier[T], *, trace_seconds: float
) -> int:
    """End what was given up; says how many. Any number may try at once, each message ends once."""
    place, poison, ended = channel.given_up, channel.work.poison_key.at(), 0
    raws: list[bytes] = await valkey.run(("LRANGE", place.name(valkey.layout), 0, MOST - 1), list, repeat=True)
    for raw in raws:
        letter = _letters.decode(raw)
        writes = _ending(valkey, clock, channel, carrier, letter, trace_seconds)
        channel.work.dead.push_right(writes, letter)
        names, packed = writes.packed(valkey.layout)
        done, *stored = await SETTLE(valkey, keys=(place, poison, *names), args=(raw, packed))
        if stored:
            writes.stored(stored)
        if done:
            ended += 1
            counts.add("messages_given_up", channel=channel.name)
            _log.error("a message was given up", channel=channel.name, error=letter.error.partition(":")[0],
                       attempts=letter.attempts)
    return ended


def _ending(
    valkey: Valkey, clock: Clock, channel: Channel[T], carrier: Carrier[T], letter: DeadLetter, trace_seconds: float
) -> Writes:
    try:
        item = channel.work.queue_key.codec.decode(letter.raw)
        writes = carrier.drop(item).writes
    except Undecodable:
        return Writes(valkey.layout)
    except Exception:  # what makes a carrier fail may do so here too, and must not stop the others
        _log.exception("what follows from a message that was given up is not known", channel=channel.name)
        return Writes(valkey.layout)
    channel.intent(item.uid).delete(writes)
    # Only what kind of error it was: its words may be those of the message, or hold an address.
    trace(writes, item.uid, "given up", clock.now(), kept_seconds=trace_seconds,
          error=letter.error.partition(":")[0][:100], attempts=letter.attempts)
    return writes
