"""Families for the cache tests: one of each shape, three of them with documented frames."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey, connect
from keystead.keys import Frame, Integer, JsonCodec, Keyspace, Rest, Sized, Trailing
from keystead.patterns.cache import Cache
from keystead.patterns.cache_frames import Push, PushCodec, seconds_of, version_of
from keystead.patterns.cache_instance import CacheInstance
from keystead.patterns.cache_process import ProcessTier


class Page(msgspec.Struct, frozen=True):
    number: int
    text: str = ""


# -- u32 n, JSON header, then the value if there is one --
class Header(msgspec.Struct, frozen=True):
    uid: str
    min_checked_at: float
    have_updated: bool


@dataclass(frozen=True)
class External:
    header: Header
    body: bytes | None


def external_frames() -> PushCodec[External]:
    return PushCodec(
        Frame(
            External, Sized("header", "u32", JsonCodec(Header)),
            Rest("body", bytes, when=lambda parts: parts["header"].have_updated),
        ),
        pack=lambda push: External(
            Header(push.arguments["uid"], seconds_of(push.version), push.raw is not None), push.raw
        ),
        unpack=lambda frame: Push({"uid": frame.header.uid}, frame.body, version_of(frame.header.min_checked_at)),
    )


# -- one byte, u32 n, uid, then the value on a fill; a purge's rest is ignored --
@dataclass(frozen=True)
class Prompt:
    kind: int
    uid: str
    rest: bytes

    def __post_init__(self) -> None:
        if self.kind not in (0, 1):
            raise ValueError("0 purges, 1 fills")


def prompt_frames() -> PushCodec[Prompt]:
    return PushCodec(
        Frame(Prompt, Integer("kind", "u8"), Sized("uid", "u32", str), Rest("rest", bytes)),
        pack=lambda push: Prompt(int(push.raw is not None), push.arguments["uid"], push.raw or b""),
        unpack=lambda frame: Push({"uid": frame.uid}, frame.rest if frame.kind else None),
    )


# -- u32 n, uid, u64 m, JSON; anything after is ignored; no purges --
@dataclass(frozen=True)
class Transcript:
    uid: str
    body: bytes


def transcript_frames() -> PushCodec[Transcript]:
    return PushCodec(
        Frame(Transcript, Sized("uid", "u32", str), Sized("body", "u64", bytes), trailing=Trailing.IGNORED),
        pack=lambda push: Transcript(push.arguments["uid"], push.raw or b""),
        unpack=lambda frame: Push({"uid": frame.uid}, frame.body),
        purges=False,
    )


SPACE = Keyspace("cachetest", tag="c")

BOTH = Cache(SPACE, "both:{uid}", Page, shared_seconds=120, local_seconds=120, lock_seconds=30, channel="ps:both",
             collab=True, purpose="held in the process and on the server")
LOCAL = Cache(SPACE, "local:{uid}", bytes, local_seconds=3600, lock="local_lock:{uid}", lock_seconds=30,
              channel="ps:local", frame=external_frames(), collab=True, purpose="held in processes only")
PROMPT = Cache(SPACE, "prompt:{uid}", bytes, local_seconds=3600, jitter_seconds=3600, lock_seconds=30,
               channel="ps:prompt", frame=prompt_frames(), purpose="held in processes, not bound to the channel")
SHARED = Cache(SPACE, "shared:{uid}", Page, shared_seconds=60, jitter_seconds=30, lock_seconds=30,
               purpose="on the server only")
SLIDING = Cache(SPACE, "transcript:{uid}", bytes, shared_seconds=900, sliding=True, local_seconds=60, lock=None,
                channel="ps:transcripts", frame=transcript_frames(), purpose="from its last use")
MARKED = Cache(SPACE, "described:{sub}", Page, shared_seconds=900, in_flight_marker=True, lock_seconds=10,
               wait_seconds=7.5, poll_seconds=0.05, purpose="a marker in the value's own key")
STALE = Cache(SPACE, "stale:{uid}", Page, shared_seconds=60, stale_seconds=60, local_seconds=60, channel="ps:stale",
              collab=True, purpose="answered while it is fetched anew")
LEVELS = Cache(SPACE, "levels:{uid}:{level}", bytes, local_seconds=60, channel="ps:levels", collab=True,
               purpose="a purge may name all levels")


class Source:
    """A database: what it holds, how often it was read, and what it does before it answers."""

    def __init__(self, **rows: object) -> None:
        self.rows: dict[str, object] = dict(rows)
        self.reads: list[str] = []

    def load(self, uid: str, before=None):
        async def read():
            self.reads.append(uid)
            found = self.rows.get(uid)
            if before is not None:
                await before()
            if isinstance(found, Exception):
                raise found
            return found

        return read


class Instances(AsyncExitStack):
    """Several processes that use one family, each with a connection of its own."""

    async def add(
        self, cache: Cache, url: str, *, clock: Clock | None = None, process: ProcessTier | None = None, **more
    ) -> CacheInstance:
        valkey: Valkey = await connect(url)
        self.push_async_callback(valkey.aclose)
        return await self.enter_async_context(cache.open(valkey, clock=clock, process=process, **more))
