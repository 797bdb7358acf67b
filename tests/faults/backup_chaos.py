"""Backups under load: taken while touches go out, each restored somewhere else, started there, and judged.

    python -m tests.faults.backup_chaos --touches 300 --backups 5
    python -m tests.faults.backup_chaos --lanes 2            the same on the six-node cluster with two lanes

While touches are queued, dispatched, sent, confirmed and logged, days that are over are rotated into SQL, people come
with their addresses and take some back, and tenants ask for work, backups are taken. Then everything is stopped. Each
backup is restored to an empty server and an empty database and started there. Every touch that was accepted before the
backup began must end once, counts must add up, each day must be in SQL once, everybody's addresses must be those they
had, for the rows and for whoever sends, no job of a tenant may be lost, no key may be left that is not explained; and
nothing that had ended before the backup may be sent again.
"""

import argparse
import asyncio
import itertools
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import select

from keystead import dates
from keystead.app import App
from keystead.backup import Restore
from keystead.engine import connect
from keystead.jobs import FairJobs, Jobs
from keystead.settings import load_settings
from keystead.stats.lanes import lanes_of
from keystead.store import Database
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer

from . import messaging_program
from .messaging_chaos import DRAIN_SECONDS, DURABLE, WORKERS, Chaos, Report, received
from .messaging_program import EFFECTS, TENANTS
from .programs import programs

DAYS = 300  # that are over and wait to be rotated, unless told
FAMILY, EVENT = "push_tokens", "reassigned"


class TakenThen(NamedTuple):
    """A backup, and what was promised before it began: touches, people's addresses and numbers, tenants' jobs."""

    path: Path
    accepted: set[str]
    addresses: dict[str, tuple[list[str], list[str]]]
    asked: set[str]


class BackupChaos(Chaos):
    """One run: a load, some backups, and each of them restored."""

    def __init__(self, directory: Path, touches: int, backups: int, lanes: int = 0, days: int = DAYS) -> None:
        super().__init__(directory, touches, kills=0, seed=0, lanes=lanes)
        self._days = days
        self._backups = backups
        self._source = self._server
        self._name = "chaos"
        self._counted: dict[dates.UnixDate, int] = {}
        self._addresses: dict[str, tuple[list[str], list[str]]] = {}  # of whom nothing changes any more
        self._asked: set[str] = set()
        self.held_ms: list[float] = []
        self.people_judged = self.tenants_judged = 0

    def settings(self) -> dict[str, object]:
        return super().settings() | {
            "store.url": f"sqlite:///{self.directory}/{self._name}.sqlite",
            "store.files_url": (self.directory / f"{self._name}-files").as_uri(),
            "installation.directory": str(self.directory / f"{self._name}-own"),
            "email.receipt_seconds": 20, "email.verify_seconds": 10,
        }

    def app(self) -> App:
        return App(load_settings(self.settings(), environment={}), [messaging_program])

    async def run_all(self, tell=lambda line: None) -> list[Report]:  # type: ignore[no-untyped-def]
        self._source.start()
        self._providers.start()
        try:
            self._write_file()
            async with self.app().running() as running:
                await self._invite(running)
                await self._plant_days(running)
            async with programs("keystead.messaging.sandbox") as start_sandbox:
                await self._sandbox(start_sandbox)
                taken = await self._under_load(tell)
                return [await self._again(number, one, tell) for number, one in enumerate(taken)]
        finally:
            self._source.stop()
            self._providers.stop()

    def _write_file(self) -> None:
        self._file.write_text(json.dumps({
            "settings": self.settings(), "public_url": self.public_url, "directory": str(self.directory),
            "people": self.people,
        }))

    async def _plant_days(self, running) -> None:  # type: ignore[no-untyped-def]
        """Days of a family that are over, with a known count each, so that there is much to rotate."""
        family = running.catalogue.families[FAMILY]
        today = dates.unix_date(running.clock.now(), family.home)
        for back in range(self._days, 0, -1):
            self._counted[today - back] = back
            await family.incr(lanes_of(running.valkey, family)[0], EVENT, amount=back, unix_date=today - back)

    async def _under_load(self, tell) -> "list[TakenThen]":  # type: ignore[no-untyped-def]
        """Backups, each with what was promised before it began."""
        taken: list[TakenThen] = []
        async with programs("tests.faults.messaging_program") as start:
            cast = [await start("work", str(self._file)) for _ in range(WORKERS)]
            cast += [await start("serve", str(self._file)),
                     await start("produce", str(self._file), "0", str(self.touches), "0.1")]
            for program in cast:
                await program.hears("working", seconds=120)
            # A second rotation: it runs in the workers too.
            beside = [asyncio.ensure_future(each()) for each in (self._rotate, self._come_and_go, self._ask)]
            try:
                for number in range(self._backups):
                    wanted = self.touches * (number + 1) // (self._backups + 1)
                    enough = 5 * (number + 1)
                    while len(self._accepted()) < wanted or min(len(self._addresses), len(self._asked)) < enough:
                        assert not any(each.done() for each in beside), beside
                        await asyncio.sleep(0.05)
                    accepted, path = self._accepted(), self.directory / f"{number}.backup"
                    promised = TakenThen(path, accepted, dict(self._addresses), set(self._asked))
                    made = await self.app().backup().take(path)
                    assert made.manifest.head.one_moment and not any(each.done() for each in beside)
                    self.held_ms.append(made.manifest.held_ms)
                    held = made.manifest.held_ms
                    tell(f"backup {number + 1}: {len(accepted)} touches accepted before it, writes held {held} ms")
                    taken.append(promised)
            finally:
                for each in beside:
                    each.cancel()
                await asyncio.gather(*beside, return_exceptions=True)
        return taken

    async def _rotate(self) -> None:
        async with self.app().running() as running:
            while True:
                await running.rotation.run()
                await asyncio.sleep(0.05)

    async def _come_and_go(self) -> None:
        """People who come with an address and a number; every other one changes the address."""
        async with self.app().running() as running:
            contacts = running.switchboard.contacts
            for number in itertools.count():
                sub = (await running.users.ensure("contacts", str(number))).sub
                first, second = f"a{number}@example.com", f"b{number}@example.com"
                phone = f"+1415556{number % 10000:04}"
                await contacts.add_email(sub, first, verified=True)
                await contacts.add_phone(sub, phone, verified=True)
                if number % 2:
                    await contacts.emails_of([sub])  # whoever sends has read the old one
                    await contacts.add_email(sub, second, verified=True)
                    await contacts.remove_email(sub, first)
                self._addresses[sub] = [second if number % 2 else first], [phone]
                await asyncio.sleep(0.02)

    async def _ask(self) -> None:
        """Tenants who want something, one of them much."""
        async with self.app().running() as running:
            jobs = FairJobs(Jobs(running.valkey, clock=running.clock))
            for number in itertools.count():
                tenant, uid = "noisy" if number % 4 else f"quiet{number % 3}", f"ask{number:06}"
                await jobs.enqueue(tenant, "chaos.tenant", {"uid": uid})
                self._asked.add(uid)
                await asyncio.sleep(0.02)

    async def _again(self, number: int, then: "TakenThen", tell) -> Report:  # type: ignore[no-untyped-def]
        """Restore a backup, let it drain, and judge it."""
        path, accepted = then.path, then.accepted
        self._name, begun = f"again-{number}", time.monotonic()
        self.report = Report()
        if isinstance(self._source, LocalCluster):
            self._source.flush()
        else:
            self._server = LocalServer(DURABLE)
            self._server.start()
        try:
            self._write_file()
            ended: dict[str, str] = {}

            async def look(valkey) -> None:  # type: ignore[no-untyped-def]
                ended.update(await EFFECTS.at().all(valkey))
                self.report.kills["days to rotate"] = await self._days_held(valkey)

            await Restore(self.app().installation()).run(path, prepare=look)
            # The outside world goes on: what it got between the backup and the end of the first run it has.
            before = await self._received()
            (self.directory / "accepted").write_text("".join(f"accepted {uid}\n" for uid in sorted(accepted)))
            async with programs("tests.faults.messaging_program") as start:
                cast = [await start("work", str(self._file)), await start("serve", str(self._file))]
                for program in cast:
                    await program.hears("working", seconds=120)
                await self._drain(tell)
                async with self.app().running() as running:
                    await running.rotation.run()
                    await self._judge_addresses(running.switchboard.contacts, then.addresses)
                    await self._judge_tenants(running.valkey, then.asked)
            await self._judge()
            await self._judge_sending(ended, before)
            await self._judge_days()
            self.report.seconds = time.monotonic() - begun
            tell(f"backup {number + 1} restored: {len(ended)} had ended, {self.report.accepted} did in all")
            return self.report
        finally:
            if self._server is not self._source:
                self._server.stop()
                self._server = self._source

    async def _drain(self, tell) -> None:  # type: ignore[no-untyped-def]
        """Until nothing is left twice in a row: what was accepted while the backup was taken is in nobody's list."""
        quiet, deadline = 0, time.monotonic() + DRAIN_SECONDS
        valkey = await self._connect()
        try:
            while quiet < 2 and time.monotonic() < deadline:
                await super()._drain(tell)
                await asyncio.sleep(3)
                quiet = 0 if await self._waiting(valkey) else quiet + 1
        finally:
            await valkey.aclose()

    async def _received(self) -> Counter[str]:
        providers = await connect(self._providers.url)
        try:
            return await received(providers)
        finally:
            await providers.aclose()

    async def _judge_messages(self, valkey, providers) -> None:  # type: ignore[no-untyped-def]
        """Judged by ``_judge_sending``: the first run and the restored one wrote to the same people."""

    async def _judge_sending(self, ended: dict[str, str], before: Counter[str]) -> None:
        """What had ended when the backup was taken is not sent again; nothing is sent twice by the restored one."""
        now = await self._received()
        for name, count in now.items():
            more = count - before[name]
            if more and f"tch_chaos_{name[1:]}" in ended:
                self.report.unexplained.append(f"{name} had ended before the backup, and was sent {more} times more")
            if more > 1:
                self.report.unexplained.append(f"{name} was sent {more} times by the restored installation")
        self.report.messages = now.total() - before.total()

    async def _judge_addresses(self, contacts, addresses) -> None:  # type: ignore[no-untyped-def]
        """Whoever had come before the backup has the addresses they had, in SQL and for whoever sends."""
        emails, phones = await contacts.emails_of(addresses), await contacts.phones_of(addresses)
        for sub, (email, phone) in addresses.items():
            listed = ([each.address for each in await contacts.listed_emails(sub)],
                      [each.address for each in await contacts.listed_phones(sub)])
            sent_to = emails.get(sub, []), phones.get(sub, [])
            if listed != (email, phone) or sent_to != (email, phone):
                self.report.broken.append(f"{sub} had {email} {phone}, is listed with {listed} and sent to {sent_to}")
        self.people_judged += len(addresses)

    async def _judge_tenants(self, valkey, asked: set[str]) -> None:  # type: ignore[no-untyped-def]
        """What tenants had asked for before the backup was done: once, or again if it was under way then."""
        deadline, runs = time.monotonic() + DRAIN_SECONDS, dict[str, int]()
        while asked - runs.keys() and time.monotonic() < deadline:
            runs = await TENANTS.at().all(valkey)
            await asyncio.sleep(0.2)
        self.report.broken += [f"{uid} of a tenant was lost" for uid in sorted(asked - runs.keys())]
        self.report.broken += [f"{uid} of a tenant ran {count} times" for uid, count in runs.items() if count > 2]
        self.tenants_judged += len(asked)

    async def _days_held(self, valkey) -> int:  # type: ignore[no-untyped-def]
        family = self.app().catalogue().families[FAMILY]
        lane = lanes_of(valkey, family)[0]
        days = list(self._counted)
        return sum([bool((await family.read(lane, day)).counts[EVENT]) for day in days])

    async def _judge_days(self) -> None:
        """Each day that was over is in SQL with its count once, or still in Valkey."""
        family = self.app().catalogue().families[FAMILY]
        table = self.app().installation().tables().table(family.name)
        async with Database.open(str(self.settings()["store.url"])) as database, database.reading() as sql:
            rows = (await sql.execute(select(table.c.retrieved_for, table.c[EVENT]))).all()
        valkey = await self._connect()
        try:
            lane = lanes_of(valkey, family)[0]
            for day, count in self._counted.items():
                stored = sum(each for label, each in rows if label == dates.unix_date_to_date(day).isoformat())
                held = (await family.read(lane, day)).counts[EVENT]
                if stored + held != count:
                    self.report.broken.append(f"day {day}: {stored} in SQL and {held} in Valkey, {count} were counted")
        finally:
            await valkey.aclose()
        self.report.outcomes["days in SQL"] = len(rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.backup_chaos", description="backups under load")
    parser.add_argument("--touches", type=int, default=300)
    parser.add_argument("--backups", type=int, default=5)
    parser.add_argument("--lanes", type=int, default=0, help="on the six-node cluster, with so many lanes")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        chaos = BackupChaos(Path(directory), given.touches, given.backups, given.lanes)
        reports = asyncio.run(chaos.run_all(lambda line: print(line, flush=True)))
    for report in reports:
        print("\n".join(report.lines()), end="\n\n")
    return 0 if all(report.holds for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main())
