from keystead.inventory import Source
from keystead.survey.audit import Audit
from keystead.survey.findings import Drift, Finding
from keystead.survey.report_markdown import SHOWN, to_markdown

from .entries import entry, inventory

DESCRIBED = inventory(entry("a|b:{c}", "hash"))


def test_clean_audit_says_so_in_the_first_line():
    assert to_markdown(Audit(DESCRIBED, ())).startswith("## Keys: as described\n")


def test_findings_are_a_table_that_no_name_breaks():
    found = Finding(Drift.WRONG_TYPE, "a|b:{c}", "2 keys | are <b>lists</b>", "mend", (Source("keys.md", 3),), 2)
    page = to_markdown(Audit(DESCRIBED, (found,), server="valkey://localhost", code="app", partial=("cut short",)))
    assert "## Keys: 1 error\n" in page
    assert r"| `a\|b:{c}` | 2 keys \| are &lt;b>lists&lt;/b> | `keys.md:3` |" in page
    assert "server `valkey://localhost`" in page and "code `app`" in page and "> **Partial:** cut short" in page


def test_many_findings_are_cut_and_counted():
    many = tuple(Finding(Drift.UNUSED, f"p{number}", "says", "mend") for number in range(SHOWN + 7))
    assert "… and 7 more." in to_markdown(Audit(DESCRIBED, many))


def test_look_that_ended_early_does_not_pass_for_clean():
    page = to_markdown(Audit(DESCRIBED, (), partial=("a server went away",), unfinished=True))
    assert page.startswith("## Keys: not seen whole\n")


def test_key_that_nobody_described_is_shown_and_not_the_server():
    found = Finding(Drift.UNDOCUMENTED, "cart:{id}", "says", "mend", (Source("valkey://localhost"),), 1, ("cart:7",))
    assert "| says | `cart:7` |" in to_markdown(Audit(DESCRIBED, (found,)))
