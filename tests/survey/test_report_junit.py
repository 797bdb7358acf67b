from xml.etree import ElementTree

from keystead.survey.audit import Audit
from keystead.survey.findings import Drift, Finding, Severity
from keystead.survey.report_junit import to_junit

from .entries import entry, inventory

ERROR = Finding(Drift.WRONG_TYPE, "a:{b}", "3 keys are <lists> & more", "mend", keys=3, examples=("a:\x011",))
NOTE = Finding(Drift.LARGE, "c", "large", "split it")
STRAY = Finding(Drift.UNDOCUMENTED, "z:{x}", "nobody knows", "describe it")


def suite(*findings, fail_on=Severity.ERROR):
    audit = Audit(inventory(entry("a:{b}", "hash"), entry("c", "string")), findings, seconds=1.5)
    return ElementTree.fromstring(to_junit(audit, fail_on)).find("testsuite")


def test_each_pattern_is_a_test_and_so_is_what_nobody_described():
    found = suite(ERROR, STRAY)
    assert [case.get("name") for case in found] == ["a:{b}", "c", "z:{x}"]
    assert (found.get("tests"), found.get("failures")) == ("3", "2")


def test_only_findings_as_bad_as_asked_are_failures():
    found = suite(ERROR, NOTE)
    assert found.find("testcase[@name='a:{b}']/failure").get("message") == "3 keys are <lists> & more"
    assert found.find("testcase[@name='c']/failure") is None
    assert "split it" in found.find("testcase[@name='c']/system-out").text
    assert suite(ERROR, NOTE, fail_on=None).get("failures") == "0"


def test_control_characters_leave_the_report_readable():
    assert "a:?1" in suite(ERROR).find("testcase/failure").text


def test_look_that_ended_early_is_an_error():
    audit = Audit(inventory(entry("a", "hash")), (), partial=("a server went away",), unfinished=True)
    found = ElementTree.fromstring(to_junit(audit, Severity.ERROR)).find("testsuite")
    assert (found.get("tests"), found.get("failures"), found.get("errors")) == ("2", "0", "1")
    assert found.find("testcase/error").get("message") == "a server went away"
