"""Words become variables where their number and what lies below them says so, and stay words everywhere else."""

import random
import re
from uuid import UUID

import pytest

from keystead.inventory.learning import learned_from
from keystead.inventory.learning.tree import Tree

from .declared_keys import live_keys, registry

NAMES = ["ann", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "mallory", "niaj", "olivia"]


def patterns(*keys: str, types: dict[str, str] | None = None, ttl_ms: int = -1) -> set[str]:
    """The patterns of these keys; the type of a key is that of the first ending in ``types`` that it has."""
    tree = Tree()
    for key in keys:
        kind = next((kind for ending, kind in (types or {}).items() if key.endswith(ending)), "string")
        tree.add(key.encode(), kind, ttl_ms, 50)
    return {named.pattern for named, _ in learned_from(tree)}


def test_names_of_people_are_values() -> None:
    assert patterns(*(f"profile:{name}" for name in NAMES)) == {"profile:{profile}"}


def test_few_words_stay_words() -> None:
    assert patterns("app:version", "app:motd", "app:flags") == {"app:version", "app:motd", "app:flags"}
    assert patterns("stats:users", "stats:orders") == {"stats:users", "stats:orders"}


def test_attributes_of_a_thing_stay_words() -> None:
    keys = [f"user:{number}:{what}" for number in range(20) for what in ("followers", "following", "blocked")]
    assert patterns(*keys) == {f"user:{{user_id}}:{what}" for what in ("followers", "following", "blocked")}


def test_same_keys_below_every_name_make_the_name_a_value() -> None:
    queues = ("mail", "reports", "billing", "exports")
    keys = [f"queue:{name}:{what}" for name in queues for what in ("dead", "todo", "lock")]
    assert patterns(*keys) == {f"queue:{{queue}}:{what}" for what in ("dead", "todo", "lock")}


def test_families_below_a_collection_stay_words() -> None:
    families = ["sms", "email", "push", "links", "touches", "logins"]
    keys = [f"stats:{family}:daily:{end}" for family in families for end in ("20400", "20401", "earliest", "late")]
    assert patterns(*keys) == {f"stats:{family}:daily:{end}" for family in families
                               for end in ("{unix_date}", "earliest", "late")}


def test_enumeration_below_a_value_is_kept_as_one() -> None:
    tree = Tree()
    for number in range(30):
        for status in ("new", "paid", "sent"):
            tree.add(f"order:{number}:status:{status}".encode(), "string", -1, 50)
    ((named, group),) = learned_from(tree)
    assert named.pattern == "order:{order_id}:status:{status}" and group.keys == 90
    assert dict(named.variables)["status"] == "new|paid|sent"


def test_words_that_are_values_elsewhere_are_values_here() -> None:
    queues = ("mail", "reports", "billing", "exports")
    keys = [f"queue:{name}:{what}" for name in queues for what in ("dead", "todo", "lock")]
    assert "outbox:{outbox}" in patterns(*keys, *(f"outbox:{name}" for name in queues))


def test_kinds_that_lead_to_the_same_are_one() -> None:
    rng = random.Random(5)
    ids = [rng.randbytes(4).hex() for _ in range(60)] + ["12345678", "00000001"]
    assert patterns(*(f"job:{each}:log" for each in ids)) == {"job:{job_id}:log"}


def test_few_words_behind_a_noun_that_many_have_are_values() -> None:
    keys = [f"tenant:{name}:{what}" for name in ("acme", "globex", "initech") for what in ("settings", "plan")]
    assert patterns(*keys) == {"tenant:{tenant}:settings", "tenant:{tenant}:plan"}
    assert patterns("rq:queue:default", "rq:queue:low", "rq:queue:mail") == {"rq:queue:{queue}"}


def test_codes_of_languages_are_values() -> None:
    keys = [f"product:{number}:{code}:text" for number in range(20) for code in ("en", "de", "fr", "ja")]
    assert {blank(each) for each in patterns(*keys)} == {"product:{}:{}:text"}


def test_names_of_hosts_with_numbers_are_one_value() -> None:
    hosts = [f"{host}-{pid}-{pid * 7919 % 65536:06x}" for host in ("web", "batch", "cron") for pid in (17, 21, 32)]
    assert {blank(each) for each in patterns(*(f"worker:{host}:alive" for host in hosts))} == {"worker:{}:alive"}


def test_patterns_with_values_in_their_middle_are_not_put_together() -> None:
    keys = [f"user_{number}" for number in range(40)] + [f"user_{number}_posts" for number in range(40)]
    assert patterns(*keys, *(f"order_{number}" for number in range(40))) == {
        "user_{user_id}", "user_{user_id}_posts", "order_{order_id}"}


def test_numbered_words_are_one() -> None:
    assert patterns(*(f"shard{number}" for number in range(1, 9))) == {"shard{shard_id}"}
    assert patterns("api:v1", "api:v2") == {"api:v1", "api:v2"}


def test_number_that_never_varies_belongs_to_the_name() -> None:
    assert patterns(*(f"db:0:user:{number}" for number in range(20))) == {"db:0:user:{user_id}"}


def test_stray_among_values_is_one_of_them() -> None:
    zones = ["America/Los_Angeles", "Europe/Berlin", "Asia/Kolkata", "Etc/GMT+3", "EST5EDT"]
    assert patterns(*(f"zone:{zone}" for zone in zones)) == {"zone:{timezone}"}


@pytest.mark.parametrize(("keys", "pattern"), [
    ([f"celery-task-meta-{UUID(int=n * 7919 ** 9 % 2**128, version=4)}" for n in range(1, 30)],
     "celery-task-meta-{meta_uuid}"),
    ([f"views/products/{n}-20240501101010" for n in range(50)], "views/products/{product_id}"),
    ([f"{{user:{n}}}:cart" for n in range(20)], "{user:{user_id}}:cart"),
    ([f"laravel_cache:{n:040x}" for n in range(16**20, 16**20 + 30)], "laravel_cache:{laravel_cache_sha1}"),
    ([f"otp:+49151{n:08}" for n in range(30)], "otp:{phone}"),
])  # fmt: skip
def test_keys_of_well_known_libraries(keys: list[str], pattern: str) -> None:
    assert patterns(*keys) == {pattern}


def test_no_key_is_lost_whatever_comes() -> None:
    rng = random.Random(9)
    tree = Tree()
    for _ in range(5000):
        tree.add(bytes(rng.choices(b"ab:/_-.{}1\xff\x00@", k=rng.randrange(12))), "string", -1, 1)
    assert sum(group.keys for _, group in learned_from(tree)) == 5000


def blank(pattern: str) -> str:
    return re.sub(r"\{[^{}]*\}", "{}", pattern)


def test_nearly_every_declared_pattern_is_recovered_from_its_keys() -> None:
    declarations = registry()
    for seed in range(3):
        rng = random.Random(seed)
        keys = list(live_keys(declarations, rng, 12))
        rng.shuffle(keys)
        tree = Tree()
        for declaration, raw_key in keys:
            expires = type(declaration.ttl).__name__ != "NoTtl"
            tree.add(raw_key, declaration.server_type or "", 60_000 if expires else -1, 100)
        learned = {blank(named.pattern) for named, _ in learned_from(tree)}
        declared = {blank(declaration.template.spelling) for declaration, _ in keys}
        assert len(declared & learned) >= 0.95 * len(declared), sorted(declared - learned)
        assert len(learned) <= 1.1 * len(declared), "and hardly anything else is found"


def test_numbered_words_below_numbered_words_are_values() -> None:
    keys = [f"typing:r{number}:u{number}" for number in range(50)]
    assert patterns(*keys) == {"typing:r{r_id}:u{u_id}"}
    keys = [f"seat:hall{number}:row{number % 3}:x" for number in range(9)] + ["seat:open", "seat:closed"]
    assert len(patterns(*keys)) == 3


def test_numbered_words_that_lead_elsewhere_stay_words() -> None:
    keys = ["v1:users", "v2:orders", "v3:carts"]
    assert patterns(*keys) == set(keys)
