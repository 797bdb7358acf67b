"""Measure ``keystead up`` on a fresh data directory: until the first screen is answered, and what it then holds."""

import contextlib
import html.parser
import http.cookiejar
import re
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from importlib.metadata import version
from pathlib import Path

import psutil

from bench.load import protocol
from bench.load.up import Up, keystead_up

LIMIT_SECONDS = 60.0
MEGABYTE = 1_000_000


def measure(sample_seconds: float, *, browser: bool = False) -> dict[str, float]:
    """Start it, follow its link, weigh it, stop it. With ``browser`` also time the first paint in Chromium."""
    with tempfile.TemporaryDirectory(prefix="first-light-") as directory, keystead_up(Path(directory) / "data") as up:
        _open(up.link)
        found = {"link_seconds": up.link_seconds, "screen_seconds": time.perf_counter() - up.begun_at}
        found |= _heaviest(up, sample_seconds)
        if browser:
            found["paint_seconds"] = _paint(up.new_link())
    return found


def _open(link: str) -> None:
    """Do what a browser does with the link: fetch it, send the form it answers with, follow to the dashboard."""
    keeps_cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    browser = urllib.request.build_opener(keeps_cookies, urllib.request.ProxyHandler({}))
    try:
        with browser.open(link, timeout=LIMIT_SECONDS) as page:
            form = _HiddenFields(page.read().decode())
        sent = urllib.parse.urlencode(form.fields).encode()
        with browser.open(urllib.parse.urljoin(link, form.action), sent, timeout=LIMIT_SECONDS) as page:
            shown, where = page.read().lower(), urllib.parse.urlsplit(page.url).path
    except urllib.error.HTTPError as refused:
        raise SystemExit(f"{refused.url} was answered with status {refused.code}") from None
    if b"<html" not in shown or where == urllib.parse.urlsplit(link).path:
        raise SystemExit(f"the link led to {where}, which is not the dashboard")


class _HiddenFields(html.parser.HTMLParser):
    """The form of a page that a browser sends by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.action = ""
        self.fields: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = given.get("action", "")
        elif tag == "input" and given.get("type") == "hidden":
            self.fields[given["name"]] = given.get("value", "")


def _heaviest(up: Up, seconds: float) -> dict[str, float]:
    """The largest sum of memory over all processes that was seen during ``seconds``.

    The resident sum counts pages that processes share once for each of them; the proportional one counts them once.
    """
    most: dict[str, float] = {"processes": 0.0}
    end = time.monotonic() + seconds
    while True:
        family = up.family()
        resident = sum(_memory(process, "rss") for process in family) / MEGABYTE
        proportional = sum(_memory(process, "pss") for process in family) / MEGABYTE
        most["processes"] = max(most["processes"], float(len(family)))
        most["resident_mb"] = max(most.get("resident_mb", 0.0), resident)
        if proportional:
            most["proportional_mb"] = max(most.get("proportional_mb", 0.0), proportional)
        if time.monotonic() > end:
            return most
        time.sleep(0.2)


def _memory(process: psutil.Process, kind: str) -> float:
    with contextlib.suppress(psutil.Error):
        found = process.memory_info() if kind == "rss" else process.memory_full_info()
        return float(getattr(found, kind, 0))
    return 0.0


def _paint(link: str) -> float:
    """Seconds from going to the overview until Chromium has painted something of it; the log-in is done before."""
    from playwright.sync_api import sync_playwright
    from tests.browser import FLAGS, MISSING, find_browser

    program = find_browser()
    if program is None:
        raise SystemExit(MISSING)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=[flag for flag in FLAGS if flag != "--headless"])
        page = browser.new_page()
        page.goto(link)
        page.wait_for_url(re.compile(r"/(\?.*)?$"))
        page.goto(urllib.parse.urljoin(link, "/jobs"))  # another page first, so that the overview is not just kept
        page.goto(urllib.parse.urljoin(link, "/"))
        page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
        painted_ms: float = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        browser.close()
    return painted_ms / 1000


def main() -> None:
    flags = protocol.parser()
    flags.add_argument("--browser", action="store_true", help="also time the first paint in Chromium")
    given = flags.parse_args()
    protocol.answer(measure(given.seconds, browser=given.browser), {"library": f"keystead {version('keystead')}"})


if __name__ == "__main__":
    main()
