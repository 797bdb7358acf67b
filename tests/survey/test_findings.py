from keystead.inventory import Source
from keystead.survey.findings import Drift, Finding, Severity, in_order


def test_fingerprint_stays_when_only_numbers_change():
    first = Finding(Drift.WRONG_TYPE, "a:{b}", "3 keys are lists", "mend", (Source("keys.md", 3),), 3, ("a:1",))
    later = Finding(Drift.WRONG_TYPE, "a:{b}", "9 keys are lists", "mend", (Source("keys.md", 8),), 9, ("a:2",))
    assert first.fingerprint == later.fingerprint


def test_fingerprint_tells_kinds_patterns_and_subjects_apart():
    made = {
        Finding(kind, pattern, "", "", about=about).fingerprint
        for kind in (Drift.UNUSED, Drift.CODE_TYPE) for pattern in ("a", "b") for about in ("", "x")
    }
    assert len(made) == 8


def test_worst_comes_first_then_what_concerns_most_keys():
    note = Finding(Drift.LARGE, "a", "", "", keys=99)
    warning = Finding(Drift.UNUSED, "a", "", "")
    few, many = (Finding(Drift.WRONG_TYPE, "a", "", "", keys=keys, about=str(keys)) for keys in (2, 5))
    assert in_order([note, few, warning, many]) == (many, few, warning, note)


def test_finding_of_which_less_is_known_matters_less():
    assert Finding(Drift.UNUSED, "a", "", "").severity is Severity.WARNING
    assert Finding(Drift.UNUSED, "a", "", "", weaker=Severity.NOTE).severity is Severity.NOTE


def test_severities_are_ordered():
    assert Severity.ERROR.at_least(Severity.NOTE)
    assert Severity.WARNING.at_least(Severity.WARNING)
    assert not Severity.NOTE.at_least(Severity.WARNING)
