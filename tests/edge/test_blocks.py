"""The block list as an operator sees it."""

import pytest

from keystead.edge.addresses import Networks, client_address
from keystead.edge.blocks import Block, Blocks, bucket_of
from keystead.edge.guard import Guard
from keystead.edge.keys import BLOCKED_IP, EDGE, PIN_MOST_SECONDS
from keystead.edge.paging import PageRequest
from keystead.edge.refusals import Blocked
from keystead.errors import Invalid
from keystead.keys import Registry


@pytest.fixture
def blocks(valkey):
    return Blocks(valkey, Registry([EDGE], valkey.layout))


def address(text):
    return client_address(text, (), Networks())


async def test_list_holds_every_block_and_nothing_else(blocks, valkey):
    guard = Guard(valkey)
    await guard.violate(address("203.0.113.7"), 10, "api_ip")
    await guard.violate(address("203.0.113.8"), 3, "api_ip")
    await blocks.pin("2001:db8:1:2::9", lasts_seconds=60)
    await valkey.set("blocked_ip:nobody", "foreign")
    found = (await blocks.page(PageRequest())).items
    assert [(each.address, each.reason, each.violations) for each in found] == [
        ("2001:db8:1:2::", "manual", 0), ("203.0.113.7", "api_ip", 10),
    ]
    assert all(0 < each.seconds_left <= 900 for each in found)


async def test_list_comes_in_pages_by_address(blocks):
    for last in range(9):
        await blocks.pin(f"203.0.113.{last}", lasts_seconds=60)
    seen, cursor = [], None
    for expected in (4, 4, 1):
        page = await blocks.page(PageRequest(4, cursor))
        assert len(page.items) == expected
        seen += [block.address for block in page.items]
        cursor = page.next_cursor
    assert cursor is None and seen == [f"203.0.113.{last}" for last in range(9)]


async def test_unblocked_address_starts_from_nothing(blocks, valkey):
    guard = Guard(valkey)
    stranger = address("203.0.113.7")
    await guard.violate(stranger, 80, "api_ip")
    assert await blocks.unblock("203.0.113.7")
    assert not await blocks.unblock("203.0.113.7")
    async with guard.passage(stranger):
        pass
    assert await valkey.dbsize() == 0


async def test_pin_lasts_exactly_as_said_and_may_shorten(blocks, valkey):
    await blocks.pin("203.0.113.7", lasts_seconds=600)
    await blocks.pin("203.0.113.7", lasts_seconds=60)
    assert (await blocks.page(PageRequest())).items == (Block("203.0.113.7", "manual", pytest.approx(60, abs=1), 0),)
    with pytest.raises(Blocked):
        async with Guard(valkey).passage(address("203.0.113.7")):
            pass


@pytest.mark.parametrize("seconds", [0, -1, PIN_MOST_SECONDS + 1])
async def test_pin_has_bounds(blocks, valkey, seconds):
    with pytest.raises(Invalid, match="a block lasts"):
        await blocks.pin("203.0.113.7", lasts_seconds=seconds)
    assert await BLOCKED_IP.at("203.0.113.7").get(valkey) is None


def test_operator_names_addresses_as_people_write_them():
    assert bucket_of(" ::ffff:203.0.113.7 ") == "203.0.113.7"
    assert bucket_of("2001:db8:1:2:3::9") == "2001:db8:1:2::"
    assert bucket_of("unknown") == "unknown"
    with pytest.raises(Invalid, match="is not an IP address"):
        bucket_of("somewhere")
