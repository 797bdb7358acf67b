"""How a channel stands with its provider, as the breaker itself would say."""

from keystead.messaging.sending import standing
from keystead.messaging.sending.standing import judged
from keystead.patterns import FailureShare

from .post import LETTERS

NOW = 1_800_000_000.0


def test_the_breaker_is_judged_without_asking_it():
    trips = FailureShare(50, of_calls=4)
    assert judged(["s:1", "s:2", "f:3", "s:4"], None, trips) == ("closed", 1)
    assert judged(["f:1", "f:2", "s:3"], None, trips) == ("closed", 2), "too few calls to judge by"
    assert judged(["f:1", "f:2", "s:3", "s:4"], None, trips) == ("open", 2)
    assert judged(["f:1", "f:2", "s:3", "s:4"], "call_1", trips) == ("probing", 2)
    assert judged([], "opened", trips) == ("open", 0), "it rests though its calls have left the window"


async def test_a_provider_that_fails_opens_the_breaker_and_looking_changes_nothing(server):
    breaker = LETTERS.breaker.at()
    stands = await standing(server, LETTERS, NOW)
    assert (stands.breaker, stands.calls, stands.failed, stands.is_sending) == ("closed", 0, 0, True)
    for number in range(20):
        permit = await breaker.ask(server, now=NOW + number)
        await breaker.record(server, permit, went_well=number % 4 == 0, now=NOW + number)
    for _ in range(3):
        stands = await standing(server, LETTERS, NOW + 20)
        assert stands.breaker == "open" and stands.failed > stands.calls / 2 and not stands.is_sending


async def test_a_pause_by_hand_is_told_apart_from_a_rest_that_ends_by_itself(server):
    await LETTERS.pause(server)
    assert (await standing(server, LETTERS, NOW)).is_held
    await LETTERS.resume(server)
    async with server.pipeline(transaction=False) as pipeline:
        LETTERS.pause_for(pipeline, 600.0)
        await pipeline.execute()
    stands = await standing(server, LETTERS, NOW)
    assert not stands.is_held and stands.paused and 500 < (stands.paused_seconds or 0) <= 600
