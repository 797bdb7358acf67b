"""How a measured process is called and how it answers: flags in, one line of JSON out."""

import argparse
import gc
import json
import platform
from collections.abc import Mapping


def parser() -> argparse.ArgumentParser:
    """The flags that every measured program takes, whether it has a use for them or not."""
    flags = argparse.ArgumentParser(allow_abbrev=False)
    flags.add_argument("--url", default="", help="the server to measure against")
    flags.add_argument("--seconds", type=float, default=2.0, help="length of the measured window")
    flags.add_argument("--warm-up", type=float, default=0.5, help="the same work beforehand, not counted")
    return flags


def answer(figures: Mapping[str, float], facts: Mapping[str, object]) -> None:
    """Print the measured figures, and the facts that a reader needs to judge them."""
    common = {"python": platform.python_version(), "gc": gc.isenabled()}
    print(json.dumps({"figures": dict(figures), "facts": common | dict(facts)}), flush=True)
