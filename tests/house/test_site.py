"""The documentation as a site: it builds, no link in it is broken, and nothing in it comes from elsewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from .source import PROJECT

# Built once, also where tests run in several processes.
pytestmark = pytest.mark.xdist_group("site")


class Reader(HTMLParser):
    """What a page refers to, and what in it can be referred to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if name := found.get("id") or found.get("name"):
            self.anchors.add(name)
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        for attribute in ("src", "srcset"):
            if found.get(attribute):
                self.loaded.append(str(found[attribute]))
        if tag == "link" and found.get("href") and found.get("rel") != "canonical":
            self.loaded.append(str(found["href"]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Reader]:
    """Every page of the site, read."""
    directory = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, "docs/site/build.py", str(directory)], cwd=PROJECT, capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    pages = {}
    for path in directory.rglob("*.html"):
        pages[path] = Reader()
        pages[path].feed(path.read_text(encoding="utf-8"))
    return pages


def test_there_is_a_page_for_every_room_pattern_and_reference(site: dict[Path, Reader]) -> None:
    names = {path.name for path in site}
    assert {"index.html", "concepts.html", "tutorial.html", "operating.html", "deploying.html", "api.html", "cli.html",
            "keys.html", "settings.html"} <= names
    rooms = {".".join(path.parent.relative_to(PROJECT / "src" / "keystead").parts) + ".html"
             for path in (PROJECT / "src" / "keystead").rglob("README.md")}
    patterns = {f"{path.stem}.html" for path in (PROJECT / "docs" / "patterns").glob("*.md")}
    assert rooms | patterns <= names


def test_no_link_is_broken(site: dict[Path, Reader]) -> None:
    broken = []
    for page, reader in site.items():
        for link in [*reader.links, *reader.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or page.name == "404.html":
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                broken.append(f"{page.name}: {link}")
            elif parts.fragment and target in site and unquote(parts.fragment) not in site[target].anchors:
                broken.append(f"{page.name}: {link} (no such place)")
    assert not broken


def test_nothing_is_loaded_from_elsewhere(site: dict[Path, Reader]) -> None:
    assert not [f"{page.name}: {loaded}" for page, reader in site.items() for loaded in reader.loaded
                if urlsplit(loaded).netloc]
    styles = [style for page in site for style in page.parent.rglob("*.css")]
    assert styles
    assert not [style for style in set(styles) if re.search(r"url\([\"']?https?:|@import", style.read_text("utf-8"))]


def test_every_route_is_on_the_page_of_the_http_interface(site: dict[Path, Reader]) -> None:
    page = next(path for path in site if path.name == "api.html").read_text(encoding="utf-8")
    for path in ("/api/1/users", "/api/1/tenants", "/api/1/keys", "/health"):
        assert path in page
