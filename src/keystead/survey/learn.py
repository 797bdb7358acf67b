"""A draft inventory from nothing but a live server: patterns, types, expiries, sizes and what lies in the values."""

from collections.abc import Callable, Sequence

from keystead.engine import ErrorReply, KeyMoved, Lookout
from keystead.errors import Unavailable
from keystead.inventory import Certainty, Entry, Expiry, Fact, Inventory, Note, Observation, Rule, Source
from keystead.inventory.learning import Group, Learned, Named, Tree, is_word, learned_from
from keystead.keys import Command, Reply, spell_key
from keystead.survey.stride import Stride
from keystead.survey.value_shapes import probe, shape
from keystead.survey.walk import Walk

SAMPLE_KEYS = 1_000_000
MOST_PATTERNS_READ = 5000
EXAMPLES = 3
QUESTIONS_AT_ONCE = 64
# Lengths of time that people choose. What is left of an expiry is a little less than one of them.
NICE_SECONDS = (1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200,
                10800, 14400, 21600, 28800, 43200, 86400, 172800, 259200, 345600, 432000, 604800, 1209600, 1814400,
                2592000, 5184000, 7776000, 15552000, 31536000, 63072000)
ENOUGH_TO_GUESS = 5
_PERSONAL_WORDS = ("email", "phone", "first_name", "last_name", "full_name", "address", "birthday", "ip_address")


async def learn(
    look: Lookout,
    *,
    match: str | None = None,
    sample: int = SAMPLE_KEYS,
    values: bool = True,
    stride: Stride | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Inventory:
    """Look at up to ``sample`` keys and say which patterns they form, with what was observed of each.

    Without ``values`` no value is read. Names of variables are guesses; counts are scaled up when not all keys were
    looked at. Memory here is bounded whatever the number of different names.
    """
    walk = Walk(look, match=match, most_keys=sample, stride=stride, progress=progress)
    tree = Tree()
    async for page in walk.pages():
        for raw_key, type, ttl_ms, memory in zip(page.keys, page.types, page.ttls_ms, page.memory_bytes, strict=True):
            tree.add(raw_key, type, ttl_ms, memory)
    learned = learned_from(tree)
    samples = await read_samples(look, learned) if values else {}
    return _inventory(look, walk, tree, learned, samples, whole=match is None)


Samples = dict[bytes, tuple[str, Reply]]


async def read_samples(look: Lookout, learned: Learned) -> Samples:
    """Encoding and a bounded part of the value of a few keys of each pattern; what is refused or gone is left out."""
    wanted = [example for _, group in learned[:MOST_PATTERNS_READ] for example in group.examples[:EXAMPLES]]
    samples: Samples = {}
    for start in range(0, len(wanted), QUESTIONS_AT_ONCE):
        questions: list[Command] = []
        asked: list[bytes] = []
        for raw_key, type, memory in wanted[start : start + QUESTIONS_AT_ONCE]:
            reading = probe(raw_key, type, memory)
            if len(raw_key) <= 64 * 1024:
                questions += [("OBJECT", "ENCODING", raw_key), reading or ("PING",)]
                asked.append(raw_key)
        for node in look.nodes:
            try:
                replies = await node.call_block(questions, repeat=True)
            except (Unavailable, ErrorReply):
                return samples
            for raw_key, encoding, value in zip(asked, replies[::2], replies[1::2], strict=True):
                if isinstance(encoding, KeyMoved) or isinstance(value, KeyMoved) or encoding is None:
                    continue
                known = encoding.decode(errors="replace") if isinstance(encoding, bytes) else ""
                samples[raw_key] = known, None if isinstance(value, Exception) or value == b"PONG" else value
    return samples


def _inventory(look: Lookout, walk: Walk, tree: Tree, learned: Learned, samples: Samples, *, whole: bool) -> Inventory:
    source = Source(look.name)
    looked_at_all = not whole or walk.scanned >= walk.total or not walk.keys
    scale = 1.0 if looked_at_all else walk.total / walk.keys
    notes = [Note(says, source) for says in walk.notes]
    notes.append(Note("learned from live keys: names of variables and times of expiry are guesses", source))
    if scale > 1:
        notes.append(Note(f"{walk.keys:,} of {walk.total:,} keys were looked at; counts are scaled up", source))
    if tree.crowded:
        notes.append(Note("there were too many different names to tell all patterns apart; the rest is put together",
                          source))
    if learned and not learned[0][0].pattern:  # no inventory can name it
        notes.append(Note("there is a key with an empty name; it is left out", source))
        learned = learned[1:]
    entries = tuple(entry_of(named, group, samples, source, scale) for named, group in learned)
    return Inventory(look.name, entries, tuple(notes), walk.partial)


def entry_of(named: Named, group: Group, samples: Samples, source: Source, scale: float) -> Entry:
    """What was seen of one pattern; counts are multiplied by ``scale``."""
    kinds = [(kind, count) for kind, count in group.types.most_common() if kind]
    looked = [(samples[key], kind) for key, kind, _ in group.examples if key in samples]
    described = shape(kinds[0][0], [value for (_, value), kind in looked if kind == kinds[0][0]]) if kinds else ""
    encodings: dict[str, int] = {}
    for (encoding, _), _ in looked:
        if encoding:
            encodings[encoding] = encodings.get(encoding, 0) + 1
    timed = group.with_expiry > 0
    weight = group.memory_bytes / group.weighed * group.keys * scale if group.weighed else 0
    return Entry(
        pattern=named.pattern,
        type=_type(kinds, described, source),
        ttl=_ttl(group, source),
        payload=Fact(described, Certainty.IMPLIED, source) if described.startswith("json") else None,
        personal=_personal(named, described, source),
        variables=named.variables,
        examples=tuple(spell_key(key[:200]) for key, _, _ in group.examples[:EXAMPLES]),
        section=_section(named.pattern),
        sources=(source,),
        extra=tuple((f"values of {{{called}}}", looks) for called, looks in named.looks if looks not in
                    dict(named.variables).values()),
        observed=Observation(
            keys=round(group.keys * scale), memory_bytes=round(weight), sampled=group.keys, types=tuple(kinds),
            encodings=tuple(encodings.items()), without_expiry=round(group.without_expiry * scale),
            shortest_seconds=group.shortest_ms / 1000 if timed else None,
            longest_seconds=group.longest_ms / 1000 if timed else None, shape=described,
            largest_bytes=group.largest_bytes,
        ),
        uncertain="" if group.keys > 1 or not named.variables else "there is one such key only",
    )


def _section(pattern: str) -> tuple[str, ...]:
    first = next((part for part in pattern.replace("/", ":").split(":") if part and is_word(part)), "")
    return (first,) if first and "{" not in first else ()


def _type(kinds: Sequence[tuple[str, int]], described: str, source: Source) -> Fact[str] | None:
    if not kinds:
        return None
    kind = kinds[0][0]
    words = ", ".join(f"{each} {count:,}" for each, count in kinds) if len(kinds) > 1 else ""
    certainty = Certainty.STATED if len(kinds) == 1 else Certainty.GUESSED
    if kind == "string":
        finer = {"integer": "integer", "number": "float", "hyperloglog": "hyperloglog"}.get(described)
        finer = finer or ("json" if described.startswith("json") else None)
        if finer is not None:
            return Fact(finer, Certainty.IMPLIED if len(kinds) == 1 else certainty, source, words)
    return Fact({"ReJSON-RL": "rejson"}.get(kind, kind), certainty, source, words)


def _ttl(group: Group, source: Source) -> Fact[Expiry] | None:
    """What the times that are left say of the rule: the longest of many is nearly the whole of it."""
    if not group.with_expiry:
        return Fact(Expiry(Rule.NONE), Certainty.IMPLIED, source) if group.without_expiry else None
    longest = group.longest_ms / 1000
    words = f"at most {longest:,.0f} s left on {group.with_expiry:,} keys"
    if group.without_expiry:
        return Fact(Expiry(Rule.SOME, words=f"{group.without_expiry:,} of the keys never expire"), Certainty.GUESSED,
                    source, words)
    likely = next((nice for nice in NICE_SECONDS if nice >= longest), None)
    if group.with_expiry >= ENOUGH_TO_GUESS and likely is not None and longest >= 0.75 * likely:
        return Fact(Expiry(Rule.AT_MOST, float(likely)), Certainty.GUESSED, source, words)
    return Fact(Expiry(Rule.SOME), Certainty.IMPLIED, source, words)


def _personal(named: Named, described: str, source: Source) -> Fact[bool] | None:
    if named.personal:
        return Fact(True, Certainty.GUESSED, source, f"variable {named.personal}")
    found = next((word for word in _PERSONAL_WORDS if word in described), None)
    return Fact(True, Certainty.GUESSED, source, f"a value holds {found}") if found is not None else None
