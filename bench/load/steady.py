"""Measure a steady load of mixed requests on a whole ``keystead up``: those of ``keystead demo --rate``."""

import json
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

from bench.load import protocol
from bench.load.up import KEYSTEAD, keystead_up

PATIENCE_SECONDS = 60.0


def measure(rate: float, seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench-steady-") as directory:
        data = Path(directory) / "data"
        with keystead_up(data) as up:
            command = [KEYSTEAD, "demo", "--rate", f"{rate:g}",
                       "--for", f"{seconds:g}s", "--data", str(data), "--format", "json"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + PATIENCE_SECONDS,
                                  check=False)
            if not done.stdout.strip():
                raise SystemExit(f"no answer: {done.stderr.strip()[-300:]}")
            found = json.loads(done.stdout)
            return {"per_second": found["rate"], "p50_ms": found["p50_ms"], "p99_ms": found["p99_ms"],
                    "errors": float(found["errors"]), "resident_mb": up.resident_bytes() / 1_000_000}


def main() -> None:
    flags = protocol.parser()
    flags.add_argument("--rate", type=float, default=500.0)
    flags.add_argument("--steady-seconds", type=float, default=60.0)
    given = flags.parse_args()
    quick = given.seconds < 1
    figures = measure(50.0 if quick else given.rate, 3.0 if quick else given.steady_seconds)
    protocol.answer(figures, {"library": f"keystead {version('keystead')}"})


if __name__ == "__main__":
    main()
