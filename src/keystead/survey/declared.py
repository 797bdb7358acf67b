"""A live server held against the declarations of a program: one walk that looks into values too."""

from contextlib import aclosing

from keystead.engine import Lookout, Valkey
from keystead.errors import Unavailable
from keystead.inventory import Found, Inventory
from keystead.inventory.learning import Tree
from keystead.keys import Match, Registry
from keystead.survey.drift import Live
from keystead.survey.findings import Finding
from keystead.survey.looking import strays_of
from keystead.survey.pairs import Pairs
from keystead.survey.stride import Stride
from keystead.survey.tally import Tally
from keystead.survey.values import Faults, Seen, Values
from keystead.survey.walk import Progress, Walk

VALUES_PER_SECOND = 20_000  # keys, where their values are read
PAGE_KEYS = 256  # more than a walk alone takes: probes and pairs cost round trips of their own


async def look_at_declared(
    valkey: Valkey,
    registry: Registry,
    inventory: Inventory,
    *,
    keys_per_second: float = VALUES_PER_SECOND,
    match: str | None = None,
    read_values: bool = True,
    progress: Progress | None = None,
) -> tuple[Live, tuple[str, ...], tuple[Finding, ...]]:
    """Walk every key, or those that fit the glob ``match``: what was seen, why it is not everything, and what was found
    in values. ``inventory`` is that of the ``registry``.

    Without ``read_values`` only names, types, expiries and sizes are looked at. On every primary, since a replica may
    have one half of a pair only. Keys whose type may not be asked for make the look unfinished: it would seem clean.
    """
    entries = dict(zip(registry, inventory.entries, strict=True))
    matches: dict[bytes, Match] = {}

    def find(raw_key: bytes) -> Found | None:
        found = registry.resolve(raw_key)
        if found is None:
            return None
        matches[raw_key] = found
        return Found(entries[found.declaration], found.arguments)

    server = valkey.address.display if valkey.address is not None else ""
    stride = Stride(keys_per_second, page_keys=PAGE_KEYS)
    walk = Walk(Lookout(server, tuple(await valkey.nodes())), match=match, stride=stride, progress=progress)
    tree, faults = Tree(), Faults()
    tally = Tally(find, tree.add)
    values, pairs = Values(valkey, stride, faults), Pairs(valkey, registry, faults, keys_per_second)
    partial = ""
    async with aclosing(walk.pages()) as pages:
        async for page in pages:
            matches.clear()
            tally.add_page(page)
            if not read_values:
                continue
            seen = [Seen(raw_key, known, memory_bytes)
                    for raw_key, type, memory_bytes in zip(page.keys, page.types, page.memory_bytes, strict=True)
                    if (known := matches.get(raw_key)) is not None and known.declaration.server_type == type]
            try:
                await values.check(seen)
                await pairs.check([(each.raw_key, each.match) for each in seen])
            except Unavailable as error:
                partial = f"a server went away: {error} ({walk.keys:,} of about {walk.total:,} keys were seen)"
                break
    partial = partial or walk.partial
    if not partial and any(each.types[""] for each in tally.entries.values()):
        partial = "the server does not tell the types of some keys, so they were not judged"
    live = Live(tally, strays_of(tree, server), match is None and not partial, unfinished=bool(partial))
    return live, tuple(filter(None, (partial, *walk.notes))), faults.findings()
