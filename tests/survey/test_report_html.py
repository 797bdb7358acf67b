from html.parser import HTMLParser

from keystead.inventory import Matcher, Source
from keystead.survey.audit import Audit
from keystead.survey.findings import Drift, Finding
from keystead.survey.report_html import to_html
from keystead.survey.tally import Tally

from .entries import entry, inventory


class Text(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.texts.append(data)


def page(*findings, keys=(), known=()):
    described = inventory(entry("session:{token}", "hash", 3600, personal=True, section=("Login",)),
                          entry("<script>:{x}", "string"))
    tally = Tally(Matcher(described).find, lambda *seen: None)
    for raw_key, type, ttl_ms, size in keys:
        tally.add(raw_key, type, ttl_ms, size)
    read = Text()
    read.feed(to_html(Audit(described, findings, known=known, server="valkey://localhost", tally=tally)))
    return read, " ".join(read.texts)


KEYS = [(b"session:%d" % number, "hash", 60_000, 500) for number in range(5)] + [(b"stray", "list", -1, 900)]


def test_treemap_shows_each_pattern_with_its_memory():
    read, text = page(keys=KEYS)
    assert "session:{token}: 2.4 KiB, 5 keys" in text
    assert "not in the inventory: 900 B, 1 keys" in text
    assert [attributes["class"] for tag, attributes in read.tags if tag == "rect"][:2] == ["fine", "error"]


def test_remaining_times_are_counted():
    _, text = page(keys=KEYS)
    assert "≤ 1 min: 5 keys" in text and "never: 1 keys" in text


def test_findings_and_personal_data_are_listed():
    found = Finding(Drift.NEVER_EXPIRES, "session:{token}", "3 of 5 keys never expire", "find the writer",
                    (Source("keys.md", 4),), 3, ("session:1",))
    _, text = page(found, keys=KEYS, known=(Finding(Drift.UNUSED, "old", "gone", "delete"),))
    for part in ("never-expires", "3 of 5 keys never expire", "keys.md:4", "find the writer", "in the baseline",
                 "Login", "marked"):
        assert part in text, part


def test_names_from_a_server_are_no_markup():
    found = Finding(Drift.UNDOCUMENTED, "<img src=x onerror=alert(1)>", "</td><script>alert(1)</script>", "mend",
                    examples=("<b>",))
    read, _ = page(found, keys=[*KEYS, (b"<script>:1", "string", -1, 10)])
    assert [tag for tag, _ in read.tags].count("script") == 1  # the page's own
    assert not any(tag in ("img", "b") for tag, _ in read.tags)


def test_page_asks_for_nothing_from_elsewhere():
    read, _ = page(keys=KEYS)
    assert not any("src" in attributes or "href" in attributes for _, attributes in read.tags)


def test_inventory_without_a_server_has_no_map():
    described = inventory(entry("a", "string"))
    assert "<svg" not in to_html(Audit(described, ()))
