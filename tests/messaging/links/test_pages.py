"""Pages behind links show only what is meant, and lead only to our own places."""

from html.parser import HTMLParser
from typing import Any

import pytest

from keystead.errors import Invalid
from keystead.messaging.links.models import Target
from keystead.messaging.links.pages import Pages

EVIL = '"><script>alert(1)</script>'


class Read(HTMLParser):
    """The tags of a page that matter here."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def meta(self, name: str) -> str | None:
        return next((attrs.get("content") for tag, attrs in self.tags
                     if tag == "meta" and name in (attrs.get("property"), attrs.get("name"), attrs.get("http-equiv"))),
                    None)

    def links(self) -> list[str | None]:
        return [attrs["href"] for tag, attrs in self.tags if tag == "a"]


def target(page: str = "home", extra: dict[str, Any] | None = None, preview: str = "default",
           said: dict[str, Any] | None = None) -> Target:
    return Target("utl_1", "Qm3x", page, extra or {}, preview, said or {})


def test_preview_tags_say_what_the_link_says() -> None:
    page = Read(Pages(site_name="Oak").lead_on(
        target("share_journey", {"journey_uid": "j 1/2"}, "share_journey",
               {"title": "Breathing", "description": "A class"}),
        "utlc_1", at_once=True,
    ))
    assert {name: page.meta(name) for name in ("og:title", "og:description", "og:site_name", "twitter:card",
                                               "twitter:title", "twitter:description")} == {
        "og:title": "Breathing", "og:description": "A class", "og:site_name": "Oak", "twitter:card": "summary",
        "twitter:title": "Breathing", "twitter:description": "A class",
    }
    assert page.links() == ["/shared/j%201%2F2?touch_link=Qm3x&click=utlc_1"]


@pytest.mark.parametrize("preview", ["default", "example", "unsubscribe", "share_journey", "never seen"])
def test_nothing_that_a_link_says_becomes_markup(preview: str) -> None:
    pages = Pages(site_name=EVIL)
    said = {"title": EVIL, "description": EVIL, "list": EVIL}
    for html in (
        pages.lead_on(target("share_journey", {"journey_uid": EVIL}, preview, said), "utlc_1", at_once=True),
        pages.unsubscribe(target("unsubscribe", {}, preview, said), [f"{EVIL}@x.example"]),
        pages.unsubscribe(target("unsubscribe", {}, preview, {"list": EVIL}), []),
        pages.unknown(),
    ):
        assert "<script" not in html
        assert not [tag for tag, _ in Read(html).tags if tag == "script"]


@pytest.mark.parametrize("extra", [
    {"journey_uid": "//evil.example"}, {"journey_uid": "../../x"}, {"journey_uid": ["x"]}, {"url": "https://evil.example"},
    {"journey_uid": "javascript:alert(1)"}, {},
])
@pytest.mark.parametrize("page", ["home", "share_journey", "https://evil.example", "javascript:alert(1)", "unknown"])
@pytest.mark.parametrize("app", ["", "https://app.example.com", "https://app.example.com/in/"])
def test_a_link_never_decides_where_a_browser_is_sent(page: str, extra: dict[str, Any], app: str) -> None:
    leads = Pages(app_url=app).destination(target(page, extra))
    rest = leads.removeprefix(app.rstrip("/"))
    assert rest == "/" or (rest.startswith("/shared/") and rest.count("/") == 2 and page == "share_journey")


def test_people_are_led_on_and_programs_are_not() -> None:
    pages = Pages(app_url="https://app.example.com")
    assert Read(pages.lead_on(target(), "utlc_1", at_once=True)).meta("refresh") == (
        "0;url=https://app.example.com/?touch_link=Qm3x&click=utlc_1"
    )
    assert Read(pages.lead_on(target(), "", at_once=False)).meta("refresh") is None


def test_an_address_is_shown_to_its_owner_only() -> None:
    page = Pages().unsubscribe(target("unsubscribe"), ["ann.secret@example.com"])
    assert "a•••@example.com" in page and "secret" not in page
    assert [tag for tag, attrs in Read(page).tags if tag in ("form", "button", "input")] == ["form", "button"]
    asked = Pages().unsubscribe(target("unsubscribe"), [])
    assert [attrs["name"] for tag, attrs in Read(asked).tags if tag == "input"] == ["email"]


@pytest.mark.parametrize("url", ["javascript:alert(1)", "app.example.com", "https://", "https://a.example/?x=1"])
def test_a_wrong_address_of_the_app_is_refused_at_start(url: str) -> None:
    with pytest.raises(Invalid, match="app_url"):
        Pages(app_url=url)
