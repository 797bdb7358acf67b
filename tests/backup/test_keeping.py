"""A directory of backups."""

import os
import time

from keystead.backup.keeping import file_name, keep_newest

MINE, THEIRS = "0a1b2c3d", "ffffffff"


def test_the_newest_are_kept_and_nothing_else_is_touched(tmp_path):
    names = [file_name(1_700_000_000 + day * 86400, MINE) for day in range(10)]
    theirs = [file_name(1_600_000_000 + day * 86400, THEIRS) for day in range(10)]
    others = {*theirs, "other.backup", "keystead-notes.txt", "keystead-20201114T221320Z.backup"}
    for name in (*names, *others):
        (tmp_path / name).touch()
    old, new, other = (tmp_path / f".{file_name(1.0, whose)}.{end}.partial"
                       for whose, end in ((MINE, "ab"), (MINE, "cd"), (THEIRS, "ab")))
    for draft in (old, new, other):
        draft.touch()
    for draft in (old, other):
        os.utime(draft, (0, time.time() - 3 * 86400))
    assert [path.name for path in keep_newest(tmp_path, 7, MINE)] == names[:3]
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*names[3:], *others, new.name, other.name}
    keep_newest(tmp_path, 0, MINE)
    assert names[-1] in {path.name for path in tmp_path.iterdir()}


def test_the_one_that_was_just_taken_stays_though_a_wrong_clock_left_later_names(tmp_path):
    later = [tmp_path / file_name(1_900_000_000 + day * 86400, MINE) for day in range(3)]
    taken = tmp_path / file_name(1_700_000_000, MINE)
    for path in (*later, taken):
        path.touch()
    (tmp_path / file_name(1_600_000_000, MINE)).mkdir()
    assert keep_newest(tmp_path, 3, MINE, spare=taken) == []
    assert taken.exists()


def test_names_sort_by_time():
    assert file_name(1_700_000_000.25, THEIRS) == "keystead-20231114T221320250Z-ffffffff.backup"
    assert file_name(1_700_000_000, THEIRS) < file_name(1_700_000_001, MINE)
