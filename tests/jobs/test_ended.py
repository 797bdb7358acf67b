"""Jobs that ended lately: every kind of end is told, little is kept, and nothing that is anybody's business."""

import asyncio
import time

import pytest

from keystead.clock import Pace, SystemClock
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Invalid
from keystead.jobs import NEVER, GiveUp, Inspection, JobBook, Jobs
from keystead.jobs.ended import ENDED, MOST_LISTED, MOST_NOTED, EndedNotes
from keystead.jobs.endings import Ending
from keystead.jobs.keys import ENDED_LATELY, ENDED_SECONDS, WORKER, Queue
from keystead.jobs.models import EndedJob, JobRecord

from .beside import at_work, left_keys, until

SECRET = "ada@example.org"


def record(number: int = 0, **facts) -> JobRecord:
    return JobRecord(**{"name": "t.note", "kwargs": {"to": SECRET}, "queued_at": 900.0, "uid": f"u{number}", **facts})


def notes(now: float = 1000.0, **how) -> EndedNotes:
    class Clock:
        def now(self) -> float:
            return now

    return EndedNotes("w1", Clock(), **how)


async def tell(server: Valkey, number: int, status: str = "succeeded", *, now: float, queue: str = "", **facts) -> None:
    told = notes(now)
    told.note(record(number, **facts), queue, Ending(status, attempts=2, seconds=0.5))
    await told.hand_over(server)


@pytest.fixture
def inspection(request: pytest.FixtureRequest) -> Inspection:
    name = "server" if "server" in request.fixturenames else "valkey"
    return Inspection(request.getfixturevalue(name), SystemClock())


def book() -> JobBook:
    async def note(to: str = "") -> int:
        return 1

    async def fail(to: str = "") -> None:
        raise ValueError(f"no mail for {to}")

    async def useless() -> None:
        raise GiveUp(SECRET)

    async def hold() -> None:
        await asyncio.Event().wait()

    found = JobBook()
    found.register("t.note", note)
    found.register("t.fail", fail, retry=NEVER)
    found.register("t.useless", useless)
    found.register("t.hold", hold)
    found.register("t.kept", note, keep_seconds=60)
    return found


async def listed(inspection: Inspection, count: int, **which) -> dict[str, EndedJob]:
    """What is listed, by uid, once there are so many."""
    async def enough() -> bool:
        return (await inspection.ended(**which)).total >= count

    await until(enough)
    return {job.uid: job for job in (await inspection.ended(**which)).jobs}


async def test_every_kind_of_end_is_told(server: Valkey, inspection: Inspection) -> None:
    jobs = Jobs(server, book())
    plain = (await jobs.enqueue("t.note", to=SECRET)).uid
    kept = (await jobs.options(queue="mail").enqueue("t.kept")).uid
    failed = (await jobs.enqueue("t.fail", to=SECRET)).uid
    useless = (await jobs.enqueue("t.useless")).uid
    unknown = (await Jobs(server).enqueue("t.unknown")).uid
    running = await jobs.enqueue("t.hold")
    queued = await jobs.enqueue("t.note")
    parent = await jobs.options(keep_seconds=60).enqueue("t.fail")
    child = (await jobs.options(after=[parent]).enqueue("t.note")).uid
    await queued.cancel()
    async with at_work(server, book(), name="w1", queues=("hot", "mail")) as worker:
        await until(lambda: worker.running == 1 and worker.tally.failed == 5)
        await running.cancel()
        found = await listed(inspection, 9)
    assert {job.uid: (job.name, job.queue, job.status, job.attempts) for job in found.values()} == {
        plain: ("t.note", "hot", "succeeded", 1), kept: ("t.kept", "mail", "succeeded", 1),
        failed: ("t.fail", "hot", "failed", 1), useless: ("t.useless", "hot", "failed", 1),
        unknown: ("t.unknown", "hot", "failed", 0), running.uid: ("t.hold", "hot", "cancelled", 1),
        queued.uid: ("t.note", "hot", "cancelled", 0), parent.uid: ("t.fail", "hot", "failed", 1),
        child: ("t.note", "hot", "failed", 0),
    }
    began = {uid for uid, job in found.items() if job.ran_seconds is not None}
    assert began == set(found) - {unknown, queued.uid, child}, "the others never began"
    assert {job.worker for job in found.values()} == {"w1"}
    now = time.time()
    assert all(now - 60 < job.queued_at < job.ended_at + 1 < now + 60 for job in found.values())
    assert (found[failed].error, found[useless].error) == ("ValueError", "GiveUp"), "its words may be somebody's"
    assert found[unknown].error == "no job is named t.unknown"
    for status in ENDED:
        raws = await server.run(("ZRANGE", ENDED_LATELY.at(status=status).name(server.layout), 0, -1), list)
        assert raws and not any(SECRET.encode() in raw for raw in raws)
        assert ENDED_SECONDS - 60 < await ENDED_LATELY.at(status=status).remaining_seconds(server) <= ENDED_SECONDS


async def test_job_that_was_there_at_too_many_crashes_is_told(valkey: Valkey, inspection: Inspection) -> None:
    deadly = await Jobs(valkey, book()).enqueue("t.hold")
    for n in range(3):
        await Queue().work.worker(f"ghost{n}").take(valkey, 1, now=time.time())
        await valkey.run(("DEL", Queue().work.alive_key.at(f"ghost{n}").name(valkey.layout)), int)
        if n < 2:
            await Queue().work.adopt(valkey, now=time.time())
    async with at_work(valkey, book()):
        [job] = (await listed(inspection, 1)).values()
    assert (job.uid, job.name, job.status, job.attempts, job.worker) == (deadly.uid, "t.hold", "failed", 3, "")
    assert "died with it" in job.error and job.ran_seconds is None


async def test_job_that_runs_at_most_once_is_told(valkey: Valkey, inspection: Inspection) -> None:
    jobs = Jobs(valkey, book())
    good, bad = (await jobs.enqueue("t.note")).uid, (await jobs.enqueue("t.fail")).uid
    async with at_work(valkey, book(), at_most_once=True) as worker:
        await until(lambda: worker.tally.done and worker.tally.failed)
    found = {job.uid: job for job in (await inspection.ended()).jobs}  # who leaves tells the rest at once
    assert (found[good].status, found[bad].status, found[bad].error) == ("succeeded", "failed", "ValueError")


async def test_job_that_runs_at_most_once_and_is_called_off_is_told(valkey: Valkey, inspection: Inspection) -> None:
    job = await Jobs(valkey, book()).options(keep_seconds=60).enqueue("t.hold")
    async with at_work(valkey, book(), at_most_once=True) as worker:
        await until(lambda: worker.running == 1)
        await until(lambda: valkey.run(("LLEN", Queue().work.worker(worker.name).purgatory.name(valkey.layout)),
                                       lambda length: length == 0))  # forgotten, so it runs
        await job.cancel()
        await until(lambda: worker.running == 0)
    [told] = (await inspection.ended()).jobs
    assert (told.uid, told.status, told.attempts) == (job.uid, "cancelled", 1) and told.ran_seconds is not None
    state = await job.state()
    assert state is not None and state.status == "cancelled"
    assert not await Queue().cancelled.size(valkey)


async def test_options_that_cannot_be_used_are_an_end(valkey: Valkey, inspection: Inspection) -> None:
    raw = b'{"name":"t.note","kwargs":{},"queued_at":1,"uid":"u1","options":{"keep_seconds":60,"batch":"a:b\\u0000"}}'
    await valkey.run(("RPUSH", Queue().work.queue.name(valkey.layout), raw), int)
    async with at_work(valkey, book()):
        [job] = (await listed(inspection, 1)).values()
    assert (job.uid, job.status) == ("u1", "failed") and job.error.startswith("its options cannot be used")


async def test_second_in_which_nothing_ended_writes_nothing(valkey: Valkey) -> None:
    class Untouchable:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"{name} was used")

    await notes().hand_over(Untouchable())
    async with at_work(valkey, book()) as worker:
        await until(lambda: WORKER.at(worker.name).get(valkey))
    assert not any("ended" in pattern for pattern in await left_keys(valkey))


async def test_of_many_at_once_the_newest_are_kept_and_none_pushes_out_another_kind(valkey: Valkey, inspection) -> None:
    told = notes()
    told.note(record(-1), "", Ending("failed", attempts=3))
    told.note(record(-2), "", Ending("cancelled", attempts=0))
    began = time.perf_counter()
    for number in range(5000):
        told.succeeded((record(number), "", began + number / 1e6, 0.25))
        if number % 5 == 0:
            told.note(record(10_000 + number), "", Ending("succeeded"))
    assert len(told._done) <= MOST_NOTED and all(len(each) < 2 * MOST_NOTED for each in told._noted.values())
    await told.hand_over(valkey)
    sizes = {status: (await inspection.ended(status=status)).total for status in ENDED}
    assert sizes == {"succeeded": MOST_NOTED, "failed": 1, "cancelled": 1}
    assert not any(told._noted.values()) and not told._done


async def test_newest_thousand_of_each_kind_are_listed(valkey: Valkey, inspection: Inspection) -> None:
    for step in range(6):
        told = notes(1000.0 + step)
        for number in range(MOST_NOTED):
            told.note(record(step * MOST_NOTED + number), "", Ending("failed"))
        await told.hand_over(valkey)
    page = await inspection.ended(most=10_000)
    assert page.total == len(page.jobs) == MOST_LISTED and page.jobs[-1].ended_at == 1001.0


async def test_what_could_not_be_handed_over_is_told_later(valkey: Valkey, inspection: Inspection) -> None:
    place, told = ENDED_LATELY.at(status="succeeded"), notes()
    await valkey.run(("SET", place.name(valkey.layout), "of another program"), bool)
    told.note(record(1), "", Ending("succeeded"))
    told.note(record(2), "", Ending("failed"))
    for number in range(3):
        with pytest.raises(ErrorReply, match="WRONGTYPE"):
            await told.hand_over(valkey)
        told.note(record(3 + number), "", Ending("succeeded"))
    await place.delete(valkey)
    await told.hand_over(valkey)
    assert sorted(job.uid for job in (await inspection.ended()).jobs) == ["u1", "u2", "u3", "u4", "u5"]


async def test_what_another_program_left_there_does_not_stop_a_worker(valkey: Valkey) -> None:
    name = ENDED_LATELY.at(status="succeeded").name(valkey.layout)
    await valkey.run(("SET", name, "of another program"), bool)
    async with at_work(valkey, book()) as worker:
        await Jobs(valkey, book()).enqueue("t.note")
        await until(lambda: worker.tally.done)
    assert (await Inspection(valkey, SystemClock()).totals()).done == 1, "and nothing counts twice"


async def test_page_is_newest_first_over_all_kinds_and_can_be_filtered(server: Valkey, inspection: Inspection) -> None:
    for number, status in enumerate(("succeeded", "failed", "succeeded", "cancelled")):
        await tell(server, number, status, now=1000.0 + number, queue="mail" if number % 2 else "",
                   name="t.a" if number < 3 else "t.b")
    assert [job.uid for job in (await inspection.ended()).jobs] == ["u3", "u2", "u1", "u0"]
    second = await inspection.ended(most=2, after=(1003.0, "u3"))
    assert ([job.uid for job in second.jobs], second.total) == (["u2", "u1"], 4)
    assert [job.uid for job in (await inspection.ended(status="succeeded", after=(1002.0, "u2"))).jobs] == ["u0"]
    assert [job.uid for job in (await inspection.ended(status="succeeded")).jobs] == ["u2", "u0"]
    assert [job.uid for job in (await inspection.ended(["hot"])).jobs] == ["u2", "u0"]
    both = await inspection.ended(["mail", "hot"], name="t.a", most=2)
    assert ([job.uid for job in both.jobs], both.total) == (["u2", "u1"], 3)
    assert (await inspection.ended(["elsewhere"])).as_dict() == {"total": 0, "jobs": []}
    with pytest.raises(Invalid):
        await inspection.ended(["a:b"])


async def test_pages_pass_over_none_of_those_that_ended_at_one_moment(server: Valkey, inspection: Inspection) -> None:
    for number in range(7):
        await tell(server, number, ENDED[number % 2], now=1000.0)
    seen: list[str] = []
    after = None
    while jobs := (await inspection.ended(most=3, after=after)).jobs[:2]:  # one more is asked for than is shown
        seen += [job.uid for job in jobs]
        after = jobs[-1].ended_at, jobs[-1].uid
    assert seen == [f"u{number}" for number in range(6, -1, -1)]


async def test_what_does_not_decode_hides_nothing(valkey: Valkey, inspection: Inspection) -> None:
    await tell(valkey, 1, now=1000.0)
    await valkey.run(("ZADD", ENDED_LATELY.at(status="succeeded").name(valkey.layout), 2000, "not JSON"), int)
    assert [job.uid for job in (await inspection.ended()).jobs] == ["u1"]


async def test_names_of_other_programs_are_cut(valkey: Valkey, inspection: Inspection) -> None:
    await tell(valkey, 1, now=1000.0, uid="u" * 500, name="n" * 500)
    [job] = (await inspection.ended()).jobs
    assert (job.uid, job.name) == ("", "n" * 200), "a uid that was cut would be that of no job"


async def test_job_that_ended_is_still_found_and_is_not_called_off(server: Valkey, inspection: Inspection) -> None:
    await tell(server, 1, "failed", now=1000.0, queue="mail")
    await tell(server, 1, "succeeded", now=1001.0, queue="mail")
    found = await inspection.find("u1")
    assert found is not None and (found.queue, found.state, found.view) == ("mail", None, None)
    assert found.ended is not None and found.ended.status == "succeeded", "the last time counts"
    assert await inspection.find("u1", ["hot"]) is None and await inspection.find("u2") is None
    assert not await inspection.cancel("u1")
    queued = await Jobs(server, book()).options(queue="mail").enqueue("t.note")
    await tell(server, 9, "failed", now=1000.0, queue="mail", uid=queued.uid)
    found = await inspection.find(queued.uid)
    assert found is not None and found.view is not None and found.ended is None, "where it lies now says more"


async def test_what_our_own_rooms_do_is_told_only_where_it_went_wrong(valkey: Valkey, inspection: Inspection) -> None:
    jobs = Jobs(valkey, book())
    for name in ("t.note", "t.kept", "t.fail"):
        await jobs.enqueue(name)
    async with at_work(valkey, book(), in_totals=False) as worker:
        await until(lambda: worker.tally.done == 2 and worker.tally.failed == 1)
    assert [job.name for job in (await inspection.ended()).jobs] == ["t.fail"]


async def test_clock_that_runs_faster_tells_when_it_ended(valkey: Valkey, inspection: Inspection) -> None:
    told = EndedNotes("w1", SystemClock(pace=Pace(60, time.time(), 5000.0)))
    told.succeeded((record(1), "", time.perf_counter() - 30.0, 10.0))  # so it ended twenty seconds ago
    await told.hand_over(valkey)
    [job] = (await inspection.ended()).jobs
    assert job.ran_seconds == 10.0 and 3700 < job.ended_at < 3900 + 60 * 20
