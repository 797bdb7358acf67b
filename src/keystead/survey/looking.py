"""A live server held against an inventory: one walk, everything counted."""

from keystead.engine import Lookout
from keystead.inventory import Inventory, Matcher, Source
from keystead.inventory.learning import Tree, learned_from
from keystead.survey.drift import Live
from keystead.survey.learn import entry_of
from keystead.survey.stride import Stride
from keystead.survey.tally import Tally
from keystead.survey.walk import Progress, Walk


async def look_at(
    look: Lookout,
    inventory: Inventory,
    *,
    match: str | None = None,
    stride: Stride | None = None,
    progress: Progress | None = None,
) -> tuple[Live, tuple[str, ...]]:
    """Walk every key, or those that fit the glob ``match``: what was seen, and why it is not everything.

    Reads names, types, expiries and sizes, and no value. What no entry explains comes back as patterns.
    """
    walk = Walk(look, match=match, stride=stride, progress=progress)
    tree = Tree()
    tally = Tally(Matcher(inventory).find, tree.add)
    async for page in walk.pages():
        tally.add_page(page)
    reasons = tuple(reason for reason in (walk.partial, *walk.notes) if reason)
    whole = match is None and not walk.partial
    return Live(tally, strays_of(tree, look.name), whole, unfinished=bool(walk.partial)), reasons


def strays_of(tree: Tree, server: str) -> Inventory:
    """What no entry explained, as patterns. The tree should get no more keys after this."""
    source = Source(server)
    return Inventory(server, tuple(entry_of(named, group, {}, source, 1.0) for named, group in learned_from(tree)))
