import io
import json
import os
import subprocess
import sys
import time

import pytest

from keystead.cli import output

from .command import environment


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * 1024**2, "5.0 MiB"), (3 * 1024**4, "3.0 TiB")],
)
def test_bytes_are_shown_in_the_largest_unit_that_fits(count, shown):
    assert output.human_bytes(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 ms"), (0.25, "250 ms"), (59, "59 s"), (60, "1 min"), (3600, "1 h"), (90061, "1 d 1 h"), (86405, "1 d")],
)
def test_durations_are_shown_in_their_two_largest_units(seconds, shown):
    assert output.human_seconds(seconds) == shown


class AsciiTerminal(io.StringIO):
    encoding = "ascii"


class Utf8Terminal(io.StringIO):
    encoding = "utf-8"


@pytest.mark.parametrize("stream", [AsciiTerminal, Utf8Terminal])
def test_json_is_valid_whatever_the_terminal_can_show(monkeypatch, stream):
    terminal = stream()
    monkeypatch.setattr("sys.stdout", terminal)
    output.write_json({"key": "ключ"})
    assert json.loads(terminal.getvalue()) == {"key": "ключ"}
    assert ("ключ" in terminal.getvalue()) == (stream is Utf8Terminal)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain é", "plain é"), ("\x1b[2Jgone", r"\x1b[2Jgone"), ("a\nb", "a\nb"), ("\x9b1m", r"\xc2\x9b1m"),
     ("\udcff", r"\xff")],
)
def test_nothing_that_steers_a_terminal_is_shown(text, shown):
    assert output.printable(text) == shown


def test_rows_are_neither_cut_nor_wrapped_off_a_terminal(monkeypatch):
    page = io.StringIO()
    monkeypatch.setattr("sys.stdout", page)
    rows = output.table("pattern", "purpose")
    rows.add_row("a" * 150, "b" * 300)
    output.console().print(rows)
    assert any("a" * 150 in line and "b" * 300 in line for line in page.getvalue().splitlines())
    assert "\x1b" not in page.getvalue()


INTERRUPTED = """
import signal, sys
from keystead.cli.output import emit
signal.signal(signal.SIGALRM, lambda number, frame: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
emit("x" * 1_000_000 + "\\n")
signal.setitimer(signal.ITIMER_REAL, 0)
"""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_large_result_arrives_whole_however_the_pipe_takes_it(unbuffered):
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE,
                          env=environment(PYTHONUNBUFFERED=unbuffered)) as process:
        read = 0
        while piece := os.read(process.stdout.fileno(), 4096):
            read += len(piece)
            time.sleep(0.0002)
    assert (process.returncode, read) == (0, 1_000_001)
