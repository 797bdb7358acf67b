"""A page in the user's own order, that takes the place of the document and can be read back."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keystead.inventory import Certainty, Entry, Expiry, Fact, Inventory, Rule, Source
from keystead.inventory.documents import read_document
from keystead.inventory.from_registry import from_registry
from keystead.inventory.pages import inline, plain, to_markdown
from keystead.inventory.pages_reading import is_page, read_page

from .inventories import INVENTORIES, TEXTS

SAMPLE = Inventory(
    "redis-keys.md",
    (
        Entry("user:{id}", "user:<ID>", type=Fact("hash"), ttl=Fact(Expiry(Rule.SLIDING, 1800), Certainty.GUESSED),
              purpose=Fact("The profile of a user.\n- not a fact"), payload=Fact('{\n  "name": "ann"\n}'),
              writers=(Fact("web"), Fact("jobs", Certainty.GUESSED)), personal=Fact(True, words="variable id"),
              variables=(("id", "uuid"),), examples=("user:7",), section=("Redis keys", "Users"),
              extra=(("Owner", "blue"), ("type", "their own"))),
        Entry("jobs:hot", type=Fact("list"), purpose=Fact("jobs that wait"), section=("Redis keys", "Jobs")),
        Entry("news", kind="channel", section=("Redis keys", "Jobs")),
    ),
    sections=((("Redis keys",), "Everything we keep."), (("Redis keys", "Jobs"), "Work.")),
)
PAGE = '''\
<!-- keystead inventory {"name": "redis\\u002dkeys.md", "titled": true} -->
<!-- Written by `keystead keys docs`. You may change it here, and read it back with `keystead keys import`. -->

# Redis keys

Everything we keep.

## Users

### `user:{id}`

The profile of a user.
\\- not a fact

- type: hash
- expires: 30 min sliding
- holds:
  ```
  {
    "name": "ann"
  }
  ```
- variables: `id` uuid
- written by: `web`
- perhaps written by: `jobs`
- personal data: yes, variable id
- examples: `user:7`
- Owner: blue
- &#116;ype: their own
- written as: `user:<ID>`
- guessed: expires

## Jobs

Work.

### `jobs:hot`

jobs that wait

- type: list

### channel `news`
'''


def kept(inventory: Inventory) -> Inventory:
    """What a page keeps of an inventory."""
    def fact(given: Fact | None, words: bool = False) -> Fact | None:
        return None if given is None else Fact(given.value, given.certainty, words=given.words if words else "")

    entries = tuple(replace(
        entry, spelling=entry.spelling or entry.pattern, type=fact(entry.type), ttl=fact(entry.ttl),
        purpose=fact(entry.purpose), payload=fact(entry.payload), personal=fact(entry.personal, words=True),
        writers=tuple(map(fact, entry.writers)), readers=tuple(map(fact, entry.readers)), sources=(), observed=None,
    ) for entry in inventory.entries)
    sections = {path: text for path, text in inventory.sections if text}
    return Inventory(inventory.name, entries, sections=tuple(sorted(sections.items())))


def test_page_reads_well() -> None:
    assert to_markdown(SAMPLE) == PAGE


def test_page_is_read_back() -> None:
    assert is_page(PAGE) and not is_page("# Redis keys\n")
    assert kept(read_page(PAGE, "keys.md")) == kept(SAMPLE)
    [entry, *_] = read_page(PAGE, "keys.md").entries
    assert entry.sources == (Source("keys.md", 10),)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(INVENTORIES)
def test_every_page_is_read_back(inventory: Inventory) -> None:
    page = to_markdown(inventory)
    again = read_page(page, "page.md")

    assert kept(again) == kept(inventory)
    assert to_markdown(again) == page


@given(st.text(max_size=30) | TEXTS | st.sampled_from(["&nbsp;", "&amp;", "&#35;", "&", " x ", "\n"]))
def test_text_on_one_line_is_read_back(text: str) -> None:
    assert plain(inline(text)) == text
    assert "\n" not in inline(text)


def test_what_people_change_is_read() -> None:
    page = PAGE.replace("- type: list", "- type: Sorted Set\n- expires: after about 2 hours\n- read by: web, mail")
    page = page.replace("### channel `news`", "### `fresh:{id}`\n\nA new one.\n- type: set")

    _, jobs, fresh = read_page(page, "keys.md").entries
    assert (jobs.type.value, jobs.ttl.value) == ("zset", Expiry(Rule.EXACTLY, 7200))
    assert [reader.value for reader in jobs.readers] == ["web", "mail"]
    assert (fresh.pattern, fresh.purpose.value, fresh.type.value) == ("fresh:{id}", "A new one.", "set")


def test_what_is_not_understood_is_noted() -> None:
    [note] = read_page(PAGE.replace("30 min sliding", "eventually"), "keys.md").notes

    assert note.says == "user:{id}: expires eventually is not understood"


def test_page_with_a_broken_first_line_is_read_like_any_document() -> None:
    broken = PAGE.replace('"titled": true} -->', "-->")

    assert {entry.pattern for entry in read_page(broken, "keys.md").entries} >= {"user:{id}", "jobs:hot"}


def test_any_reader_of_documents_understands_the_page() -> None:
    found = {entry.pattern: entry for entry in read_document(PAGE.split("-->", 1)[1], "keys.md").entries}

    assert set(found) >= {"user:{id}", "jobs:hot"}
    assert found["jobs:hot"].type.value == "list"


def test_declarations_make_a_page_that_is_read_back() -> None:
    from keystead.app import App
    from keystead.keys import Layout
    from keystead.settings import Settings

    inventory = from_registry(App(Settings()).registry(Layout.PLAIN))

    assert kept(read_page(to_markdown(inventory), "keys.md")) == kept(inventory)
