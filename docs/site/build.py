"""Builds the documentation as a static site: ``python docs/site/build.py [DIRECTORY]``.

Pages come from ``docs/``, the READMEs of the rooms, ``deploy/README.md``, the changelog, and the OpenAPI description of
the assembled server. Everything is made here and now: no network, no fonts or scripts from elsewhere. A link that leads
nowhere fails the build.
"""

import logging
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parent))
from api_reference import api_page
from pages import PROJECT, Page, collected

HERE = Path(__file__).parent
SITE = PROJECT / "build" / "site"

# Room by room, from the ground up; what is not named here stands at the end.
ROOMS = ["keys", "engine", "patterns", "edge", "jobs", "store", "stats", "operations", "members", "messaging",
         "messaging.sending", "messaging.sandbox", "messaging.push", "messaging.sms", "messaging.email",
         "messaging.touches", "messaging.links", "identity", "content", "reminders", "backup", "web", "cli", "demo",
         "testing", "inventory", "inventory.documents", "inventory.code", "inventory.learning", "survey", "custody",
         "guard"]
# Patterns by what they are for, as in docs/choosing.md; the rest follows.
PATTERNS = ["lock", "leader", "limits", "worklist", "delayed", "pending", "guarded", "cache", "counters", "daily",
            "daysets", "cohorts", "views", "rows_by_day", "buffer", "outbox", "breaker", "revocation", "fanout",
            "presence", "fairqueue"]


def navigation(pages: dict[str, Page]) -> list[dict[str, Any]]:
    """The tree at the left. Every page has its place in it, or the build fails."""
    def folder(name: str, order: list[str]) -> list[str]:
        there = {Path(path).stem: path for path in pages if path.startswith(f"{name}/")}
        return [there[each] for each in [*(one for one in order if one in there), *sorted(set(there) - set(order))]]

    tree: list[dict[str, Any]] = [
        {"Start": [{"Start here": "index.md"}, "concepts.md", "tutorial.md", "choosing.md", "words.md"]},
        {"Guides": [
            "keys-for-any-redis.md", "messaging.md", "stats.md", "store.md", "files.md",
            {"Jobs": folder("jobs", ["index", "recurring", "progress", "batch-jobs", "scheduler", "operating"])},
            {"Coming from": folder("coming-from", ["celery", "rq", "arq", "dramatiq"])},
        ]},
        {"Patterns": folder("patterns", PATTERNS)},
        {"Rooms": folder("rooms", ROOMS)},
        {"Operating": ["operating.md", "deploying.md", "questions.md", "demo.md", "benchmarks.md"]},
        {"Reference": [
            {"HTTP interface": "api.md"}, {"Commands": "cli.md"}, {"Settings": "settings.md"},
            {"Our own keys": "keys.md"}, {"What is counted": "families.md"},
            {"Dependencies": "dependencies.md"}, {"Changelog": "changelog.md"}, {"Contributing": "contributing.md"},
        ]},
    ]
    placed = set(_paths(tree))
    wanted = set(pages)
    tree = _only(tree, wanted)
    if left := sorted(wanted - placed):
        tree[-2]["Operating"] += left
    return tree


def _paths(tree: Any) -> list[str]:
    if isinstance(tree, str):
        return [tree]
    return [path for each in (tree.values() if isinstance(tree, dict) else tree) for path in _paths(each)]


def _only(tree: Any, there: set[str]) -> Any:
    """The same tree without pages that are not there."""
    if isinstance(tree, dict):
        return {name: _only(each, there) for name, each in tree.items()}
    return [_only(each, there) for each in tree if set(_paths(each)) & there] if isinstance(tree, list) else tree


def configuration(pages: dict[str, Page], source: Path, site: Path) -> dict[str, Any]:
    """What MkDocs is told."""
    return {
        "site_name": "Keystead",
        "site_description": "Every Valkey/Redis key declared once: typed access, documentation, audits, a backend.",
        "docs_dir": str(source), "site_dir": str(site), "use_directory_urls": False, "nav": navigation(pages),
        "theme": {
            "name": "material", "font": False, "favicon": "images/mark.svg", "logo": "images/mark.svg",
            "icon": {"repo": "material/key"},
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "teal", "accent": "teal",
                 "toggle": {"icon": "material/weather-night", "name": "Dark"}},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "teal", "accent": "teal",
                 "toggle": {"icon": "material/weather-sunny", "name": "Light"}},
            ],
            "features": ["navigation.tabs", "navigation.top", "navigation.footer", "navigation.indexes", "toc.follow",
                         "content.code.copy", "search.suggest", "search.highlight"],
        },
        "extra": {"generator": False},
        "extra_css": ["site.css"],
        "plugins": [{"search": {"lang": "en"}}],
        "markdown_extensions": [
            "admonition", "attr_list", "tables", "sane_lists", {"toc": {"permalink": True, "toc_depth": 3}},
            {"pymdownx.highlight": {"anchor_linenums": False}}, "pymdownx.superfences", "pymdownx.inlinehilite",
        ],
        "validation": {"omitted_files": "warn", "absolute_links": "warn", "unrecognized_links": "warn",
                       "anchors": "warn", "not_found": "warn"},
    }


def build(site: Path = SITE) -> Path:
    """Build the site and return where it is. ``SystemExit`` with the reasons when something in it is wrong."""
    source = site.with_name(site.name + "-source")
    shutil.rmtree(source, ignore_errors=True)
    pages = collected()
    pages["api.md"] = Page(Path("docs/api.md"), "api.md", api_page())
    for page in pages.values():
        page.write(source, pages)
    shutil.copytree(PROJECT / "docs" / "images", source / "images", dirs_exist_ok=True)
    shutil.copyfile(HERE / "site.css", source / "site.css")
    file = source.with_suffix(".yml")
    file.write_text(yaml.safe_dump(configuration(pages, source, site), sort_keys=False))
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    heard = _Heard()
    logging.getLogger("mkdocs").addHandler(heard)
    try:
        config = load_config(str(file))
        config.plugins.on_startup(command="build", dirty=False)
        build_site(config)
    finally:
        logging.getLogger("mkdocs").removeHandler(heard)
    if heard.said:
        raise SystemExit("the site has faults:\n" + "\n".join(heard.said))
    return site


class _Heard(logging.Handler):
    """Remembers what the generator complains of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


if __name__ == "__main__":
    built = build(Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else SITE)
    sys.stdout.write(f"{built / 'index.html'}\n")
