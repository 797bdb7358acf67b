"""Object files at one moment."""

import os
import time

from keystead.backup import pinning
from keystead.backup.pinning import Pins, files_directory


def test_what_was_there_before_or_after_the_moment_is_kept_though_it_is_deleted(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "old").write_bytes(b"old")
    (tmp_path / ".partial").mkdir()
    (tmp_path / ".partial" / "draft").write_bytes(b"draft")
    with Pins(tmp_path) as pins:
        pins.pin()
        (tmp_path / "a" / "old").unlink()
        (tmp_path / "new").write_bytes(b"new")
        pins.pin()
        (tmp_path / "new").unlink()
        (tmp_path / "later").write_bytes(b"later")
        found = {name: place.read_bytes() for name, place in pins.files()}
    assert found == {"a/old": b"old", "new": b"new"}
    assert sorted(each.name for each in tmp_path.iterdir()) == [".partial", "a", "later"]


def test_without_links_files_are_read_where_they_lie(tmp_path, monkeypatch):
    (tmp_path / "one").write_bytes(b"1")

    def refused(self, other):
        raise PermissionError

    monkeypatch.setattr(pinning.Path, "hardlink_to", refused)
    with Pins(tmp_path) as pins:
        pins.pin()
        assert [(name, place.read_bytes()) for name, place in pins.files()] == [("one", b"1")]


def test_pins_of_a_backup_that_died_go(tmp_path):
    left = tmp_path / ".backup-dead"
    left.mkdir()
    (left / "x").write_bytes(b"x")
    os.utime(left, (0, time.time() - pinning.LEFT_SECONDS - 10))
    with Pins(tmp_path):
        assert not left.exists()


def test_a_directory_that_is_not_there_has_no_files(tmp_path):
    with Pins(tmp_path / "none") as pins:
        pins.pin()
        assert list(pins.files()) == []


def test_only_a_directory_has_files_to_take():
    assert str(files_directory("file:///srv/a%20b")) == "/srv/a b"
    assert files_directory("s3://bucket") is None
