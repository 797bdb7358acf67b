"""Which files of a tree are read."""

from pathlib import Path

import pytest

from keystead.errors import Invalid
from keystead.inventory.code.walking import find_files

from .reading_code import written


def names(tree_of: Path, **options: bool) -> list[str]:
    return [path.relative_to(tree_of).as_posix() for path, _ in find_files([tree_of], **options).files]


def test_what_others_wrote_and_what_is_generated_is_left_out(tmp_path: Path) -> None:
    written(tmp_path, a_py="", node_modules__b_js="", vendor__c_go="", d_d_ts="", src__e_ts="", src__f_txt="")
    (tmp_path / "x.min.js").write_text("")
    (tmp_path / "y_pb2.py").write_text("")

    assert names(tmp_path) == ["a.py", "d_d.ts", "src/e.ts"]


def test_tests_are_left_out_and_counted(tmp_path: Path) -> None:
    written(tmp_path, a_py="", test_a_py="", tests__b_py="", c_test_go="")
    tree = find_files([tmp_path])

    assert names(tmp_path) == ["a.py"]
    assert "3 files of tests" in tree.notes[0].says
    assert len(names(tmp_path, tests=True)) == 4


def test_gitignore_is_followed(tmp_path: Path) -> None:
    written(tmp_path, a_py="", made__b_py="", local_py="", kept__c_py="", kept__gone_py="")
    (tmp_path / ".gitignore").write_text("# made by a tool\nmade/\n/local.py\nkept/g*.py\n")

    assert names(tmp_path) == ["a.py", "kept/c.py"]


def test_a_file_that_is_named_is_taken_and_one_of_no_known_language_refused(tmp_path: Path) -> None:
    written(tmp_path, test_a_py="", b_txt="")

    assert len(find_files([tmp_path / "test_a.py", tmp_path / "test_a.py"]).files) == 1
    with pytest.raises(Invalid, match="is not Python"):
        find_files([tmp_path / "b.txt"])


def test_sources_are_named_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, app__a_py="")
    monkeypatch.chdir(tmp_path)
    assert find_files([Path("app")]).files[0][1] == "app/a.py"
    monkeypatch.chdir("/")
    assert find_files([tmp_path / "app"]).files[0][1].endswith("app/a.py")
