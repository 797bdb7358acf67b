"""What a key is that nobody wrote down: the pattern that it forms with the keys beside it."""

import re

from keystead.engine import Lookout
from keystead.inventory import Entry, Inventory, Matcher, Source
from keystead.inventory.learning import LONGEST_NAME, Tree, learned_from
from keystead.survey.learn import entry_of, read_samples
from keystead.survey.stride import Stride
from keystead.survey.walk import Walk

LOOKED_AT_KEYS = 5_000
GONE_OVER_KEYS = 200_000
_FRONT = re.compile(rb"[^:/|._#@-]*[:/|._#@-]?")
_MAGIC = re.compile(rb"([\\*?\[\]^])")


async def neighbours(look: Lookout, raw_key: bytes, *, stride: Stride | None = None) -> Entry | None:
    """The pattern of a key, learned from some keys that begin as it does, with what was observed of them.

    Goes over a bounded part of the server. None if the key is not on it.
    """
    if len(raw_key) > LONGEST_NAME:
        return None
    front = _FRONT.match(raw_key)
    glob = _MAGIC.sub(rb"\\\1", front.group() if front is not None else b"") + b"*"
    tree = Tree()
    seen = False
    walk = Walk(look, match=glob, most_keys=LOOKED_AT_KEYS, most_scanned=GONE_OVER_KEYS, stride=stride)
    async for page in walk.pages():
        for name, type, ttl_ms, memory in zip(page.keys, page.types, page.ttls_ms, page.memory_bytes, strict=True):
            tree.add(name, type, ttl_ms, memory)
            seen = seen or name == raw_key
    if not seen:
        # It may lie beyond the part that was gone over.
        own = Walk(look, match=_MAGIC.sub(rb"\\\1", raw_key), most_keys=1, most_scanned=GONE_OVER_KEYS, stride=stride)
        facts = [fact async for page in own.pages()
                 for fact in zip(page.keys, page.types, page.ttls_ms, page.memory_bytes, strict=True)]
        tree.add(*next((fact for fact in facts if fact[0] == raw_key), (raw_key, "", -3, 0)))
    learned = learned_from(tree)
    source = Source(look.name)
    bare = Inventory(look.name, tuple(entry_of(named, group, {}, source, 1.0) for named, group in learned))
    found = Matcher(bare).find(raw_key)
    if found is None:
        return None
    chosen = [(named, group) for named, group in learned if named.pattern == found.entry.pattern]
    samples = await read_samples(look, chosen)
    return entry_of(*chosen[0], samples, source, 1.0)
