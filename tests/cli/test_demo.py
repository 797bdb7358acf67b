"""``keystead demo`` and ``keystead up --demo``: the whole thing, as a stranger starts it."""

import json
import signal
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keystead.demo.reactions import links_in

from .command import keystead
from .test_up import Up, running

WAIT_SECONDS = 400


class Looking:
    """Somebody with a key, who looks at a running demonstration through its interface."""

    def __init__(self, up: Up, directory: Path) -> None:
        self._up = up
        made = keystead("admin", "key", "create", "tests", "--scope", "*", "--data", ".keystead-demo", cwd=directory)
        assert made.code == 0, made.err
        self._key = made.out.strip().splitlines()[-1].split()[-1]

    def get(self, path: str) -> Any:
        asked = urllib.request.Request(f"{self._up.url}/api/1{path}", headers={"authorization": f"Bearer {self._key}"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)

    def until(self, what: str, holds: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + WAIT_SECONDS
        while not (found := holds()):
            assert time.monotonic() < deadline, f"not within {WAIT_SECONDS} seconds: {what}"
            time.sleep(0.5)
        return found

    def subs(self) -> set[str]:
        return {one["sub"] for one in self.get("/users?limit=500")["items"]}


@pytest.mark.slow
def test_a_town_lives_stops_and_goes_on_with_the_same_people(tmp_path: Path) -> None:
    with running(tmp_path, "--demo", "--seed", "3", "--speed", "300") as up:
        look = Looking(up, tmp_path)
        look.until("forty people", lambda: len(look.subs()) >= 40)
        look.until("messages", lambda: look.get("/sandbox/outbox?limit=500")["items"])
        look.until("several tenants, one of them noisy", lambda: {"megamart-flyers"} < {
            one["tenant"] for one in look.get("/tenants?busiest=true")["items"]})
        groups = look.until("jobs that fail", lambda: look.get("/jobs/errors")["groups"])
        assert groups[0]["error"]
        look.until("a reminder with a link", lambda: [
            message for message in look.get("/sandbox/outbox?limit=500")["items"] if links_in(message["text"])])
        first = look.subs()
        code, _, err = up.stop(signal.SIGINT)
    assert code == 0, err
    assert "Traceback" not in err
    assert "town: " in err
    with running(tmp_path, "--demo", "--seed", "3", "--speed", "300") as up:
        look = Looking(up, tmp_path)
        look.until("the town is back", lambda: len(look.subs()) >= len(first))
        assert first <= look.subs()
        loaded = keystead("demo", "--rate", "20", "--for", "2s", "--format", "json", cwd=tmp_path)
        assert loaded.code == 0, loaded.err
        told = json.loads(loaded.out)
        assert told["sent"] == 40 and told["errors"] == 0
        code, _, err = up.stop(signal.SIGTERM)
    assert code == 0, err


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    assert "--for takes a time" in keystead("demo", "--for", "soon", cwd=tmp_path).refused()
    assert "--rate takes" in keystead("demo", "--rate", "0", cwd=tmp_path).refused()
    assert "nothing runs in" in keystead("demo", "--rate", "5", cwd=tmp_path).refused()


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    said = keystead("demo", "--url", "http://127.0.0.1:1", "--key", "ksk_a_b", cwd=tmp_path).refused()
    assert "the load cannot begin at http://127.0.0.1:1" in said
