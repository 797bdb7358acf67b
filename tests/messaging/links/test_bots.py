"""Programs that look at links are told from people who click on them."""

import pytest

from keystead.messaging.links.bots import is_bot

PEOPLE = [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 "
    "Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 Chrome/131.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0",
    "Mozilla/5.0 (Linux; Android 14; CUBOT NOTE 50) AppleWebKit/537.36 Chrome/131.0 Mobile Safari/537.36",
]
PROGRAMS = [
    "", "  ", "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", "Twitterbot/1.0",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", "WhatsApp/2.23.20.0", "TelegramBot (like TwitterBot)",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "curl/8.5.0", "python-requests/2.32",
    "Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 HeadlessChrome/131.0", "LinkedInBot/1.0", "Discordbot/2.0",
]


@pytest.mark.parametrize("agent", PEOPLE)
def test_browsers_are_people(agent: str) -> None:
    assert not is_bot("GET", {"user-agent": agent})


@pytest.mark.parametrize("agent", PROGRAMS)
def test_crawlers_and_previews_are_programs(agent: str) -> None:
    assert is_bot("GET", {"user-agent": agent})


@pytest.mark.parametrize("header", [
    {"purpose": "prefetch"}, {"sec-purpose": "prefetch;prerender"}, {"x-moz": "prefetch"}, {"x-purpose": "preview"},
])
def test_a_browser_that_fetches_ahead_did_not_click(header: dict[str, str]) -> None:
    assert is_bot("GET", {"user-agent": PEOPLE[0]} | header)


def test_only_a_look_at_the_headers_is_no_click() -> None:
    assert is_bot("HEAD", {"user-agent": PEOPLE[0]})
