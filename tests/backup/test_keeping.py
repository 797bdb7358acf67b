"""A directory of backups."""

import os
import time

from keystead.backup import file_name, keep_newest


def test_the_newest_are_kept_and_nothing_else_is_touched(tmp_path):
    names = [file_name(1_700_000_000 + day * 86400) for day in range(10)]
    for name in (*names, "other.backup", "keystead-notes.txt"):
        (tmp_path / name).touch()
    old, new = tmp_path / ".keystead-x.backup.ab.partial", tmp_path / ".keystead-y.backup.ab.partial"
    old.touch()
    new.touch()
    os.utime(old, (0, time.time() - 3 * 86400))
    assert [path.name for path in keep_newest(tmp_path, 7)] == names[:3]
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*names[3:], "other.backup", "keystead-notes.txt", new.name}
    keep_newest(tmp_path, 0)
    assert names[-1] in {path.name for path in tmp_path.iterdir()}


def test_the_one_that_was_just_taken_stays_though_a_wrong_clock_left_later_names(tmp_path):
    later = [tmp_path / file_name(1_900_000_000 + day * 86400) for day in range(3)]
    taken = tmp_path / file_name(1_700_000_000)
    for path in (*later, taken):
        path.touch()
    (tmp_path / file_name(1_600_000_000)).mkdir()
    assert keep_newest(tmp_path, 3, spare=taken) == []
    assert taken.exists()


def test_names_sort_by_time():
    assert file_name(1_700_000_000) == "keystead-20231114T221320Z.backup" < file_name(1_700_000_001)
