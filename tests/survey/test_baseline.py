import pytest

from keystead.errors import Invalid
from keystead.survey.baseline import read_baseline, split, write_baseline
from keystead.survey.findings import Drift, Finding

OLD, NEW = Finding(Drift.UNUSED, "a", "says", "mend"), Finding(Drift.UNUSED, "b", "says", "mend")


def test_what_was_written_is_known_and_the_rest_is_new(tmp_path):
    file = tmp_path / "baseline.json"
    write_baseline(file, [OLD])
    assert split([OLD, NEW], read_baseline(file)) == ((NEW,), (OLD,))
    assert "unused a" in file.read_text()


def test_missing_baseline_says_how_to_write_one(tmp_path):
    with pytest.raises(Invalid, match="--write-baseline"):
        read_baseline(tmp_path / "none.json")


@pytest.mark.parametrize("text", [
    b"", b"[]", b"{}", b'{"version": 2, "known": {}}', b'{"version": 1, "known": 7}', b"\xff",
])
def test_anything_else_is_refused(tmp_path, text):
    file = tmp_path / "baseline.json"
    file.write_bytes(text)
    with pytest.raises(Invalid, match="baseline"):
        read_baseline(file)
