"""How many keys each declared pattern has on a live server, and what they weigh."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from keystead.engine import Valkey, scan
from keystead.keys import Declaration, Registry

# Of each pattern the first so many keys are weighed in every walk, and after that one in WEIGHED_ONE_IN.
WEIGHED_FIRST = 50
WEIGHED_ONE_IN = 50
BATCH_KEYS = 500
MEMORY_SAMPLES = 5
# Of what nobody declares so many names are looked at for what they have in common.
LEARNED_KEYS = 20_000
LEARNED_PATTERNS = 100


@dataclass(frozen=True, slots=True)
class PatternCount:
    """Keys of one pattern and their memory; ``estimated`` when not every key was weighed."""

    keys: int = 0
    memory_bytes: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class PatternCounts:
    """One walk over all keys. Keys that came or went meanwhile may be missed or counted.

    ``undeclared_patterns``: what the first names that nobody declares have in common, with how many keys of each.
    """

    keys: int
    memory_bytes: int
    undeclared_keys: int
    undeclared_memory_bytes: int
    by_declaration: Mapping[Declaration, PatternCount] = field(repr=False)
    undeclared_patterns: Mapping[str, int] = field(default_factory=dict, repr=False)

    @classmethod
    def of_patterns(
        cls, declared: Mapping[Declaration, PatternCount], undeclared: PatternCount, looks: Mapping[str, int]
    ) -> "PatternCounts":
        """The counts of each pattern and of what nobody declares, with their sums."""
        return cls(
            keys=undeclared.keys + sum(count.keys for count in declared.values()),
            memory_bytes=undeclared.memory_bytes + sum(count.memory_bytes for count in declared.values()),
            undeclared_keys=undeclared.keys, undeclared_memory_bytes=undeclared.memory_bytes, by_declaration=declared,
            undeclared_patterns=looks,
        )

    def of(self, declaration: Declaration) -> PatternCount:
        """What was found of one declaration; zero if nothing was."""
        return self.by_declaration.get(declaration, PatternCount())


@dataclass(slots=True)
class _Tally:
    keys: int = 0
    weighed: int = 0
    weighed_bytes: int = 0

    def count(self) -> bool:
        """Count one key; says whether it is one of those to weigh."""
        self.keys += 1
        return self.keys <= WEIGHED_FIRST or self.keys % WEIGHED_ONE_IN == 0

    def result(self) -> PatternCount:
        if not self.weighed:
            return PatternCount(self.keys, 0, estimated=self.keys > 0)
        memory_bytes = round(self.weighed_bytes * self.keys / self.weighed)
        return PatternCount(self.keys, memory_bytes, estimated=self.weighed < self.keys)


async def count_patterns(valkey: Valkey, registry: Registry, *, keys_per_second: int) -> PatternCounts:
    """Walk all keys (every primary of a cluster), at most so many per second, and count them by declaration.

    Reads names and the size of a sample of the keys; never a value, and never writes. Memory here and on the server
    stays bounded by the batch and the number of declarations.
    """
    tallies: dict[Declaration | None, _Tally] = {}
    strays: list[bytes] = []
    async for batch in scan(valkey, batch_keys=BATCH_KEYS, keys_per_second=keys_per_second):
        to_weigh: list[tuple[bytes, _Tally]] = []
        for raw_key in batch:
            match = registry.resolve(raw_key)
            tally = tallies.setdefault(None if match is None else match.declaration, _Tally())
            if match is None and len(strays) < LEARNED_KEYS:
                strays.append(raw_key)
            if tally.count():
                to_weigh.append((raw_key, tally))
        await _weigh(valkey, to_weigh)
    found = {declaration: tally.result() for declaration, tally in tallies.items()}
    undeclared = found.pop(None, PatternCount())
    declared: dict[Declaration, PatternCount] = {each: count for each, count in found.items() if each is not None}
    return PatternCounts.of_patterns(declared, undeclared, _looks(strays) if strays else {})


def _looks(strays: Iterable[bytes]) -> dict[str, int]:
    """What names have in common, with how many of each; the most frequent first."""
    from keystead.inventory.learning import Tree, learned_from  # most installations have no strays

    tree = Tree()
    for raw_key in strays:
        tree.add(raw_key, "", -1, 0)
    learned = sorted(learned_from(tree), key=lambda each: -each[1].keys)
    return {named.pattern: group.keys for named, group in learned[:LEARNED_PATTERNS]}


async def _weigh(valkey: Valkey, keys: Iterable[tuple[bytes, _Tally]]) -> None:
    weighing = list(keys)
    if not weighing:
        return
    commands = [("MEMORY", "USAGE", raw_key, "SAMPLES", MEMORY_SAMPLES) for raw_key, _ in weighing]
    sizes = await valkey.call_block(commands, repeat=True)
    for (_, tally), size in zip(weighing, sizes, strict=True):
        # A key that is gone has no size, and a user without the right to ask gets an error; neither is weighed.
        if isinstance(size, int):
            tally.weighed += 1
            tally.weighed_bytes += size
