"""The benchmark harness: what it writes, how it judges, and that it runs without the peers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench import suites
from bench.__main__ import narrow
from bench.environments import ROOT, CannotBuild, PeersEnvironment
from bench.load.loops import percentile
from bench.machine import Disturbance
from bench.plan import OURS, Bar, Case, Figure
from bench.results import Measurement, Round, calm_rounds, rows

FIELDS = {"case", "unit", "ours", "peers", "ratio", "bar", "holds"}


def measured(stolen: float = 0.0, others: float = 0.0, **figures: float) -> Measurement:
    return Measurement(figures, {}, Disturbance(stolen, others))


def round_of(stolen: float = 0.0, **rates: float) -> Round:
    return {name: measured(stolen, per_second=rate) for name, rate in rates.items()}


def case_of(*bars: Bar, lower_is_better: bool = False) -> Case:
    return Case("GET", (Figure("GET", "per_second", "calls/s", lower_is_better, bars),), ())


def bench(*flags: str, out: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "bench", "--out", str(out), *flags], cwd=ROOT, capture_output=True,
                          text=True, timeout=600, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})


def test_quick_run_without_peers_writes_rows_of_the_agreed_shape(tmp_path: Path) -> None:
    done = bench("--only", "wire", "--case", "GET, one at a time", "--quick", "--no-peers", out=tmp_path)

    assert done.returncode == 0, done.stderr
    [row] = json.loads((tmp_path / "wire.json").read_text())
    assert set(row) == FIELDS
    assert row["ours"] > 0
    assert (row["case"], row["unit"], row["peers"]) == ("GET, one at a time", "calls/s", {})
    assert (row["bar"], row["ratio"], row["holds"]) == ("≥ 2.5x redis-py", None, None)
    assert "GET, one at a time" in done.stdout, "the table"
    assert "wire 1/1" in done.stderr, "progress while it runs"
    raw = json.loads((tmp_path / "raw" / "wire.json").read_text())
    [only] = raw["cases"]["GET, one at a time"]
    assert only[OURS]["facts"]["gc"] is True
    assert only[OURS]["figures"]["per_second"] == row["ours"]
    assert {"stolen", "others"} <= set(only[OURS])


def test_unknown_suite_is_refused_in_one_line(tmp_path: Path) -> None:
    done = bench("--only", "wier", out=tmp_path)

    assert done.returncode == 2
    assert done.stderr.strip() == "bench: there is no suite 'wier'; there are " + ", ".join(suites.NAMES)


def test_flags_that_leave_nothing_to_measure_are_refused(tmp_path: Path) -> None:
    assert bench("--only", "wire", "--case", "no such case", out=tmp_path).returncode == 2
    assert bench("--only", "wire", "--no-ours", "--no-peers", out=tmp_path).returncode == 2


def test_ratio_compares_with_the_peer_that_the_bar_names() -> None:
    rounds = [round_of(keystead=120.0, **{"redis-py": 10.0, "valkey-glide": 40.0})]

    first, second = rows(case_of(Bar(12, "redis-py"), Bar(4, "valkey-glide")), rounds)

    assert (first.case, first.ratio, first.bar, first.holds) == ("GET, against redis-py", 12.0, "≥ 12x redis-py", True)
    assert (second.case, second.ratio, second.holds) == ("GET, against valkey-glide", 3.0, False)
    assert first.peers == second.peers == {"redis-py": 10.0, "valkey-glide": 40.0}


def test_ratio_is_turned_over_where_lower_is_better() -> None:
    rounds = [round_of(keystead=2.0, **{"redis-py": 8.0})]

    [row] = rows(case_of(Bar(1, "redis-py"), lower_is_better=True), rounds)

    assert (row.ratio, row.bar, row.holds) == (4.0, "≤ redis-py", True)


@pytest.mark.parametrize(("ours", "lower_is_better", "ratio", "holds"), [
    (500_000.0, False, 2.0, True), (125_000.0, False, 0.5, False),
    (125_000.0, True, 2.0, True), (500_000.0, True, 0.5, False),
])
def test_limit_without_a_peer_is_judged_by_the_limit(
    ours: float, lower_is_better: bool, ratio: float, holds: bool
) -> None:
    [row] = rows(case_of(Bar(250_000), lower_is_better=lower_is_better), [round_of(keystead=ours)])

    assert (row.ratio, row.holds) == (ratio, holds)
    assert row.bar == ("≤ 250,000" if lower_is_better else "≥ 250,000")


def test_figure_without_a_bar_is_compared_with_the_best_peer_and_holds_nothing() -> None:
    [row] = rows(case_of(), [round_of(keystead=80.0, **{"redis-py": 10.0, "valkey-glide": 40.0})])

    assert (row.ratio, row.bar, row.holds) == (2.0, None, None)


def test_bar_against_the_best_of_some_peers_leaves_the_others_aside() -> None:
    rounds = [round_of(keystead=90.0, unsafe=30.0, slow=5.0, safe=10.0)]

    first, second = rows(case_of(Bar(10, "the safe ones", ("slow", "safe")), Bar(2, "unsafe")), rounds)

    assert (first.case, first.ratio, first.bar, first.holds) == (
        "GET, against the safe ones", 9.0, "≥ 10x the safe ones", False)
    assert (second.ratio, second.holds) == (3.0, True)


def test_bar_against_the_best_of_some_is_judged_by_those_that_were_measured() -> None:
    [row] = rows(case_of(Bar(10, "the safe ones", ("slow", "safe"))), [round_of(keystead=90.0, slow=5.0)])
    [none] = rows(case_of(Bar(10, "the safe ones", ("slow", "safe"))), [round_of(keystead=90.0, unsafe=5.0)])

    assert (row.ratio, row.holds) == (18.0, True)
    assert (none.ratio, none.holds) == (None, None)


def test_medians_come_from_the_calmest_three_of_five_rounds() -> None:
    stolen_and_rate = [(0.5, 1.0), (0.0, 100.0), (0.01, 110.0), (0.4, 2.0), (0.02, 90.0)]
    rounds = [round_of(stolen, keystead=rate, **{"redis-py": 10.0}) for stolen, rate in stolen_and_rate]

    [row] = rows(case_of(Bar(5, "redis-py")), rounds)

    assert (row.ours, row.ratio) == (100.0, 10.0)


def test_a_round_disturbed_on_one_side_is_dropped_for_both() -> None:
    calm = round_of(keystead=100.0, **{"redis-py": 10.0})
    slow_peer = {OURS: measured(per_second=100.0), "redis-py": measured(others=0.6, per_second=1.0)}

    assert calm_rounds([slow_peer, calm, slow_peer, calm, calm]) == [calm, calm, calm]


def test_a_round_in_which_a_contestant_failed_does_not_count() -> None:
    whole = round_of(keystead=100.0, **{"redis-py": 10.0})

    assert calm_rounds([round_of(keystead=300.0), whole, {}]) == [whole]


def test_a_peer_that_could_not_be_measured_leaves_its_bar_undecided() -> None:
    [row] = rows(case_of(Bar(12, "redis-py")), [round_of(keystead=100.0)])

    assert (row.ours, row.ratio, row.holds) == (100.0, None, None)


def test_percentile_is_the_nearest_rank() -> None:
    assert percentile([float(number) for number in range(1, 101)], 0.99) == 100.0
    assert percentile([1.0], 0.99) == 1.0


@pytest.mark.parametrize("name", suites.NAMES)
def test_every_bar_names_a_contestant_and_every_case_has_ours(name: str) -> None:
    suite = suites.load(name)

    assert suite.name == name
    for case in suite.cases:
        taking_part = {contestant.name for contestant in case.contestants}
        named = {name for figure in case.figures for bar in figure.bars for name in bar.rivals}
        assert OURS in taking_part
        assert named <= taking_part


def test_row_names_of_a_suite_are_unique() -> None:
    for name in suites.NAMES:
        found = [row.case for case in suites.load(name).cases for row in rows(case, [])]
        assert len(found) == len(set(found))


def test_without_peers_only_ours_is_left() -> None:
    suite = narrow(suites.load("wire"), "", True, False)

    assert {each.name for case in suite.cases for each in case.contestants} == {OURS}


def test_peers_environment_is_made_again_when_its_requirements_change(tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("")
    environment = PeersEnvironment(tmp_path / "venv", requirements)
    assert not environment.is_current()

    environment.build()
    assert environment.is_current()
    assert environment.python.exists()

    requirements.write_text("# another wish\n")
    assert not environment.is_current()


def test_peers_environment_that_could_not_be_filled_does_not_count_as_made(tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("./no-such-package\n")
    environment = PeersEnvironment(tmp_path / "venv", requirements)

    with pytest.raises(CannotBuild, match="use --no-peers"):
        environment.build()
    assert not environment.is_current()


def test_benchmarked_script_is_the_same_for_every_client() -> None:
    from bench.load.clients import SCRIPT_FILE, script_text

    assert script_text().startswith("#!lua\n")
    assert (ROOT / "bench" / "load" / SCRIPT_FILE).is_file()
