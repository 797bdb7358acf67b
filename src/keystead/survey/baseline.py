"""Findings that a team knows of and will mend later: a file of fingerprints, so that only what is new fails a build."""

import json
from collections.abc import Sequence
from pathlib import Path

from keystead.errors import Invalid
from keystead.survey.findings import Finding

VERSION = 1


def write_baseline(path: Path, findings: Sequence[Finding]) -> None:
    """Everything found now, one line each, with the words that a reviewer needs."""
    known = {found.fingerprint: f"{found.kind.label} {found.pattern}" for found in findings}
    path.write_text(json.dumps({"version": VERSION, "known": dict(sorted(known.items(), key=lambda each: each[1]))},
                               indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_baseline(path: Path) -> frozenset[str]:
    """The fingerprints in a baseline file; ``Invalid`` says what is wrong with it."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Invalid(f"there is no baseline {path}; write one with --write-baseline {path}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Invalid(f"the baseline {path} cannot be read: {error}") from None
    if not isinstance(told, dict) or told.get("version") != VERSION or not isinstance(told.get("known"), dict):
        raise Invalid(f"{path} is not a baseline; write a new one with --write-baseline {path}")
    return frozenset(told["known"])


def split(findings: Sequence[Finding], known: frozenset[str]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The findings that are new, and those that the baseline has."""
    new = tuple(found for found in findings if found.fingerprint not in known)
    return new, tuple(found for found in findings if found.fingerprint in known)
