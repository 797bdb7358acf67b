"""Programs of the messaging chaos, told by a JSON file of settings: ``ROLE FILE``.

- ``serve``: the whole HTTP server, with the couriers and jobs of the rooms; ``work``: those alone.
- ``produce FIRST LAST PAUSE``: queues touches and writes down which were accepted.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from keystead.app import App
from keystead.errors import KeysteadError, LimitReached, ReplyLost, Unavailable
from keystead.jobs import ROOMS_QUEUE, JobRef, current_job, job
from keystead.keys import Keyspace, ListKey, MapKey
from keystead.settings import load_settings
from keystead.web.housekeeping import Housekeeping

CHAOS = Keyspace("chaos", tag="chaos")
# The effect of a callback: which one was first, for each touch; and how often any ran.
EFFECTS: MapKey[str] = MapKey(CHAOS, "chaos:effects", str, fields=("{uid}",), purpose="the first outcome of each touch")
RUNS: ListKey[str] = ListKey(CHAOS, "chaos:runs", str, purpose="every run of a callback")
TENANTS: MapKey[int] = MapKey(CHAOS, "chaos:tenants", int, fields=("{uid}",), purpose="how often each tenant's job ran")
SUCCEEDED, FAILED = "chaos.succeeded", "chaos.failed"
CHANNELS = ("sms", "email", "push")


@job(name="chaos.tenant")
async def serve_tenant(uid: str) -> None:
    """What a tenant asked for: each run is counted."""
    here = current_job()
    await here.valkey.run(("HINCRBY", TENANTS.at().name(here.valkey.layout), uid, 1), int)


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def app_of(file: Path) -> tuple[App, dict[str, object]]:
    told = json.loads(file.read_text())
    return App(load_settings(told["settings"], environment={}), [sys.modules[__name__]]), told


def add_callbacks(running) -> None:  # type: ignore[no-untyped-def]
    async def succeeded(uid: str) -> None:
        await heard(uid, "success")

    async def failed(uid: str) -> None:
        await heard(uid, "failure")

    async def heard(uid: str, outcome: str) -> None:
        async with running.valkey.pipeline(transaction=True) as block:
            RUNS.at().push_right(block, f"{uid} {outcome}")
            block.run(("HSETNX", EFFECTS.at().name(running.valkey.layout), uid, outcome), bool)
            await block.execute()

    running.book.register(SUCCEEDED, succeeded)
    running.book.register(FAILED, failed)


async def work(file: Path) -> None:
    app, told = app_of(file)
    async with app.running(works=True, public_url=str(told["public_url"])) as running:
        add_callbacks(running)
        say("working")
        while True:
            try:
                await Housekeeping(running).run()
            except* KeysteadError as errors:
                say("failed", repr(errors)[:300])
                await asyncio.sleep(0.5)


async def serve(file: Path) -> None:
    from keystead.web import serving
    from keystead.web.serving import serve as serve_app

    app, _ = app_of(file)
    opened = app.running

    # The callbacks of the test have to be in the book of the server as well.
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def running(**options):  # type: ignore[no-untyped-def]
        async with opened(**options) as found:
            add_callbacks(found)
            yield found

    app.running = running  # type: ignore[method-assign]
    assert serving
    await serve_app(app, dashboard=False, on_ready=lambda ready: say("working"))


async def produce(file: Path, first: int, last: int, pause: float) -> None:
    app, told = app_of(file)
    done = Path(str(told["directory"])) / "accepted"
    known = {line.split()[1] for line in done.read_text().splitlines()} if done.exists() else set()
    with done.open("a") as accepted:
        async with app.running() as running:
            people = [await running.users.ensure("chaos", str(number)) for number in range(int(str(told["people"])))]
            say("working")
            for number in range(first, last):
                uid = f"tch_chaos_{number:06}"
                if uid in known:
                    continue
                word = await _touch(running.switchboard.messaging, people[number % len(people)].sub, uid, number)
                accepted.write(f"{word} {uid}\n")
                accepted.flush()
                await asyncio.sleep(pause)
    say("produced")


async def _touch(messaging, sub: str, uid: str, number: int) -> str:  # type: ignore[no-untyped-def]
    """Asks until the touch is accepted: asking again with the same uid is what whoever lost an answer does."""
    while True:
        try:
            await messaging.touch(
                sub, "daily_reminder", channel=CHANNELS[number % 3], uid=uid,
                parameters={"name": f"n{number:06}", "url": "https://example.com/l/x",
                            "unsubscribe_url": "https://example.com/l/u"},
                on_success=JobRef(SUCCEEDED, {"uid": uid}, ROOMS_QUEUE),
                on_failure=JobRef(FAILED, {"uid": uid}, ROOMS_QUEUE),
            )
            return "accepted"
        except (Unavailable, ReplyLost, LimitReached):
            await asyncio.sleep(0.2)


def main() -> None:
    role, file, *rest = sys.argv[1:]
    roles = {"work": work, "serve": serve}
    if role == "produce":
        asyncio.run(produce(Path(file), int(rest[0]), int(rest[1]), float(rest[2])))
    else:
        asyncio.run(roles[role](Path(file)))


if __name__ == "__main__":
    main()
