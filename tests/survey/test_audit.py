import json

from keystead.inventory import Matcher, Note, Source
from keystead.survey.audit import Audit
from keystead.survey.findings import Drift, Finding, Severity
from keystead.survey.tally import Tally

from .entries import entry, inventory

WARNING = Finding(Drift.UNUSED, "b", "says", "mend")
NOTE = Finding(Drift.LARGE, "a", "says", "mend")


def looked_at():
    described = inventory(entry("a", "string"), entry("b:{x}", "string"))
    tally = Tally(Matcher(described).find, lambda *seen: None)
    for raw_key, size in ((b"a", 10), (b"b:1", 400), (b"b:2", 400), (b"c", 90)):
        tally.add(raw_key, "string", -1, size)
    return Audit(described, (WARNING, NOTE), server="valkey://localhost", tally=tally)


def test_what_fails_depends_on_what_is_asked():
    audit = looked_at()
    assert [audit.failing(bound) for bound in (Severity.NOTE, Severity.WARNING, Severity.ERROR, None)] == [
        True, True, False, False]


def test_findings_of_the_baseline_do_not_fail():
    described = inventory(entry("a", "string"))
    assert not Audit(described, (), known=(WARNING,)).failing(Severity.NOTE)


def test_largest_comes_first_and_what_nobody_explains_is_among_them():
    seen = looked_at().by_memory()
    assert [(found.pattern if found else None, tally.memory_bytes) for found, tally in seen] == [
        ("b:{x}", 800), (None, 90), ("a", 10)]


def test_report_can_be_written_as_json():
    told = json.loads(json.dumps(looked_at().as_dict()))
    assert (told["keys"], told["memory_bytes"], told["counts"]) == (4, 900, {"error": 0, "warning": 1, "note": 1})
    assert told["findings"][0] == {
        "kind": "unused", "severity": "warning", "pattern": "b", "says": "says", "mend": "mend", "keys": 0,
        "examples": [], "sources": [], "fingerprint": WARNING.fingerprint}


def test_look_that_ended_early_is_not_clean():
    assert not Audit(inventory(entry("a", "string")), (), unfinished=True).as_dict()["clean"]


def test_notes_of_the_code_are_in_the_report():
    notes = (Note("the key of GET is anything", Source("app.py", 3)),)
    assert {"says": "the key of GET is anything", "source": "app.py:3"} in Audit(
        inventory(entry("a", "string")), (), code="app", code_notes=notes).as_dict()["notes"]


def test_patterns_without_keys_are_told_and_are_no_findings():
    audit = looked_at()
    described = inventory(*audit.inventory.entries, entry("none:{x}", "string"), entry("news", kind="channel"))
    assert Audit(described, (), tally=audit.tally).as_dict()["patterns_without_keys"] == ["none:{x}"]
