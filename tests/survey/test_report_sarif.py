import json

from keystead.inventory import Source
from keystead.survey.audit import Audit
from keystead.survey.findings import Drift, Finding
from keystead.survey.report_sarif import to_sarif

from .entries import entry, inventory

FOUND = Finding(Drift.CODE_TYPE, "a:{b}", "is used as zset in the code; the inventory says hash", "correct one of them",
                (Source("app.py", 7), Source("keys.md", 2)), 3, ("a:1",))


def written(*findings, known=(), partial=()):
    audit = Audit(inventory(entry("a:{b}", "hash")), findings, known=known, partial=partial)
    return json.loads(to_sarif(audit, "1.2.3"))["runs"][0]


def test_finding_has_a_rule_a_level_a_place_and_a_fingerprint():
    run = written(FOUND)
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert rule["id"] == result["ruleId"] == "code-type"
    assert result["level"] == "error"
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "app.py"}, "region": {"startLine": 7}}
    assert result["partialFingerprints"]["keysteadFinding/v1"] == FOUND.fingerprint
    assert "a:{b}: is used as zset" in result["message"]["text"] and "a:1" in result["message"]["text"]


def test_finding_without_a_line_is_put_into_the_inventory():
    (result,) = written(Finding(Drift.UNDOCUMENTED, "x", "says", "mend", (Source("valkey://localhost"),)))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "keys.md"


def test_what_the_baseline_has_is_suppressed():
    (result,) = written(known=(FOUND,))["results"]
    assert result["suppressions"] and result["baselineState"] == "unchanged"


def test_partial_look_is_told():
    run = written(partial=("the server went away",))
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] == "the server went away"


def test_every_kind_has_a_rule_of_its_own():
    rules = written()["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules) == len(Drift)
    assert all(rule["shortDescription"]["text"] for rule in rules)


def test_place_is_an_address_whatever_the_files_are_called():
    described = inventory(entry("a", file="our docs/keys #1.md", line=3), name="our docs/keys #1.md + more.md")
    audit = Audit(described, (Finding(Drift.UNDOCUMENTED, "x", "says", "mend"),))
    (result,) = json.loads(to_sarif(audit, "1"))["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert place == "our%20docs/keys%20%231.md"


def test_look_that_ended_early_did_not_succeed():
    audit = Audit(inventory(entry("a")), (), unfinished=True)
    assert not json.loads(to_sarif(audit, "1"))["runs"][0]["invocations"][0]["executionSuccessful"]
