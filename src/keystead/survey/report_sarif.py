"""An audit as SARIF 2.1.0, for the code-scanning pages of hosting services and for editors."""

import json
from typing import Any
from urllib.parse import quote

from keystead.survey.audit import Audit
from keystead.survey.findings import Drift, Finding, Severity

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def to_sarif(audit: Audit, version: str) -> str:
    """One run. A finding without a line is put at the first line of the inventory: a result needs a place."""
    rules = [{
        "id": kind.label, "name": "".join(word.title() for word in kind.label.split("-")),
        "shortDescription": {"text": kind.means},
        "defaultConfiguration": {"level": _LEVELS[kind.severity]},
    } for kind in Drift]
    results = [_result(found, audit, False) for found in audit.findings]
    results += [_result(found, audit, True) for found in audit.known]
    invocation: dict[str, Any] = {"executionSuccessful": not audit.unfinished}
    if audit.partial:
        invocation["toolExecutionNotifications"] = [
            {"level": "warning", "message": {"text": reason}} for reason in audit.partial]
    return json.dumps({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "keystead", "semanticVersion": version, "rules": rules}},
            "invocations": [invocation],
            "results": results,
        }],
    }, indent=2, ensure_ascii=False) + "\n"


def _result(found: Finding, audit: Audit, known: bool) -> dict[str, Any]:
    examples = f" For example: {', '.join(found.examples)}." if found.examples else ""
    result: dict[str, Any] = {
        "ruleId": found.kind.label,
        "ruleIndex": list(Drift).index(found.kind),
        "level": _LEVELS[found.severity],
        "message": {"text": f"{found.pattern}: {found.says}.{examples} To mend it: {found.mend}."},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": quote(file)},
                                            "region": {"startLine": max(1, line)}}}
                      for file, line in _places(found, audit)],
        "partialFingerprints": {"keysteadFinding/v1": found.fingerprint},
    }
    if known:
        result["baselineState"] = "unchanged"
        result["suppressions"] = [{"kind": "external", "justification": "it is in the baseline"}]
    return result


def _places(found: Finding, audit: Audit) -> list[tuple[str, int]]:
    placed = [(source.file, source.line) for source in found.sources if source.line]
    if placed:
        return placed[:1]
    # Of several documents the first; the name of all of them together is no file.
    file = next((source.file for entry in audit.inventory.entries for source in entry.sources if source.line), None)
    return [(file or audit.inventory.name, 1)]
