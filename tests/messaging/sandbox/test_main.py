"""The sandbox as a process of its own, which is killed and loses nothing that it accepted."""

import asyncio
import sys

import aiohttp
import pytest

from keystead.messaging.sandbox.__main__ import arguments
from keystead.messaging.sandbox.keys import DUE
from keystead.messaging.sandbox.outbox import Outbox

from .conftest import BASIC, MESSAGES, until


async def start(url, *more):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "keystead.messaging.sandbox", "--valkey-url", url, "--account-sid", "AC0",
        "--auth-token", "secret", "--key-bits", "1024", *more, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        return process, (await process.stdout.readline()).decode().strip()


async def test_what_a_killed_process_accepted_is_told_by_the_next(valkey, valkey_server, listener):
    process, url = await start(valkey_server.url)
    async with aiohttp.ClientSession(headers=BASIC) as http:
        async with http.post(url + "/sandbox/faults", json={"final_only": True, "receipt_seconds": 0.5}) as response:
            assert response.status == 200

        async def send(number):
            form = {"To": f"+1555000{number:03}", "Body": "x", "From": "+15550009", "StatusCallback": listener.url}
            async with http.post(url + "/sandbox" + MESSAGES, data=form) as response:
                return response.status

        assert await asyncio.gather(*(send(number) for number in range(30))) == [201] * 30
    process.kill()
    await process.wait()
    process, _ = await start(valkey_server.url)
    try:
        async def all_told():
            return await DUE.size(valkey) == 0

        await until(all_told, 60)
        assert len([message async for message in Outbox(valkey).all()]) == 30
        assert len(listener.got) >= 30
    finally:
        process.terminate()
        assert await process.wait() == 0, "a signal ends it in order"


def test_it_needs_to_know_its_server(capsys):
    with pytest.raises(SystemExit):
        arguments([])
    assert "--valkey-url" in capsys.readouterr().err
    assert arguments(["--valkey-url", "valkey://x"]).port == 0
