"""An audit as a JUnit report: a test case for each pattern, so that any build server can show it."""

import re
from collections import defaultdict
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from keystead.survey.audit import Audit
from keystead.survey.findings import Finding, Severity

_NOT_IN_XML: Final = re.compile("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(audit: Audit, fail_on: Severity | None) -> str:
    """Findings as bad as ``fail_on`` are failures; the others are written down in their test case."""
    by_pattern: dict[str, list[Finding]] = defaultdict(list)
    for entry in audit.inventory.entries:
        by_pattern[entry.pattern] = []
    for found in audit.findings:
        by_pattern[found.pattern].append(found)
    failures, cases = 0, []
    for pattern, findings in by_pattern.items():
        failing = [found for found in findings if fail_on is not None and found.severity.at_least(fail_on)]
        lesser = [found for found in findings if found not in failing]
        failures += bool(failing)
        lines = [f'    <testcase classname="keystead.keys" name={_quoted(pattern)} time="0">']
        if failing:
            lines.append(f"      <failure type={_quoted(failing[0].kind.label)} message={_quoted(failing[0].says)}>"
                         f"{_text(failing)}</failure>")
        if lesser:
            lines.append(f"      <system-out>{_text(lesser)}</system-out>")
        lines.append("    </testcase>")
        cases += lines
    if audit.unfinished:
        says = audit.partial[0] if audit.partial else "the server was not seen whole"
        cases += ['    <testcase classname="keystead" name="everything was seen" time="0">',
                  f'      <error type="unfinished" message={_quoted(says)}/>', "    </testcase>"]
    head = (f'<testsuite name="keystead keys audit" tests="{len(by_pattern) + audit.unfinished}" '
            f'failures="{failures}" errors="{int(audit.unfinished)}" '
            f'skipped="0" time="{audit.seconds:.3f}">')
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>", f"  {head}", *cases, "  </testsuite>",
                      "</testsuites>"]) + "\n"


def _text(findings: list[Finding]) -> str:
    return escape(_clean("\n".join(
        f"{found.severity.value}: {found.kind.label}: {found.says}; {found.mend}"
        + "".join(f"\n  at {source}" for source in found.sources)
        + "".join(f"\n  key {example}" for example in found.examples)
        for found in findings)))


def _quoted(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    """Without what XML may not hold."""
    return _NOT_IN_XML.sub("?", text)
