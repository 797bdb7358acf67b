"""The sandbox as a server within this process."""

import signal

import aiohttp

from keystead.messaging.sandbox.serving import listening, serving, url_of


async def test_it_answers_while_the_block_runs_and_not_after(sandbox):
    made = listening()
    url = url_of(made)
    async with aiohttp.ClientSession() as http:
        async with serving(sandbox, made), http.get(url + "/sandbox/counts") as response:
            assert response.status == 200
        try:
            async with http.get(url + "/sandbox/counts"):
                raise AssertionError("it still answers")
        except aiohttp.ClientError:
            pass


async def test_several_can_be_served_at_once(sandbox):
    first, second = listening(), listening()
    async with serving(sandbox, first), serving(sandbox, second), aiohttp.ClientSession() as http:
        for made in (first, second):
            async with http.get(url_of(made) + "/sandbox/counts") as response:
                assert response.status == 200


async def test_signals_stay_with_whoever_owns_the_process(sandbox):
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    made = listening()
    async with serving(sandbox, made), aiohttp.ClientSession() as http:
        async with http.get(url_of(made) + "/sandbox/counts") as response:
            assert response.status == 200
        assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
