"""Pausing channels, and letting them go on."""

from keystead.cli.message_channels import channels, count_waiting, hold_sending

from .command import keystead


async def test_every_channel_is_held(two_lanes):
    await hold_sending(two_lanes)
    for channel in channels():
        assert len(two_lanes.lanes_of(channel.paused_key)) == 2
        for lane in two_lanes.lanes_of(channel.paused_key):
            assert await channel.paused_key.at().is_raised(lane)
    assert await count_waiting(two_lanes) == {"touches": 0, "push": 0, "sms": 0, "email": 0}


async def test_one_channel_is_paused_and_goes_on(valkey, valkey_server):
    import asyncio

    told = await asyncio.to_thread(keystead, "message", "pause", "sms", "--url", valkey_server.url)
    assert told.code == 0 and "keystead message resume sms" in told.err
    assert {raw async for raw in valkey.scan_iter()} == {b"sms:paused"}
    told = await asyncio.to_thread(keystead, "message", "resume", "all", "--url", valkey_server.url)
    assert "goes on: sms" in told.err
    told = await asyncio.to_thread(keystead, "message", "resume", "sms", "--url", valkey_server.url)
    assert "was not paused" in told.err
