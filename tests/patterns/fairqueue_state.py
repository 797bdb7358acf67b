"""What the server really holds of a fair queue, read key by key, and the invariants that must hold of it."""

from dataclasses import dataclass
from typing import Any

from keystead.engine import Valkey
from keystead.patterns.fairqueue import FairQueue


@dataclass
class State:
    ring: list[str]
    credit: dict[str, float]
    debts: dict[str, tuple[float, int]]
    asleep: dict[str, int]
    places: dict[str, dict[str, str]]  # shard -> id -> place
    attempts: dict[str, int]
    stat: dict[str, int]
    bodies: dict[str, set[str]]
    turn: str | None


async def read_state(valkey: Valkey, queue: FairQueue[Any], shards: list[str]) -> State:
    names = queue.keys.names(valkey.layout)
    ring, deficit, sleep, stat, _ = names.base
    fields = {key.decode(): value.decode() for key, value in (await valkey.hgetall(deficit)).items()}
    turn = fields.pop("!turn", None)
    debts = {}
    for name in [name for name in fields if name.startswith("~")]:
        owed, lapses = fields.pop(name).split(" ")
        debts[name[1:]] = float(owed), int(lapses)
    places: dict[str, dict[str, str]] = {}
    bodies: dict[str, set[str]] = {}
    attempts: dict[str, int] = {}
    parked = [member.decode().split("\0") for member in await valkey.zrange(names.parked, 0, -1)]
    order = [member.decode().split("\0") for member in await valkey.zrange(names.order, 0, -1)]
    assert sorted((shard, item_id, park) for park, _, item_id, shard in order) == sorted(map(tuple, parked))
    for shard in shards:
        found: dict[str, str] = {}
        for place in ("ready", "delayed", "leased", "dead"):
            for member in await valkey.zrange(getattr(names, place) % shard.encode(), 0, -1):
                assert member.decode() not in found, "an item must be in one place"
                found[member.decode()] = place
        for owner, item_id, _ in parked:
            if owner == shard:
                assert item_id not in found, "an item must be in one place"
                found[item_id] = "parked"
        places[shard] = found
        items = {key.decode(): value for key, value in (await valkey.hgetall(names.items % shard.encode())).items()}
        bodies[shard] = {name for name in items if "#" not in name and name != "!parked"}
        attempts |= {name[:-2]: int(value) for name, value in items.items() if name.endswith("#a")}
        assert int(items.get("!parked", 0)) == sum(owner == shard for owner, _, _ in parked)
    return State(
        ring=[each.decode() for each in await valkey.lrange(ring, 0, -1)],
        credit={name: float(value) for name, value in fields.items()}, debts=debts,
        asleep={member.decode(): int(score) for member, score in await valkey.zrange(sleep, 0, -1, withscores=True)},
        places=places, attempts=attempts, bodies=bodies, turn=turn,
        stat={key.decode(): int(value) for key, value in (await valkey.hgetall(stat)).items()},
    )


def check_invariants(state: State) -> None:
    """Invariants 1, 2 and 6 of a queue at rest between two calls."""
    for shard, found in state.places.items():
        assert set(found) == state.bodies[shard], f"{shard}: every item has one body, and every body an item"
        if set(found.values()) & {"ready", "delayed", "leased"}:
            assert shard in state.ring or shard in state.asleep, f"{shard} has items and nobody will look"
    assert len(set(state.ring)) == len(state.ring), "a shard stands in the ring once"
    assert set(state.ring) == set(state.credit), "a shard has credit if and only if it is in the ring"
    assert not set(state.ring) & set(state.asleep), "no shard is in the ring and asleep"
    assert state.turn is None or state.turn == state.ring[0], "the half-used turn belongs to the head of the ring"
    for place in ("ready", "delayed", "leased", "parked", "dead"):
        counted = sum(where == place for found in state.places.values() for where in found.values())
        assert state.stat.get(place, 0) == counted, f"the count of {place} items"
