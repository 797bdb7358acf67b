"""Measure clicks on links that are not in the database yet: ``python -m bench.load.link_clicks --tasks 100 --url URL``.

Every click is of somebody known, on the link whose last click is longest ago, so that each is written down: one round
trip each, with its limits and counts. So many links are made that no code is clicked on twice within its three seconds.
"""

import asyncio
import itertools
import tempfile
from collections import Counter
from importlib.metadata import version

from bench.load import loops, protocol

LINKS = 48_000
BATCH = 1000


async def measure(tasks: int, url: str, seconds: float, warm_up: float) -> None:
    from keystead.clock import SystemClock
    from keystead.engine import connect
    from keystead.messaging.links import ClickOutcome, Links, LinkWanted
    from keystead.store import Database

    valkey = await connect(url)
    with tempfile.TemporaryDirectory() as directory:
        async with Database.open(f"sqlite:///{directory}/links.db") as database:
            links = Links(valkey, database, SystemClock())
            made = [
                link.code for _ in range(LINKS // BATCH)
                for link in await links.create_many([LinkWanted("tch_bench")] * BATCH)
            ]
            codes, outcomes = itertools.cycle(made), Counter[str]()

            async def click() -> None:
                clicked = await links.click(next(codes), user_sub="user_bench", visitor_uid="v_bench")
                outcomes[clicked.outcome] += 1

            await click()
            if not outcomes[ClickOutcome.BUFFERED]:
                raise SystemExit(f"the first click was not written down: {outcomes}")
            figures = {"per_second": await loops.rate([click] * tasks, seconds, warm_up)}
    await valkey.aclose()
    share = outcomes[ClickOutcome.BUFFERED] / outcomes.total()
    if share < 0.99:
        raise SystemExit(f"only {share:.0%} of the clicks were written down; there are too few links for this machine")
    protocol.answer(figures, {"keystead": version("keystead"), "written_down": share, "links": LINKS})


def main() -> None:
    flags = protocol.parser()
    flags.add_argument("--tasks", type=int, default=100)
    given = flags.parse_args()
    run = asyncio.run
    try:
        import uvloop

        run = uvloop.run
    except ImportError:
        pass
    run(measure(given.tasks, given.url, given.seconds, given.warm_up))


if __name__ == "__main__":
    main()
