"""A program that starts others which rotate again and again until they are killed: ``URL DATABASE``.

Each line it reads is a time, and starts one that lives at that time. It says ``ready`` and its process id. They are
forked, so that starting one costs next to nothing.
"""

import asyncio
import os
import signal
import sys

from keystead.engine import connect
from keystead.errors import Unavailable
from keystead.stats.rotation import Rotation
from keystead.store import Database
from tests.stats.counted import catalogue


class Standing:
    """A clock that stands still."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())  # in one piece, whoever else speaks


async def rotate(url: str, database_url: str, now: float) -> None:
    valkey = await connect(url)
    async with Database.open(database_url) as database:
        rotation = Rotation(valkey, database, catalogue(), Standing(now))
        say("ready", os.getpid())
        while True:
            try:
                report = await rotation.run()
            except Unavailable:  # one of two who waited for each other is sent away
                continue
            if unknown := [problem for problem in report.problems if " is not " not in problem]:
                say("problem", *unknown)
                return
            say("ran", report.days, report.late)
            await asyncio.sleep(0.005)


def main(url: str, database_url: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    say("listening")
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asyncio.run(rotate(url, database_url, float(line)))
            os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
