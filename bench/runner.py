"""Plays a suite: every contestant in a process of its own, taking turns, round after round."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.environments import ROOT, interpreter
from bench.machine import Watch, wait_until_calm
from bench.plan import Case, Contestant, Suite
from bench.results import Measurement, Round
from bench.stage import Stage


@dataclass(frozen=True, slots=True)
class Pace:
    """How long and how often to measure."""

    seconds: float = 2.0
    warm_up: float = 0.5
    rounds: int | None = None
    calm_wait_seconds: float = 8.0

    def rounds_of(self, suite: Suite) -> int:
        return self.rounds if self.rounds is not None else suite.rounds


QUICK = Pace(seconds=0.2, warm_up=0.05, rounds=1, calm_wait_seconds=0.0)


@dataclass(slots=True)
class Played:
    """Everything that was measured in a suite, by case name, and what went wrong."""

    rounds: dict[str, list[Round]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


class Failed(Exception):
    """A measured process did not give an answer; the message says what it said instead."""


def play(suite: Suite, pace: Pace, tell: Callable[[str], None]) -> Played:
    """Measure the suite. ``tell`` hears what is about to be measured, once for every measurement.

    Rounds are the outer loop, so a slow minute of the machine costs every case a round and no case all of them. Inside
    a round the contestants of a case follow each other directly, and each round another one goes first.
    """
    played = Played({case.name: [] for case in suite.cases})
    total = pace.rounds_of(suite)
    with suite.stage() as stage:
        for number in range(total):
            for case in suite.cases:
                if not case.contestants or (case.most_rounds is not None and number >= case.most_rounds):
                    continue
                wait_until_calm(pace.calm_wait_seconds)
                label = f"{suite.name} {number + 1}/{total} · {case.name}"
                played.rounds[case.name].append(_round(case, number, stage, pace, label, tell, played.failures))
    return played


def measure(contestant: Contestant, stage: Stage, pace: Pace, patience_seconds: float) -> Measurement:
    """Clear the stage, run the contestant to its end, and take its answer."""
    stage.clear()
    command = [
        interpreter(contestant.home), "-m", contestant.module, *contestant.arguments,
        "--url", stage.url, "--seconds", str(pace.seconds), "--warm-up", str(pace.warm_up),
    ]
    watch = Watch(stage)
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=patience_seconds, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"no answer within {patience_seconds:.0f} s") from None
    disturbance = watch.read()
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise Failed(lines[-1] if lines else f"exit code {done.returncode}")
    answer = json.loads(done.stdout.splitlines()[-1])
    return Measurement(answer["figures"], answer["facts"], disturbance)


def _round(case: Case, number: int, stage: Stage, pace: Pace, label: str, tell: Callable[[str], None],
           failures: list[str]) -> Round:
    first = number % len(case.contestants)
    measured: dict[str, Measurement] = {}
    for contestant in case.contestants[first:] + case.contestants[:first]:
        tell(f"{label} · {contestant.name}")
        try:
            measured[contestant.name] = measure(contestant, stage, pace, case.patience_seconds)
        except Failed as problem:
            failures.append(f"{case.name}, {contestant.name}: {problem}")
    return measured
