"""Messages under fire: workers, HTTP server, Valkey and sandbox are killed at random while touches go out.

    make chaos-messaging                                     10,000 touches, 200 kills; then the same with two lanes
    python -m tests.faults.messaging_chaos --touches 300 --kills 12
    python -m tests.faults.messaging_chaos --lanes 2         the same on the six-node cluster with two lanes

On the cluster a write is answered when a replica has it, and a primary that is killed stays away until its replica took
over, or comes back before; some have writes then that no replica ever got. Replicas are killed too. A shard never loses
both of its nodes: that would lose what was answered.

Afterwards every touch that was accepted must have ended in one final state, its callback must have taken effect once,
nobody may have got a message twice without a reason, counts must add up, and no key may be left that is not explained.
"""

import argparse
import asyncio
import json
import random
import socket
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from keystead.alerting import SANDBOX_MAIL_TO
from keystead.app import App
from keystead.engine import Valkey, connect
from keystead.engine.embedded_process import ValkeyProcess
from keystead.messaging.sandbox import Outbox
from keystead.settings import load_settings
from keystead.stats.lanes import lanes_of
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer

from . import messaging_program
from .messaging_program import EFFECTS, RUNS
from .programs import Program, Starter, programs

WORKERS = 2
DRAIN_SECONDS = 420.0
# What stays for good, on purpose. What is remembered for a while, so that nothing happens twice, expires by itself.
# Dead letters are told of by themselves: their touches have ended as failed.
STANDING = (":workers", "points_version", ":dead", "outbox_queues")
DURABLE = {"appendonly": "yes", "appendfsync": "always"}
# What happens to a node of the cluster, and how often.
TROUBLES = {
    "primary replaced": 3, "primary ahead of its replica": 3, "primary back": 2, "primary stepped down": 2,
    "replica": 2,
}
FAULTS = {
    "latency_ms": 20, "server_error": 0.02, "throttle": 0.02, "cut_before": 0.01, "cut_after": 0.01, "lost": 0.02,
    "duplicated": 0.05, "reordered": 0.05, "early": 0.05,
}


@dataclass
class Report:
    """What happened."""

    kills: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    accepted: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    without_end: list[str] = field(default_factory=list)
    two_ends: list[str] = field(default_factory=list)
    callback_runs: int = 0
    messages: int = 0
    repeated: int = 0
    unexplained: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    undeclared: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    dead: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def lines(self) -> list[str]:
        killed = ", ".join(f"{count} {what}" for what, count in sorted(self.kills.items()))
        return [
            f"took              {self.seconds:.0f} s",
            f"killed            {sum(self.kills.values())}: {killed}",
            f"accepted          {self.accepted} touches",
            f"ended             {dict(self.outcomes)}",
            f"without an end    {len(self.without_end)} {self.without_end[:5] or ''}",
            f"with two ends     {len(self.two_ends)} {self.two_ends[:5] or ''}",
            f"callbacks ran     {self.callback_runs} times",
            f"messages          {self.messages} at the providers, {self.repeated} of them again, "
            f"without a reason: {len(self.unexplained)} {self.unexplained[:3] or ''}",
            f"dead letters      {self.dead or 'none'}",
            f"counts            {self.broken or 'add up'}",
            f"undeclared keys   {self.undeclared or 'none'}",
            f"left behind       {self.left or 'nothing'}",
        ]

    @property
    def holds(self) -> bool:
        wrong = self.without_end, self.two_ends, self.unexplained, self.broken, self.undeclared, self.left
        return not any(wrong)


async def received(providers: Valkey) -> Counter[str]:
    """How many messages the providers took for each name; what names nobody stands under an empty one."""
    seen: Counter[str] = Counter()
    async for message in Outbox(providers).all():
        if message.to != SANDBOX_MAIL_TO:  # that is an alert, for whoever runs the installation
            words = f"{message.title} {message.text}".replace("\n", " ").split()
            seen[next((word.strip(",?.") for word in words if word.startswith("n0")), "")] += 1
    return seen


class Chaos:
    """One run: on one server, or with ``lanes`` on the cluster."""

    def __init__(self, directory: Path, touches: int, kills: int, seed: int, lanes: int = 0) -> None:
        self.directory, self.touches, self.kills = directory, touches, kills
        self.report = Report()
        self._random = random.Random(seed)
        self._server = LocalCluster(options=DURABLE) if lanes else LocalServer(DURABLE)
        self._lanes = max(1, lanes)
        self._trouble: asyncio.Future[None] | None = None  # of the cluster; ends when it is well again
        self._providers = LocalServer(DURABLE)  # theirs, and never killed
        self._ports = [_free_port() for _ in range(2)]
        self._file = directory / "settings.json"

    @property
    def people(self) -> int:
        """Few: each is a row and three addresses, and callbacks wait behind the jobs that tell of these."""
        return max(5, min(40, self.touches // 5))

    @property
    def public_url(self) -> str:
        return f"http://127.0.0.1:{self._ports[0]}"

    @property
    def sandbox_url(self) -> str:
        return f"http://127.0.0.1:{self._ports[1]}/sandbox"

    def settings(self) -> dict[str, object]:
        return {
            "valkey.url": self._server.url, "valkey.replicas": int(isinstance(self._server, LocalCluster)),
            "valkey.replicas_timeout_seconds": 0.5,  # shorter than most troubles: many writes are not answered
            "messaging.lanes": self._lanes, "store.url": f"sqlite:///{self.directory}/chaos.sqlite",
            "store.files_url": (self.directory / "files").as_uri(), "http.port": self._ports[0], "log.level": "error",
            "messaging.public_url": self.public_url, "messaging.retry_base_seconds": 0.5,
            "messaging.retry_cap_seconds": 4.0, "messaging.person_day_messages": 0, "messaging.quiet_from_hour": 0,
            "messaging.quiet_until_hour": 0, "messaging.same_content_seconds": 0, "messaging.retries": 6,
            "sms.url": f"{self.sandbox_url}/twilio", "sms.rate_per_second": 0.0, "sms.wait_seconds": 8,
            "email.url": f"{self.sandbox_url}/ses", "email.rate_per_second": 0.0, "email.access_key": "key",
            "email.secret_key": "secret", "email.receipt_seconds": 90, "email.verify_seconds": 30,
            "push.url": f"{self.sandbox_url}/expo",
            "push.rate_per_second": 0.0, "push.cold_seconds": 4,
        }

    async def run(self, tell=lambda line: None) -> Report:  # type: ignore[no-untyped-def]
        begun = time.monotonic()
        self._server.start()
        self._providers.start()
        told = {
            "settings": self.settings(), "public_url": self.public_url, "directory": str(self.directory),
            "people": self.people,
        }
        self._file.write_text(json.dumps(told))
        try:
            async with App(load_settings(self.settings(), environment={}), [messaging_program]).running() as running:
                await self._invite(running)
            async with programs("tests.faults.messaging_program") as start, \
                    programs("keystead.messaging.sandbox") as start_sandbox:
                await self._fire(start, start_sandbox, tell)
                tell("waiting until everything has ended")
                await self._drain(tell)
            await self._judge()
        finally:
            self._server.stop()
            self._providers.stop()
        self.report.seconds = time.monotonic() - begun
        return self.report

    async def _invite(self, running) -> None:  # type: ignore[no-untyped-def]
        board = running.switchboard
        await board.points.ensure_built_in()
        for number in range(self.people):
            person = await running.users.ensure("chaos", str(number))
            await board.contacts.add_phone(person.sub, f"+1415555{number:04}", verified=True)
            await board.contacts.add_email(person.sub, f"p{number}@example.com", verified=True)
            await board.tokens.register(person.sub, f"ExponentPushToken[chaos{number:06}]", "ios")

    async def _sandbox(self, start: Starter) -> Program:
        events = f"{self.public_url}/api/1/emails/sns-mail"
        program = await start(
            "--valkey-url", self._providers.url, "--port", str(self._ports[1]), "--events-url", events,
            "--keep-messages", str(10 * self.touches + 1000), "--key-bits", "1024",
        )
        await program.hears(f"http://127.0.0.1:{self._ports[1]}")
        return program

    async def _fire(self, start: Starter, start_sandbox: Starter, tell) -> None:  # type: ignore[no-untyped-def]
        sandbox = await self._sandbox(start_sandbox)
        async with aiohttp.ClientSession() as session:
            answer = await session.post(f"{self.sandbox_url}/faults", json=FAULTS)
            assert answer.status == 200, await answer.text()
        pause = 1.0 * self.kills / max(1, self.touches)
        parts = {f"worker {number}": ("work", str(self._file)) for number in range(WORKERS)}
        parts["server"] = ("serve", str(self._file))
        parts["producer"] = ("produce", str(self._file), "0", str(self.touches), str(pause))
        cast = {name: await start(*words) for name, words in parts.items()}

        async def replace() -> None:
            """Whoever ended by itself, because it could not start, is started again."""
            for name, program in cast.items():
                if program.process.returncode is not None and not program.words("produced"):
                    cast[name] = await start(*parts[name])

        for program in cast.values():
            await program.hears("working", seconds=120)
        done = 0
        while done < self.kills:
            await asyncio.sleep(self._random.uniform(0.1, 1.2))
            what = self._random.choices(("worker", "server", "valkey", "sandbox", "producer"), (6, 3, 2, 2, 1))[0]
            if done == self.kills // 2:
                what = "valkey"  # at least one, however short the run
            if what == "sandbox":
                await sandbox.kill()
                sandbox = await self._sandbox(start_sandbox)
            elif what == "valkey":
                what = await self._kill_valkey(first=done == self.kills // 2)
            else:
                name = f"worker {self._random.randrange(WORKERS)}" if what == "worker" else what
                if cast[name].words("produced") or not cast[name].words("working"):
                    continue  # one that still starts holds nothing
                await cast[name].kill()
                cast[name] = await start(*parts[name])
            self.report.kills[what] += 1
            done += 1
            if done % 10 == 0:
                tell(f"{done} of {self.kills} kills")
            await replace()
        while not cast["producer"].words("produced"):
            await replace()
            await asyncio.sleep(1)
        await self._well()
        deadline = time.monotonic() + DRAIN_SECONDS
        while not all(program.words("working") for program in cast.values()):
            assert time.monotonic() < deadline, "the programs do not start any more"
            await replace()  # the last kill may have hit whoever was just starting
            await asyncio.sleep(1)

    async def _kill_valkey(self, first: bool) -> str:
        """Says what it did. On the cluster the others go on being killed while it gets well again."""
        if isinstance(self._server, LocalServer):
            self._server.kill()
            await asyncio.sleep(self._random.uniform(0, 0.5))
            self._server.ensure_running()
            return "valkey"
        await self._well()
        what = self._random.choices(list(TROUBLES), list(TROUBLES.values()))[0]
        if first:
            what = "primary ahead of its replica"
        primary, away = self._random.choice(self._server.primaries()), self._random.uniform(0, 0.5)
        self._trouble = asyncio.ensure_future(asyncio.to_thread(_trouble, self._server, what, primary, away))
        return what

    async def _well(self) -> None:
        """A shard must not lose both its nodes, so one trouble is over before the next begins."""
        if self._trouble is not None:
            await self._trouble

    async def _connect(self) -> Valkey:
        return await connect(self._server.url, lanes=self._lanes)

    async def _drain(self, tell) -> None:  # type: ignore[no-untyped-def]
        """Until every accepted touch has an effect, or nothing ended for too long."""
        deadline, valkey, left = time.monotonic() + DRAIN_SECONDS, await self._connect(), self.touches
        try:
            while time.monotonic() < deadline:
                missing, waiting = self._accepted() - set(await EFFECTS.at().all(valkey)), await self._waiting(valkey)
                if not missing and not waiting:
                    return
                if len(missing) < left:
                    deadline, left = time.monotonic() + DRAIN_SECONDS, len(missing)
                tell(f"{len(missing)} touches have not ended; there is {', '.join(waiting[:4]) or 'nothing left'}")
                await asyncio.sleep(5)
        finally:
            await valkey.aclose()

    async def _waiting(self, valkey) -> list[str]:  # type: ignore[no-untyped-def]
        """What should be empty when everything has ended, and is not."""
        found = []
        async for raw in _keys(valkey):
            key = raw.decode()
            name = key.partition("}")[2] if key.startswith("{") else key
            if name.startswith(("sms:", "email:", "push:", "touch:", "outbox")) and not name.endswith(STANDING):
                found.append(key)
        expiries = await asyncio.gather(*(valkey.pttl(key) for key in found))
        return [key for key, expires in zip(found, expiries, strict=True) if expires == -1]

    def _accepted(self) -> set[str]:
        lines = (self.directory / "accepted").read_text().splitlines()
        return {line.split()[1] for line in lines}

    async def _judge(self) -> None:
        report, valkey, providers = self.report, await self._connect(), await connect(self._providers.url)
        try:
            accepted, effects = self._accepted(), await EFFECTS.at().all(valkey)
            report.accepted = len(accepted)
            report.outcomes = Counter(effects.values())
            report.without_end = sorted(accepted - set(effects))
            runs = defaultdict(set)
            for line in await RUNS.at().range(valkey, 0, -1):
                uid, outcome = line.split()
                report.callback_runs += 1
                runs[uid].add(outcome)
            report.two_ends = sorted(uid for uid, outcomes in runs.items() if len(outcomes) > 1)
            await self._judge_messages(valkey, providers)
            await self._judge_counts(valkey)
            report.left = sorted(await self._waiting(valkey))[:10]
            async for raw in _keys(valkey, "*:dead"):
                report.dead[raw.decode()] = await valkey.llen(raw)
        finally:
            await valkey.aclose()
            await providers.aclose()

    async def _judge_messages(self, valkey, providers) -> None:  # type: ignore[no-untyped-def]
        """A second message to somebody needs a reason: the courier died, or the answer was lost."""
        from keystead.messaging.sending import traced

        seen = await received(providers)
        self.report.messages = seen.total()
        if seen[""]:
            self.report.unexplained.append(f"{seen['']} messages are for nobody who was to be touched")
        for name, count in seen.items():
            if name and count > 1:
                self.report.repeated += count - 1
                touch = [step for lane in valkey.lanes for step in await traced(lane, f"tch_chaos_{name[1:]}")]
                uids = [uid for entry in touch for uid in str(entry.facts.get("messages", "")).split(",") if uid]
                steps = [entry for uid in uids for lane in valkey.lanes for entry in await traced(lane, uid)]
                taken = sum(entry.what == "taken up" or "maybe_sent_before" in entry.facts for entry in steps)
                if taken < count:
                    self.report.unexplained.append(f"{name} arrived {count} times, and was taken up {taken} times")

    async def _judge_counts(self, valkey) -> None:  # type: ignore[no-untyped-def]
        app = App(load_settings(self.settings(), environment={}), [messaging_program])
        for family in app.catalogue().families.values():
            total: Counter[str] = Counter()
            for lane in lanes_of(valkey, family):
                earliest = await family.earliest(lane)
                for day in range(earliest, earliest + 3) if earliest is not None else ():
                    total.update((await family.read(lane, day)).counts)
            if not total or not family.name.startswith(("sms", "email", "push", "touch")):
                continue
            counts = {event: total[event] for event in family.events}
            for identity in family.identities:
                if (broken := identity.check(counts)) is not None:
                    self.report.broken.append(f"{family.name}: {broken}")
        registry = app.registry(valkey.layout)
        async for raw in _keys(valkey):
            if registry.resolve(raw) is None:
                self.report.undeclared.append(raw.decode(errors="replace"))


def _trouble(cluster: LocalCluster, what: str, primary: ValkeyProcess, away_seconds: float) -> None:
    if what.startswith(("primary replaced", "primary ahead")):
        cluster.kill_and_replace(primary, ahead_seconds=3 * away_seconds if "ahead" in what else 0.0)
        time.sleep(away_seconds)
    elif what == "primary stepped down":
        cluster.fail_over(primary)
    else:
        (primary if what == "primary back" else cluster.replica_of(primary)).kill()
        time.sleep(away_seconds)
    cluster.heal()


async def _keys(valkey: Valkey, like: str | None = None) -> AsyncIterator[bytes]:
    for node in await valkey.nodes():
        async for raw in node.scan_iter(like, count=1000):
            yield raw


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as made:
        port: int = made.getsockname()[1]
        return port


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.messaging_chaos", description="messages under fire")
    parser.add_argument("--touches", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lanes", type=int, default=0, help="on the six-node cluster, with so many lanes")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        chaos = Chaos(Path(directory), given.touches, given.kills, given.seed, given.lanes)
        report = asyncio.run(chaos.run(lambda line: print(line, flush=True)))
    print("\n".join(report.lines()))
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())
