"""The browser that page tests drive: the system's Chromium.

``python tests/browser.py`` puts it there where it is missing and this machine allows it, and says so loudly
where not: the page tests are then skipped, with the same words in pytest's summary.
"""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
MAC_PATH = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip
MISSING = (
    "NO BROWSER: the page tests did not run. Install Chromium (on Debian: apt-get install chromium) or set "
    "KEYSTEAD_BROWSER to a Chrome or Chromium program."
)


def find_browser() -> str | None:
    """The path of a Chrome or Chromium program, or ``None``."""
    named = os.environ.get("KEYSTEAD_BROWSER")
    if named:
        return named
    for name in NAMES:
        if path := shutil.which(name):
            return path
    return MAC_PATH if os.access(MAC_PATH, os.X_OK) else None


def install() -> None:
    if find_browser():
        return
    apt = shutil.which("apt-get")
    if apt and os.geteuid() == 0:
        print("Installing Chromium for the page tests...", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (
            [apt, "update", "-qq"],
            [apt, "install", "-qq", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"],
        ):
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
    if not find_browser():
        print(f"\n*** {MISSING} ***\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    install()
