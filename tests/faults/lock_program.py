"""A process that holds a lock or leads, for tests that stop, cut or kill it: ``python -m tests.faults.lock_program``.

It says on its output what happens, one word and its facts a line.
"""

import asyncio
import sys

from keystead.clock import SystemClock
from keystead.engine import connect
from keystead.keys import Keyspace, ListKey
from keystead.patterns.leader import Leader
from keystead.patterns.lock import LockLost
from keystead.patterns.lock_leased import LeasedLock

ROOM = Keyspace("tests.faults", tag="faults")
FACTS = {"writers": ("tests",), "readers": ("tests",)}
LEASE_SECONDS = 3.0
LOCK = LeasedLock(ROOM, "vault:lock", lease_seconds=LEASE_SECONDS, fence="vault:fence", purpose="one writer", **FACTS)
STEADY = LeasedLock(ROOM, "vault:steady:lock", lease_seconds=20.0, purpose="one at a time, for longer", **FACTS)
REPLICATED = LeasedLock(ROOM, "vault:kept:lock", lease_seconds=60.0, fence="vault:kept:fence", purpose="one at a time",
                        **FACTS)
LEADER = Leader(ROOM, "vault:leader", epoch="vault:epoch", lease_seconds=LEASE_SECONDS, renew_seconds=0.3,
                margin_seconds=1.0, purpose="one leader", **FACTS)
ENTRIES = ListKey(ROOM, "vault:entries", str, purpose="number of the writer, in the order written", **FACTS)
CLAIMS = ListKey(ROOM, "vault:claims", str, purpose="what a leader wrote when it believed in itself", **FACTS)


def say(*words: object) -> None:
    print(*words, flush=True)


async def hold(url: str) -> None:
    """Take the lock in turn and keep it until killed."""
    valkey = await connect(url)
    say("waiting")
    async with LOCK.at().hold(valkey, SystemClock(), patience_seconds=60) as held:
        say("held", held.fence)
        await asyncio.sleep(60)


async def pass_through(url: str) -> None:
    """Take the lock in turn and give it back at once."""
    valkey = await connect(url)
    say("waiting")
    async with LOCK.at().hold(valkey, SystemClock(), patience_seconds=60) as held:
        say("held", held.fence)
    await valkey.aclose()


async def write(url: str) -> None:
    """Take the lock and write for as long as the server lets it, blind to what the lock itself would say."""
    valkey, clock = await connect(url), SystemClock()
    while True:
        lease = await LOCK.at().try_acquire(valkey, now=clock.now())
        if lease is None:
            await asyncio.sleep(0.01)
            continue
        say("held", lease.fence)
        written = 0
        try:
            while True:
                await ENTRIES.at().push_right(LOCK.at().fenced(valkey, lease), f"{lease.fence:06}")
                written += 1
                if written % 5 == 0:
                    await LOCK.at().renew(valkey, lease)
                await asyncio.sleep(0.001)
        except LockLost:
            say("refused", lease.fence, written)


async def lead(url: str) -> None:
    """Take part in an election; while leading, write fenced entries and, unfenced, claims."""
    valkey = await connect(url)
    async with LEADER.at().campaign(valkey) as leadership:
        while True:
            term = await leadership.wait_until_leader()
            say("leading", term.epoch)
            refused = False
            while leadership.is_leader:
                try:
                    await ENTRIES.at().push_right(LEADER.at().fenced(valkey, term), f"{term.epoch:06}")
                except LockLost:
                    refused = True
                    break
                await asyncio.sleep(0.001)
            # One more, as a careless program would: after having stopped believing, or having been refused.
            try:
                await ENTRIES.at().push_right(LEADER.at().fenced(valkey, term), f"{term.epoch:06}")
                say("followed", term.epoch, "unrefused")
            except LockLost:
                say("followed", term.epoch, "refused-first" if refused else "refused-last")


if __name__ == "__main__":
    asyncio.run({"hold": hold, "pass": pass_through, "write": write, "lead": lead}[sys.argv[1]](sys.argv[2]))
