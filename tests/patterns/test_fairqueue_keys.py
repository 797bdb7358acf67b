"""Names of a fair queue's keys: as documented, in one slot, and told apart from the key alone."""

import random
import uuid

import pytest

from keystead.engine import Valkey
from keystead.errors import Ambiguous, DeclarationError
from keystead.keys import Keyspace, Layout, Registry, key_slot
from keystead.patterns.fairqueue import FairQueue
from keystead.patterns.fairqueue_keys import ITEM_ID, Keepalives

from .fairqueue_rooms import KEEPALIVES, NAMES, QUEUES, REGISTRIES, REQUESTS, ROOM, TASKS

NOW = 1_790_000_000.0
TASK_ID = "r_0199f3a2-7d41-7abc-9def-0123456789ab.1.2"


def test_every_documented_key_is_declared_under_its_spelling() -> None:
    patterns = {declaration.pattern for declaration in ROOM}
    for name in NAMES:
        assert patterns >= {
            name, f"{name}:deficit", f"{name}:blacklist:{{tenant_id}}", f"{name}:producecheck",
            f"{name}:producecheck:{{item_id}}", f"{name}:blacklist", f"{name}_{{tenant_id}}",
            f"{name}_{{tenant_id}}:delayed", f"{name}_{{tenant_id}}:leased", f"{name}_{{tenant_id}}:items",
            f"{name}_{{tenant_id}}:dead", f"{name}:sleep", f"{name}:ix:{{field}}", f"{name}:parked", f"{name}:stat",
            f"{name}:conf", f"{name}:bell", f"{name}:parked:order",
        }
    assert "{item_uuid}" in patterns and "reporting:parkhashes:rdr-{session_id}" in patterns
    assert len(patterns) == 8 * 18 + 3


def test_eight_queues_of_a_room_share_one_keepalive_declaration() -> None:
    assert sum(declaration.pattern == "{item_uuid}" for declaration in ROOM) == 1
    for queue in QUEUES:
        for item_id in (queue.new_id(NOW), TASK_ID, str(uuid.uuid4())):
            plain = queue.keys.names(Layout.PLAIN).keepalive(item_id)
            tagged = queue.keys.names(Layout.TAGGED).keepalive(item_id)
            assert tagged == b"{%s}%s" % (queue.name.encode(), plain)
            for layout, key in ((Layout.PLAIN, plain), (Layout.TAGGED, tagged)):
                match = REGISTRIES[layout].resolve(key)
                assert match is not None and match.declaration is KEEPALIVES.key
                assert match.reference.name(layout) == key, "the key alone says whose it is"


def test_an_id_made_by_the_queue_is_its_own_keepalive_and_no_other_is_shared() -> None:
    names = [queue.keys.names(Layout.PLAIN) for queue in QUEUES]
    item_id = TASKS.new_id(NOW)
    assert names[1].keepalive(item_id) == item_id.encode()
    assert len({each.keepalive(item_id) for each in names}) == 8
    assert len({each.keepalive(TASK_ID) for each in names}) == 8


async def test_scripts_and_code_name_the_same_keepalive(valkey: Valkey) -> None:
    rng = random.Random(5)
    for item_id in [TASKS.new_id(NOW), TASK_ID, str(uuid.uuid4()), REQUESTS.new_id(NOW),
                    TASKS.new_id(NOW).upper(), *(ITEM_ID.sample(rng) for _ in range(5)), "x-" * 17 + "01"]:
        await valkey.flushall()
        await TASKS.produce(valkey, "a", item_id, b"x", now=NOW)
        item = await TASKS.take_most_urgent(valkey, "w", now=NOW)
        assert item and (await valkey.get(TASKS.keys.names(valkey.layout).keepalive(item_id))).decode() == item.token


def test_all_keys_of_a_queue_lie_in_one_slot_and_queues_spread() -> None:
    slots = {}
    for queue in QUEUES:
        names = queue.keys.names(Layout.TAGGED)
        keys = [*names.base, names.conf, names.gate, names.parked, names.listed, names.ready % b"acme",
                names.items % b"acme", names.mark % TASK_ID.encode(), names.keepalive(TASK_ID), names.index % b"sig"]
        [slots[queue.name]] = {key_slot(key) for key in keys}
    assert len(set(slots.values())) > 1
    assert key_slot(TASKS.parking.at("session", "s1").name(Layout.TAGGED)) == slots[TASKS.name]


def test_ids_grow_with_time_and_within_one_moment() -> None:
    ids = [TASKS.new_id(NOW + step) for step in range(3)] + [TASKS.new_id(NOW + 3) for _ in range(50)]
    assert ids == sorted(ids)
    assert {uuid.UUID(each).version for each in ids} == {7}
    assert {each[-2:] for each in ids} == {"01"}


def test_two_keepalive_declarations_in_one_room_are_refused() -> None:
    keyspace = Keyspace("two")
    for name in ("one", "other"):
        FairQueue(keyspace, name, item=bytes, purpose="x")
    with pytest.raises(Ambiguous):
        Registry([keyspace])


def test_a_key_that_ends_with_no_queue_is_not_ours() -> None:
    stranger = str(uuid.uuid4())[:-2] + "ff"
    assert REGISTRIES[Layout.TAGGED].resolve(b"{reporting:TaskRequests}" + stranger.encode()) is None
    with pytest.raises(DeclarationError):
        Keepalives(Keyspace("x"), ())
