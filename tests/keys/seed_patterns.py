"""The patterns of real products, declared: what the registry must be able to tell apart."""

import csv
import re
from pathlib import Path

from keystead.keys import (
    Channel,
    Declaration,
    GeoKey,
    IntegerKey,
    Keyspace,
    Kind,
    Lane,
    ListKey,
    LockKey,
    LockKind,
    MapKey,
    Matching,
    OneOf,
    SetKey,
    SortedSetKey,
    StringKey,
)
from keystead.keys.ttl import Exactly

SEEDS = Path(__file__).parent.parent / "data" / "seed_keys.tsv"

# A person's identifier in these products says what it is, so that it cannot be taken for a word of the pattern.
_SUB = Matching("oseh sub", r"oseh_u_[A-Za-z0-9_-]{10,}", examples=("oseh_u_a3Bx-91_Kd2", "oseh_u_0123456789"))
_WORKLOAD = OneOf("reporting-analytic", "reporting-batch")
_KINDS: dict[str, dict[str, Kind]] = {
    "users:{sub}:delete:lock": {"sub": _SUB},
    "users:{sub}:checking_profile_image": {"sub": _SUB},
    "users:{sub}:recent_profile_image_uploads": {"sub": _SUB},
    "stats:retention:{period}:{retained}:{unix_date}": {
        "period": OneOf("0day", "1day", "7day", "30day", "90day"), "retained": OneOf("True", "False"),
    },
}


def rows() -> list[dict[str, str]]:
    with SEEDS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def normalised(pattern: str) -> str:
    """The documented pattern in our spelling: one style of placeholder, and a bare prefix has a rest."""
    pattern = re.sub(r"<([A-Z_]+)>", lambda found: f"{{{found.group(1).lower()}}}", pattern)
    pattern = pattern.replace("{sha256(url)}", "{sha256}")
    return pattern + "{rest}" if pattern.endswith(":") else pattern


def declare(keyspace: Keyspace, row: dict[str, str]) -> Declaration:
    pattern = normalised(row["pattern"])
    kinds = dict(_KINDS.get(pattern, {}))
    if "{workload_type}" in pattern:
        kinds["workload_type"] = _WORKLOAD
    tag = Lane("people", "user_sub", lanes=16) if "{user_sub}" in pattern else None
    facts = {"purpose": row["section"] or "miscellaneous", "kinds": kinds, "tag": tag}
    if row["kind"] == "channel":
        return Channel(keyspace, pattern, bytes, **facts)
    declared = row["type"].split()[0].upper() if row["type"] else ""
    if pattern.endswith("lock"):
        return LockKey(keyspace, pattern, LockKind.PLAIN, ttl=Exactly(60), **facts)
    if declared == "INT":
        return IntegerKey(keyspace, pattern, **facts)
    if declared == "LIST":
        return ListKey(keyspace, pattern, bytes, **facts)
    if declared == "SET":
        return SetKey(keyspace, pattern, str, **facts)
    if declared in ("SORTEDSET", "ZSET"):
        return SortedSetKey(keyspace, pattern, str, member="an id", score="when", **facts)
    if declared == "HASH":
        return MapKey(keyspace, pattern, str, **facts)
    if declared == "GEO":
        return GeoKey(keyspace, pattern, str, member="an event", **facts)
    return StringKey(keyspace, pattern, bytes, **facts)


def seed_keyspace() -> Keyspace:
    keyspace = Keyspace("seeds", tag="seeds")
    for row in rows():
        declare(keyspace, row)
    return keyspace
