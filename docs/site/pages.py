"""Where each page of the site comes from, and links between files of the project as links between pages."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

PROJECT = Path(__file__).parents[2]
_CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.S)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Page:
    """One page: the file it is made of, where it stands in the site, and what it says."""

    origin: Path  # in the project
    path: str
    text: str

    def write(self, source: Path, pages: "dict[str, Page]") -> None:
        target = source / self.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.linked(pages), encoding="utf-8")

    def linked(self, pages: "dict[str, Page]") -> str:
        """The text with its links turned to pages; what is no page, such as a source file, is only named."""
        there = {page.origin.as_posix(): page.path for page in pages.values()}

        def turned(found: re.Match[str]) -> str:
            mark, words, target = found.groups()
            if re.match(r"[a-z]+:|#|/", target):
                return found[0]
            path, hash_, anchor = unquote(target).partition("#")
            origin = os.path.normpath(self.origin.parent / path)
            place = there.get(origin) or there.get(f"{origin}/README.md") or there.get(f"{origin}/index.md")
            if place is None and origin.startswith("docs/") and (PROJECT / origin).is_file():
                place = origin.removeprefix("docs/")  # a picture
            if place is None:
                if not (PROJECT / origin).exists():
                    raise SystemExit(f"{self.origin}: the link to {target} leads nowhere")
                return words
            return f"{mark}[{words}]({os.path.relpath(place, Path(self.path).parent)}{hash_}{anchor})"

        parts = _CODE.split(self.text)
        return "".join(part if number % 2 else _LINK.sub(turned, part) for number, part in enumerate(parts))


def collected() -> dict[str, Page]:
    """Every page but those that are made by running something, by its place in the site."""
    found = [
        _page(Path("docs") / path.relative_to(PROJECT / "docs"), path.relative_to(PROJECT / "docs").as_posix())
        for path in sorted((PROJECT / "docs").rglob("*.md"))
    ]
    rooms = PROJECT / "src" / "keystead"
    for path in sorted(rooms.rglob("README.md")):
        room = ".".join(path.parent.relative_to(rooms).parts)
        found.append(_page(path.relative_to(PROJECT), f"rooms/{room}.md"))
    found += [
        _page(Path("deploy/README.md"), "deploying.md"), _page(Path("CHANGELOG.md"), "changelog.md"),
        _page(Path("CONTRIBUTING.md"), "contributing.md"),
    ]
    return {page.path: page for page in found}


def _page(origin: Path, path: str) -> Page:
    return Page(origin, path, (PROJECT / origin).read_text(encoding="utf-8"))
