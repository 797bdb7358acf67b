"""The page for a browser."""

from html.parser import HTMLParser

from hypothesis import HealthCheck, given, settings

from keystead.inventory import Certainty, Entry, Expiry, Fact, Inventory, Rule
from keystead.inventory.pages_html import to_html

from .inventories import INVENTORIES


class Reader(HTMLParser):
    """Checks that what is opened is closed, and gathers the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def test_page_shows_sections_facts_and_guesses() -> None:
    page = read(to_html(Inventory("keys.md", (
        Entry("user:{id}", type=Fact("hash"), ttl=Fact(Expiry(Rule.EXACTLY, 60), Certainty.GUESSED),
              purpose=Fact("<b>who</b>"), writers=(Fact("web"),), section=("Users",)),
        Entry("news", kind="channel", section=("Talk",)),
    ), sections=((("Users",), "All of them."),))))

    for part in ("Users", "All of them.", "user:{id}", "<b>who</b>", "1 min ?", "web", "channel news", "2 patterns"):
        assert part in page.text


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(INVENTORIES)
def test_nothing_in_an_inventory_breaks_the_page(inventory: Inventory) -> None:
    empty = read(to_html(Inventory("x")))
    page = read(to_html(inventory))

    assert page.tags.count("article") == len(inventory.entries)
    assert set(page.tags) <= {*empty.tags, "h2", "h3", "h4", "h5", "h6", "li", "a", "p", "article", "code", "b", "dl",
                              "dt", "dd", "pre"}
