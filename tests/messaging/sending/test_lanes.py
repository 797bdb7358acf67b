"""All processes of a cluster agree on the number of lanes."""

import pytest

from keystead.engine import Valkey, connect
from keystead.errors import Invalid
from keystead.messaging.sending import agree_on_lanes
from keystead.messaging.sending.keys import LANES


@pytest.mark.cluster
async def test_who_was_told_another_number_is_refused(two_lanes: Valkey, valkey_cluster) -> None:
    for _ in range(2):
        await agree_on_lanes(two_lanes)
    other = await connect(valkey_cluster.url, lanes=3)
    try:
        with pytest.raises(Invalid, match=r"messaging.lanes 2, and this process was told 3"):
            await agree_on_lanes(other)
        assert await other.delete("{msg}msg:lanes") == 1
        await agree_on_lanes(other)
    finally:
        await other.aclose()


async def test_one_server_has_no_lanes_to_agree_on(valkey: Valkey) -> None:
    await agree_on_lanes(valkey)
    assert await LANES.at().get(valkey) is None
