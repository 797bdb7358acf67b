"""What happens in the town, planned: the same for one seed, bounded, and soon enough to be seen."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from keystead.demo import program
from keystead.demo.plan import FIRST_PEOPLE, MOST_PEOPLE, NOISY, QUIET, Illness, errands, growth_pause, illnesses
from keystead.jobs import ProgramJobs
from keystead.messaging.sandbox.models import Faults

_seeds = st.integers(0, 2**31)


@given(_seeds)
def test_the_same_seed_plans_the_same(seed: int) -> None:
    assert list(islice(errands(seed), 200)) == list(islice(errands(seed), 200))
    assert list(islice(illnesses(seed), 20)) == list(islice(illnesses(seed), 20))


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
