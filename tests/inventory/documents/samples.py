"""The sample documents beside this module, and what must be read from each."""

from pathlib import Path

from keystead.inventory.models import Entry

SAMPLES = Path(__file__).parent / "samples"
ANSWER = ".expected.tsv"


def names() -> list[str]:
    return sorted(path.name.removesuffix(ANSWER) for path in SAMPLES.glob(f"*{ANSWER}"))


def document(name: str) -> Path:
    return next(path for path in SAMPLES.glob(f"{name}.*") if not path.name.endswith(ANSWER))


def answers(name: str) -> dict[tuple[str, str], tuple[str, str]]:
    rows = [line.split("\t") for line in (SAMPLES / f"{name}{ANSWER}").read_text(encoding="utf-8").splitlines()]
    return {(kind, pattern): (type_, ttl) for kind, pattern, type_, ttl in rows}


def ttl_of(entry: Entry) -> str:
    if entry.ttl is None:
        return "-"
    seconds = entry.ttl.value.seconds
    return entry.ttl.value.rule.value + ("" if seconds is None else f" {seconds:.0f}")
