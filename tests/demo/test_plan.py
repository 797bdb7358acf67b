"""What happens in the town, planned: the same for one seed, bounded, and soon enough to be seen."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.demo import program
from keystead.demo.plan import (
    FIRST_PEOPLE,
    MOST_PEOPLE,
    NOISY,
    QUIET,
    Illness,
    errands,
    growth_pause,
    illnesses,
    look_after,
    rounds,
)
from keystead.jobs import ProgramJobs
from keystead.messaging.sandbox.models import Faults

_seeds = st.integers(0, 2**31)


@given(_seeds)
def test_the_same_seed_plans_the_same(seed: int) -> None:
    assert list(islice(errands(seed), 200)) == list(islice(errands(seed), 200))
    assert list(islice(illnesses(seed), 20)) == list(islice(illnesses(seed), 20))
    assert list(islice(rounds(seed), 20)) == list(islice(rounds(seed), 20))


@given(_seeds)
def test_errands_are_jobs_that_the_program_has(seed: int) -> None:
    book = ProgramJobs.of([program]).book
    for errand in islice(errands(seed), 600):
        job = book.get(errand.job)
        assert job is not None
        job.check(errand.kwargs)
        assert errand.at >= 0


@given(_seeds)
def test_a_stranger_sees_all_of_it_soon(seed: int) -> None:
    early = [errand for errand in islice(errands(seed), 900) if errand.at < 10]
    assert {errand.tenant for errand in early} & set(QUIET)
    assert sum(errand.tenant == NOISY for errand in early) > 100
    assert any(errand.progress for errand in early)
    first: Illness = next(illnesses(seed))
    assert first.begins < 90


@given(_seeds)
def test_quiet_tenants_stay_quiet(seed: int) -> None:
    minute = [errand for errand in islice(errands(seed), 3000) if errand.at < 60]
    counts = {tenant: sum(errand.tenant == tenant for errand in minute) for tenant in QUIET}
    assert max(counts.values()) < 40 < sum(errand.tenant == NOISY for errand in minute)
    assert len(minute) < 1000


@given(_seeds)
def test_never_two_providers_are_ill_at_once_and_each_is_mended(seed: int) -> None:
    ends = 0.0
    for illness in islice(illnesses(seed), 30):
        assert ends < illness.begins < illness.ends
        Faults(**illness.faults)
        ends = illness.ends


def test_the_town_grows_ever_more_slowly() -> None:
    pauses = [growth_pause(people) for people in range(FIRST_PEOPLE, MOST_PEOPLE)]
    assert pauses == sorted(pauses)
    assert pauses[0] < 8 < pauses[-1] < 60


def test_operator_leaves_the_newest_retries_what_others_mended_and_drops_the_rest() -> None:
    errors = ["GiveUp: x"] * 6 + ["CardRefused: no", "WarehouseSilent: x", "GiveUp: y", "ConnectionError: z"]
    letters = [{"uid": f"u{number}", "error": error} for number, error in enumerate(errors)]
    care = look_after([*letters, {"problem": "no job", "error": "no dead letter: x"}])
    assert (care.retried, care.dropped) == (["u7", "u9"], ["u6", "u8"])
    assert not look_after(letters[:6]).dropped


@pytest.mark.parametrize("seed", [1, 7])
def test_what_failed_comes_and_goes_and_stays_bounded(seed: int) -> None:
    """Two hours in which every errand fails for good that can."""
    hours, dead, sizes = 2 * 3600.0, list[str](), list[int]()
    failing = ((one.at, one.job) for one in errands(seed) if one.job in KINDS)
    when, job = next(failing)
    for look in rounds(seed):
        while when < min(look, hours):
            dead.insert(0, KINDS[job])
            when, job = next(failing)
        sizes.append(len(dead))
        if look >= hours:
            break
        care = look_after([{"uid": str(number), "error": error} for number, error in enumerate(dead)])
        gone = {*care.retried, *care.dropped}
        dead = [error for number, error in enumerate(dead) if str(number) not in gone]
        sizes.append(len(dead))
    assert max(sizes) < 60 and min(sizes[1:]) == 6 and len(sizes) > 30


KINDS = {"demo.charge_card": "CardRefused: no", "demo.sync_stock": "WarehouseSilent: no",
         "demo.fetch_exchange_rates": "ConnectionError: no", "demo.read_invoice": "GiveUp: no"}
