"""``keystead jobs``: what an operator sees of the queues, and changes."""

import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import pytest

from keystead.cli import entry
from keystead.clock import SystemClock
from keystead.engine import Valkey, connect
from keystead.jobs import Calendar, EndedJob, Inspection, Jobs, Recurring, RecurringList, RecurringLoop
from keystead.jobs.keys import ENDED_LATELY, TOTALS, WORKER, WORKERS, Queue
from keystead.jobs.models import WorkerState
from keystead.jobs.progress import Progress

from .command import Outcome, environment, keystead

PATIENCE_SECONDS = 60


@pytest.fixture
def do(server):
    """Run some steps on the server and return what they return."""

    def run(steps: Callable[[Valkey, Jobs], Awaitable[object]]) -> object:
        async def connected() -> object:
            valkey = await connect(server.url)
            try:
                return await steps(valkey, Jobs(valkey))
            finally:
                await valkey.aclose()

        return asyncio.run(connected())

    return run


@pytest.fixture
def jobs(server, capsys):
    """Run ``keystead jobs ARGUMENTS`` in this process."""

    def run(*arguments: str) -> Outcome:
        code = entry.run(["jobs", *arguments, "--url", server.url])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return run


async def bury(valkey: Valkey, error: str, queue: str = "", most: int = 1) -> None:
    hands = Queue(queue).work.worker("undertaker")
    await hands.beat(valkey)
    taken = await hands.take(valkey, most, now=0.0)
    await hands.bury(valkey, taken.items, error=error, now=time.time() - 90)


@pytest.fixture
def filled(do) -> dict[str, str]:
    """Jobs in every place; their uids by what they are called."""

    async def fill(valkey: Valkey, jobs: Jobs) -> dict[str, str]:
        uids = {}
        errors = {"one": "TimeoutError: after 5 s", "two": "TimeoutError: after 9 s", "three": "[red]x"}
        for name, error in errors.items():
            uids[name] = (await jobs.enqueue("shop.pay", who=name)).uid
            await bury(valkey, error)
        uids["mail"] = (await jobs.options(queue="mail").enqueue("shop.mail", who="mail")).uid
        await bury(valkey, "KeyError: 'x'", "mail")
        uids["held"] = (await jobs.enqueue("shop.pay", who="held")).uid
        await Queue().work.worker("host-1").take(valkey, 1, now=0.0)
        uids["queued"] = (await jobs.enqueue("shop.pay", who="\x1b[31m[bold]queued")).uid
        uids["letter"] = (await jobs.options(queue="mail").enqueue("shop.mail", who="letter")).uid
        uids["delayed"] = (await jobs.options(delay_seconds=7200).enqueue("shop.pay", who="delayed")).uid
        uids["kept"] = (await jobs.options(keep_seconds=600).enqueue("shop.pay", who="kept")).uid
        await jobs.options(after=[uids["kept"]]).enqueue("shop.pay", who="child")
        state = WorkerState(host="host", pid=1, started_at=time.time(), beat_at=time.time(), queues="hot mail",
                            concurrency=10, running=1, done=41)
        await WORKER.at("host-1").set(valkey, state)
        await valkey.expire(WORKER.at("host-1").name(valkey.layout), 600)
        await WORKERS.at().add(valkey, "host-1", time.time())
        alive = Queue().work.alive_key.at(worker="host-1").name(valkey.layout)
        await valkey.set(alive, "1", ex=600)  # for as long as a slow machine takes to look
        await WORKERS.at().add(valkey, "host-0", time.time() - 120)
        await TOTALS.at().increment(valkey, "done", 41)
        return uids

    return do(fill)


def test_queues_and_workers_are_listed(jobs, filled) -> None:
    jobs("pause", "mail")
    outcome = jobs("list")
    assert (outcome.code, outcome.err) == (0, "")
    rows = {words[0]: words[1:] for line in outcome.out.splitlines() if (words := line.split())}
    assert rows["hot"] == ["2", "1", "1", "1", "3", "2"]
    assert rows["mail"] == ["1", "0", "0", "0", "1", "1", "paused"]
    assert rows["host-1"][:6] == ["hot", "mail", "1", "10", "41", "0"] and rows["host-1"][-1] == "alive"
    assert " ".join(rows["host-0"]).startswith("silent for 2 min")
    assert "41 done ever" in outcome.out
    found = json.loads(jobs("list", "--format", "json", "--queue", "mail").out)
    assert [queue["name"] for queue in found["queues"]] == ["mail"] and found["totals"]["done"] == 41


def test_an_empty_server_says_how_to_begin(jobs) -> None:
    outcome = jobs("list")
    assert outcome.code == 0 and "keystead worker MODULE" in outcome.out


@pytest.mark.parametrize(
    ("place", "names", "says"),
    [
        ("queued", ["queued", "kept", "letter"], "shop.mail"),
        ("delayed", ["delayed"], "in 1 h 59 min"),
        ("running", ["held"], "host-1"),
        ("dead", ["three", "two", "one", "mail"], "TimeoutError: after 9 s"),
    ],
)
def test_jobs_of_a_place_are_listed(jobs, filled, place, names, says) -> None:
    outcome = jobs("list", place)
    assert outcome.code == 0 and says in outcome.out.replace("in 2 h", "in 1 h 59 min")
    places = [outcome.out.index(filled[name]) for name in names]
    assert places == sorted(places)
    assert f"{len(names)} of {len(names)} {place} jobs" in outcome.err
    found = json.loads(jobs("list", place, "--format", "json").out)
    assert [job["uid"] for job in found["jobs"]] == [filled[name] for name in names] and found["total"] == len(names)


def test_recurring_jobs_of_all_queues_are_listed(jobs, do) -> None:
    async def fill(valkey: Valkey, client: Jobs) -> None:
        for queue in ("", "mail"):
            entries = [Recurring("shop.rotate", Calendar("UTC", minutes=(0,), seconds=(0,)))]
            await RecurringLoop(valkey, RecurringList(entries, queue=queue)).step()
        await Queue().recurring.next.add(valkey, "17", 1000.0)

    do(fill)
    outcome = jobs("recurring")
    rows = [line.split() for line in outcome.out.splitlines()]
    assert outcome.code == 0 and [row[:3] for row in rows if row and row[0] == "entry"] == [["entry", "17", "hot"]]
    assert sorted(row[1] for row in rows if row and row[0] == "shop.rotate") == ["hot", "mail"]
    found = json.loads(jobs("recurring", "--queue", "mail", "--format", "json").out)
    assert [(one["queue"], one["name"], one["last_at"]) for one in found] == [("mail", "shop.rotate", None)]


def test_jobs_that_wait_for_others_are_listed(jobs, filled) -> None:
    assert '"child"' in jobs("list", "waiting").out


def test_pages_run_over_queues(jobs, filled) -> None:
    def page(first: int, most: int) -> list[str]:
        given = ("--first", str(first), "--most", str(most), "--format", "json")
        return [job["uid"] for job in json.loads(jobs("list", "dead", *given).out)["jobs"]]

    order = [filled[name] for name in ("three", "two", "one", "mail")]
    assert [page(0, 3), page(1, 3), page(3, 3), page(4, 3)] == [order[:3], order[1:], order[3:], []]


def test_what_steers_a_terminal_is_not_passed_on(jobs, filled) -> None:
    said = jobs("list", "queued").out + jobs("list", "dead").out
    assert "\x1b" not in said and "[bold]queued" in said and "[red]x" in said


def test_dead_jobs_are_grouped_by_error(jobs, filled) -> None:
    outcome = jobs("list", "dead", "--by-error")
    [first, second, third] = [line.split() for line in outcome.out.splitlines() if filled["two"][:4] in line]
    assert first[:5] == ["2", "TimeoutError:", "after", "…", "s"] and "shop.pay" in first
    assert (second[0], third[0]) == ("1", "1") and "mail" in third
    groups = json.loads(jobs("list", "dead", "--by-error", "--queue", "hot", "--format", "json").out)
    assert [(group["error"], group["count"]) for group in groups] == [("TimeoutError: after … s", 2), ("[red]x", 1)]
    assert "only dead jobs have errors" in jobs("list", "--by-error").refused()


def test_one_job_is_shown(jobs, filled) -> None:
    dead = jobs("show", filled["two"])
    assert dead.code == 0
    assert all(words in dead.out for words in ("lies  dead", "shop.pay", '{"who": "two"}', "TimeoutError: after 9 s"))
    assert "held by  host-1" in jobs("show", filled["held"]).out
    assert "due  in" in jobs("show", filled["delayed"]).out
    kept = jobs("show", filled["kept"], "--queue", "hot").out
    assert "state  queued" in kept and "lies  queued" in kept
    found = json.loads(jobs("show", filled["mail"], "--format", "json").out)
    assert found["queue"] == "mail" and found["found"]["error"] == "KeyError: 'x'" and found["state"] is None
    assert "no job nobody is known" in jobs("show", "nobody").refused()


@pytest.fixture
def ended(do) -> None:
    """Three jobs that ended, the newest last."""

    async def fill(valkey: Valkey, client: Jobs) -> None:
        now = time.time()
        for number, (uid, status, queue) in enumerate(
            (("u1", "succeeded", "hot"), ("u2", "failed", "mail"), ("u3\x1b[31m", "cancelled", "hot"))
        ):
            job = EndedJob(uid, f"shop.[red]{status}", queue, status, now - 100 + number, number, "host-1", now - 200,
                           None if status == "cancelled" else 0.25, "KeyError" if status == "failed" else "")
            await ENDED_LATELY.at(status=status).add(valkey, job, job.ended_at)

    do(fill)


def test_jobs_that_ended_lately_are_listed_newest_first(jobs, ended) -> None:
    outcome = jobs("ended")
    assert outcome.code == 0 and "3 of 3 that are listed" in outcome.err and "\x1b" not in outcome.out
    places = [outcome.out.index(words) for words in ("shop.[red]cancelled", "shop.[red]failed", "shop.[red]succeeded")]
    assert places == sorted(places) and "1 min 3" in outcome.out and "250 ms" in outcome.out
    found = json.loads(jobs("ended", "failed", "--format", "json").out)
    assert found["total"] == 1 and (found["jobs"][0]["uid"], found["jobs"][0]["error"]) == ("u2", "KeyError")
    for which in (["--queue", "mail"], ["--name", "shop.[red]failed"]):
        assert [job["uid"] for job in json.loads(jobs("ended", *which, "--format", "json").out)["jobs"]] == ["u2"]
    assert len(json.loads(jobs("ended", "--most", "2", "--format", "json").out)["jobs"]) == 2
    assert "dead" in jobs("ended", "dead").refused()


def test_job_that_ended_without_a_state_is_shown_as_far_as_it_is_known(jobs, ended) -> None:
    shown = jobs("show", "u2")
    assert shown.code == 0 and all(words in shown.out for words in ("state  failed", "KeyError", "250 ms", "host-1"))
    assert json.loads(jobs("show", "u1", "--format", "json").out)["ended"]["status"] == "succeeded"
    assert "u1 has ended" in jobs("cancel", "u1").err


def queue_of(server, name: str = "jobs:hot") -> list[str]:
    return [json.loads(raw)["uid"] for raw in server.call("LRANGE", name, "0", "-1")]


def test_dead_jobs_are_retried_by_uid(jobs, server, filled) -> None:
    outcome = jobs("retry", filled["two"], filled["mail"])
    assert outcome.code == 0 and "2 jobs queued again" in outcome.err
    assert queue_of(server)[-1] == filled["two"] and queue_of(server, "jobs:queue:mail")[-1] == filled["mail"]
    partly = jobs("retry", filled["one"], filled["two"], "--format", "json")
    assert partly.code == 1 and json.loads(partly.out) == {"retried": 1, "missing": [filled["two"]]}
    assert "no dead job is like that" in jobs("retry", filled["two"]).refused()


def test_dead_jobs_are_retried_by_error(jobs, server, filled) -> None:
    assert "2 jobs queued again" in jobs("retry", "--error", "TimeoutError: after … s").err
    assert queue_of(server)[-2:] == [filled["one"], filled["two"]]
    assert "1 job queued again" in jobs("retry", "--error", "KeyErr").err
    assert "no dead job is like that" in jobs("retry", "--error", "Nothing").refused()


def test_all_dead_jobs_are_retried(jobs, server, filled) -> None:
    assert "3 jobs queued again" in jobs("retry", "--all", "--queue", "hot").err
    assert "1 job queued again" in jobs("retry", "--all").err
    assert jobs("retry", "--all").code == 0
    assert server.call("LLEN", "jobs:hot:dead") == 0


def test_dead_jobs_are_dropped(jobs, server, filled) -> None:
    assert "1 job dropped" in jobs("drop", filled["one"]).err
    assert json.loads(jobs("drop", "--all", "--format", "json").out) == {"dropped": 3, "missing": []}
    assert server.call("LLEN", "jobs:hot:dead") == 0 and filled["one"] not in queue_of(server)


@pytest.mark.parametrize("verb", ["retry", "drop"])
@pytest.mark.parametrize("given", [[], ["a", "--all"], ["--error", "x", "--all"]])
def test_it_must_be_clear_which_dead_jobs_are_meant(jobs, verb, given) -> None:
    assert "say which dead jobs" in jobs(verb, *given).refused()


def test_jobs_are_cancelled(jobs, server, filled) -> None:
    outcome = jobs("cancel", filled["letter"], filled["delayed"])
    assert outcome.code == 0 and outcome.err.count("is called off") == 2
    assert server.call("ZRANGE", "jobs:queue:mail:cancelled", "0", "-1") == [filled["letter"].encode()]
    partly = jobs("cancel", filled["one"], filled["queued"], "--format", "json")
    assert partly.code == 1 and json.loads(partly.out) == {filled["one"]: False, filled["queued"]: True}


def test_a_queue_is_paused_and_resumed(jobs, server) -> None:
    assert "queue hot is paused" in jobs("pause").err and server.call("EXISTS", "jobs:paused") == 1
    assert "queue hot goes on" in jobs("resume").err and server.call("EXISTS", "jobs:paused") == 0
    assert "was not paused" in jobs("resume", "mail").err
    assert "cannot be the name of a queue" in jobs("pause", "a:b").refused()


# -- tail --------------------------------------------------------------------------------------------------------------


def test_each_look_is_a_line_off_a_terminal(jobs, filled) -> None:
    outcome = jobs("tail", "--count", "2", "--every", "0.1")
    first, second = outcome.out.splitlines()
    assert "hot: 2 queued, 1 delayed, 1 running, 3 dead" in first and "1 worker;" in second and "0.0 done/s" in second


def test_each_look_is_a_document_as_json(jobs, filled) -> None:
    outcome = jobs("tail", "--count", "2", "--every", "0.1", "--format", "json")
    looks = [json.loads(line) for line in outcome.out.splitlines()]
    assert [len(look["queues"]) for look in looks] == [2, 2] and looks[1]["rates"]["done"] == 0


def test_rates_are_told_between_looks() -> None:
    from collections import deque

    from keystead.cli.jobs_tail import rates
    from keystead.jobs.inspection_views import Snapshot, Totals

    looks = deque(Snapshot(at, (), (), Totals(done, failed, 0)) for at, done, failed in ((10, 100, 1), (14, 180, 3)))
    assert rates(looks) == {"done": 20.0, "failed": 0.5, "retried": 0.0}
    assert rates(deque([looks[0]]))["done"] == 0


def on_terminal(*arguments: str, until: str, then: Callable[[subprocess.Popen[bytes]], None]) -> tuple[int, str]:
    """Run the command on a terminal of its own; once it said ``until``, do something, and wait for its end."""
    ours, theirs = pty.openpty()
    # Whoever starts the tests in the background may have told everything below to ignore Ctrl-C.
    process = subprocess.Popen([sys.executable, "-m", "keystead.cli", *arguments], stdin=theirs, stdout=theirs,
                               stderr=theirs, env=environment(TERM="xterm", COLUMNS="160"),
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    os.close(theirs)
    said, done, deadline = b"", False, time.monotonic() + PATIENCE_SECONDS
    try:
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 1)[0]:
                continue
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the terminal of a process that has ended
                break
            if not piece:
                break
            said += piece
            if until.encode() in said and not done:
                done = True
                then(process)
        assert done, f"it never said {until}: {said.decode()[-2000:]}"
        return process.wait(PATIENCE_SECONDS), said.decode()
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_terminal_shows_the_queues_live(server, filled) -> None:
    code, said = on_terminal("jobs", "tail", "--every", "0.2", "--url", server.url, until="host-1",
                             then=lambda process: process.send_signal(signal.SIGINT))
    assert code == entry.INTERRUPTED and "Traceback" not in said
    assert "Queues" in said and "Workers" in said and "done/s" in said


async def _tell(valkey: Valkey, uid: str, *, well: bool = True) -> None:
    progress = Progress(uid, SystemClock())
    await progress.started(valkey, "began")
    await progress.progress(valkey, "half\nway", 5, 10)
    await (progress.succeeded(valkey, "all paid") if well else progress.failed(valkey, "no money"))


def test_the_progress_of_a_job_is_told_in_lines(jobs, do) -> None:
    do(lambda valkey, _: _tell(valkey, "u1"))
    outcome = jobs("tail", "u1")
    assert outcome.code == 0
    assert [line.split(" ", 1)[1] for line in outcome.out.splitlines()] == \
        ["started: began", "progress: half way (5 of 10)", "succeeded: all paid"]


def test_a_job_that_fails_is_told_by_the_exit_code(jobs, do) -> None:
    do(lambda valkey, _: _tell(valkey, "u1", well=False))
    outcome = jobs("tail", "u1", "--format", "json")
    assert outcome.code == 1
    assert [json.loads(line)["type"] for line in outcome.out.splitlines()] == ["started", "progress", "failed"]


def test_a_job_that_tells_nothing_cannot_be_watched(jobs) -> None:
    assert "options(progress=True)" in jobs("tail", "nobody").refused()


def test_a_terminal_shows_a_bar_until_the_job_ends(server, do) -> None:
    async def half(valkey: Valkey, _: Jobs) -> None:
        await Progress("u1", SystemClock()).progress(valkey, "half way", 5, 10)

    do(half)
    code, said = on_terminal("jobs", "tail", "u1", "--url", server.url, until="5 of 10",
                             then=lambda process: do(lambda valkey, _: _tell(valkey, "u1")))
    assert code == 0 and "all paid" in said and "Traceback" not in said


def test_jobs_commands_without_a_server_are_refused() -> None:
    assert "127.0.0.1:1" in keystead("jobs", "list", "--url", "valkey://127.0.0.1:1").refused()


def test_an_inspection_by_hand_sees_the_same(server, filled, do, jobs) -> None:
    async def look(valkey: Valkey, _: Jobs) -> list[dict[str, object]]:
        return [queue.as_dict() for queue in await Inspection(valkey, SystemClock()).queues()]

    assert do(look) == json.loads(jobs("list", "--format", "json").out)["queues"]
