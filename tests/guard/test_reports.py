"""What is kept of findings."""

from keystead.guard.reports import Finding, Kind, Tally, caller, shown, skeleton


def test_alike_keys_have_one_skeleton() -> None:
    assert skeleton(b"cart:17") == skeleton(b"cart:4") == "cart:*"
    assert skeleton(b"u:0b8f2d0e-9f6a-4c57-8a5e-0c9d2b7a1f11:x") == "u:*:x"
    assert skeleton(b"mail:ann@example.com") == "mail:*"
    assert skeleton(b"user:profile") == "user:profile"
    assert skeleton(b"\xff\xfe:1") == "\\xff\\xfe:*"


def test_examples_and_groups_are_bounded() -> None:
    tally = Tally()
    for number in range(5000):
        pattern = f"p{number}"
        if not tally.count(Kind.UNDOCUMENTED, pattern, "GET", b"k"):
            tally.add(Finding(Kind.UNDOCUMENTED, pattern, "", "", "", 1, ["k"]))
    assert len(tally.findings()) == 1000 and tally.not_kept == 4000
    for number in range(100):
        assert tally.count(Kind.UNDOCUMENTED, "p1", f"C{number}", b"k%d" % number)
    (found,) = [each for each in tally.findings() if each.pattern == "p1"]
    assert found.count == 101 and len(found.examples) == 3 and len(found.commands) <= 20


def test_long_and_binary_keys_are_shown_short() -> None:
    assert len(shown(b"x" * 10_000_000)) == 121 and shown(b"\xff") == "\\xff"


def test_caller_is_this_line() -> None:
    assert caller().rpartition(":")[0].endswith("test_reports.py")
