"""Measure ``keystead up`` on a fresh data directory: until the first screen is answered, and what it then holds."""

import contextlib
import html.parser
import http.cookiejar
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from importlib.metadata import version
from pathlib import Path
from typing import IO

import psutil

from bench.load import protocol

LINK = re.compile(rb"http://127\.0\.0\.1:\d+/login[^\s\x1b]*")
LIMIT_SECONDS = 60.0
MEGABYTE = 1_000_000


def measure(sample_seconds: float) -> dict[str, float]:
    """Start it, follow its link, weigh it, stop it."""
    with tempfile.TemporaryDirectory(prefix="first-light-") as directory:
        command = [str(Path(sys.executable).parent / "keystead"), "up", "--port", "0", "--data", f"{directory}/data"]
        begin = time.perf_counter()
        process = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            assert process.stdout is not None
            link = _wait_for_link(process.stdout)
            link_seconds = time.perf_counter() - begin
            _open(link)
            screen_seconds = time.perf_counter() - begin
            memory = _heaviest(process.pid, sample_seconds)
        finally:
            _stop(process)
    return {"link_seconds": link_seconds, "screen_seconds": screen_seconds} | memory


def _wait_for_link(output: IO[bytes]) -> str:
    seen = b""
    for line in output:
        seen += line
        found = LINK.search(line)
        if found:
            return found.group().decode()
    raise SystemExit(f"keystead up ended without a link: {seen[-300:].decode(errors='replace').strip()}")


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


def _heaviest(pid: int, seconds: float) -> dict[str, float]:
    """The largest sum of memory over all processes that was seen during ``seconds``.

    The resident sum counts pages that processes share once for each of them; the proportional one counts them once.
    """
    most: dict[str, float] = {"processes": 0.0}
    end = time.monotonic() + seconds
    while True:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
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


def _stop(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        for left in psutil.wait_procs(family, timeout=5)[1]:
            left.kill()


def main() -> None:
    given = protocol.parser().parse_args()
    protocol.answer(measure(given.seconds), {"library": f"keystead {version('keystead')}"})


if __name__ == "__main__":
    main()
