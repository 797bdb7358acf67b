"""How many keys each pattern has at one moment, kept in a file, and how two moments or two servers differ."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from keystead.engine import Lookout
from keystead.errors import Invalid
from keystead.inventory import Entry, Inventory, Note, Observation, read_inventory, shape, write_inventory
from keystead.survey.learn import learn
from keystead.survey.looking import look_at
from keystead.survey.stride import Stride
from keystead.survey.tally import NEVER, EntryTally
from keystead.survey.walk import Progress

FORMAT = 1
LARGEST_FILE_BYTES = 200 * 1024 * 1024
_NOTHING = Observation()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Patterns with what was observed of each, at an instant (unix seconds). ``inventory.partial`` as ever."""

    at: float
    inventory: Inventory

    @property
    def server(self) -> str:
        return self.inventory.name


async def take(
    look: Lookout,
    at: float,
    *,
    inventory: Inventory | None = None,
    match: str | None = None,
    stride: Stride | None = None,
    progress: Progress | None = None,
    values: bool = False,
) -> Snapshot:
    """Look at every key now. Counted by the patterns of ``inventory``, and what fits none of them as it looks.

    Without an inventory all patterns are learned. Two snapshots can be compared best if the second one is taken with
    the inventory of the first.
    """
    if inventory is None:
        learned = await learn(look, match=match, sample=10**12, stride=stride, progress=progress, values=values)
        return Snapshot(at, learned)
    live, reasons = await look_at(look, inventory, match=match, stride=stride, progress=progress)
    entries = [replace(entry, observed=_observed(live.tally.entries.get(entry.pattern)))
               for entry in inventory.entries if entry.kind != "channel"]
    return Snapshot(at, Inventory(
        look.name, (*entries, *(stray for stray in live.strays.entries if stray.pattern)),
        tuple(Note(says) for says in reasons), reasons[0] if live.unfinished else "",
    ))


def _observed(tally: EntryTally | None) -> Observation:
    if tally is None:
        return _NOTHING
    return Observation(
        keys=tally.keys, memory_bytes=tally.memory_bytes, sampled=tally.keys, types=tuple(tally.types.most_common()),
        without_expiry=tally.ttls[NEVER], largest_bytes=tally.largest_bytes,
    )


def write_snapshot(snapshot: Snapshot, path: Path) -> None:
    """Keep a snapshot in a file, as JSON. Refuses with ``Invalid`` if it cannot be written."""
    kept = {"keystead_snapshot": FORMAT, "at": snapshot.at} | json.loads(write_inventory(snapshot.inventory, "json"))
    try:
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise Invalid(f"{path} cannot be written: {error.strerror}") from error


def read_snapshot(path: Path) -> Snapshot:
    """Read it back. An inventory with observations will do as well; its instant is that of the file."""
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise Invalid(f"{path} is too large to be a snapshot")
        at = path.stat().st_mtime
        if path.suffix == ".json":
            raw = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(raw, dict) or raw.get("keystead_snapshot", FORMAT) != FORMAT:
                raise Invalid(f"{path} is no snapshot that this version can read")
            at = float(raw.pop("at", at))
            if raw.pop("keystead_snapshot", None) is not None and raw.get("keys") == []:
                return Snapshot(at, Inventory(str(raw.get("inventory", {}).get("name", path))))  # of an empty server
            inventory = read_inventory(json.dumps(raw), name=str(path), format="json")
        else:
            inventory = read_inventory(path)
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise Invalid(f"{path} is no snapshot: {error}") from error
    if not any(entry.observed is not None for entry in inventory.entries):
        raise Invalid(f"{path} holds no observations of a server; take a snapshot with: keystead keys top --save FILE")
    return Snapshot(at, inventory)


@dataclass(frozen=True, slots=True)
class Growth:
    """One pattern at two moments."""

    pattern: str
    keys_before: int
    keys_now: int
    memory_before: int
    memory_now: int
    minutes: float

    @property
    def keys_per_minute(self) -> float:
        return (self.keys_now - self.keys_before) / self.minutes

    @property
    def memory_per_minute(self) -> float:
        return (self.memory_now - self.memory_before) / self.minutes


def growth(before: Snapshot, now: Snapshot) -> list[Growth]:
    """Every pattern of either, those that grow most in memory first, and of those that do not grow the largest."""
    minutes = max(now.at - before.at, 0.001) / 60
    pairs = _pairs(before.inventory, now.inventory)
    grown = [Growth((new or old).pattern, _seen(old).keys, _seen(new).keys, _seen(old).memory_bytes,  # type: ignore[union-attr]
                    _seen(new).memory_bytes, minutes) for old, new in pairs]
    return sorted(grown, key=lambda each: (-(each.memory_now - each.memory_before), -(each.keys_now - each.keys_before),
                                           -each.memory_now, each.pattern))


@dataclass(frozen=True, slots=True)
class Difference:
    """One pattern on two sides. ``says`` are what is not the same about it, numbers apart; empty if nothing is."""

    pattern: str
    first: Observation | None
    second: Observation | None
    says: tuple[str, ...]


def differences(first: Inventory, second: Inventory) -> list[Difference]:
    """Every pattern of either side, in the order of their names."""
    found = []
    for one, other in _pairs(first, second):
        here = one.observed if one is not None and one.observed is not None and one.observed.keys else None
        there = other.observed if other is not None and other.observed is not None and other.observed.keys else None
        if here is None and there is None:
            continue
        pattern = (one or other).pattern  # type: ignore[union-attr]
        found.append(Difference(pattern, here, there, _unlike(here, there)))
    return sorted(found, key=lambda each: each.pattern)


def _unlike(here: Observation | None, there: Observation | None) -> tuple[str, ...]:
    if here is None:
        return ("only on the second side",)
    if there is None:
        return ("only on the first side",)
    says = []
    types = [", ".join(sorted(kind for kind, _ in each.types if kind)) for each in (here, there)]
    if types[0] != types[1] and all(types):
        says.append(f"type {types[0]} here, {types[1]} there")
    never = [each.without_expiry / each.keys for each in (here, there)]
    if (never[0] > 0.99 and never[1] < 0.01) or (never[1] > 0.99 and never[0] < 0.01):
        says.append("never expires here, expires there" if never[0] > never[1] else "expires here, never expires there")
    if here.shape and there.shape and here.shape.partition(":")[0] != there.shape.partition(":")[0]:
        says.append(f"values: {here.shape.partition(':')[0]} here, {there.shape.partition(':')[0]} there")
    return tuple(says)


def _pairs(first: Inventory, second: Inventory) -> list[tuple[Entry | None, Entry | None]]:
    """The entries of the same pattern, whatever its variables are called."""
    others = {shape(entry.pattern): entry for entry in second.entries}
    pairs: list[tuple[Entry | None, Entry | None]] = [
        (entry, others.pop(shape(entry.pattern), None)) for entry in first.entries]
    return pairs + [(None, entry) for entry in others.values()]


def _seen(entry: Entry | None) -> Observation:
    return entry.observed or _NOTHING if entry is not None else _NOTHING
