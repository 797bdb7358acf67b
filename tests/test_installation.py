"""The mark of a data directory, and a directory of an older version."""

import json
import tarfile
from pathlib import Path

import pytest

from keystead.app import App
from keystead.errors import Invalid
from keystead.installation import MARK_FILE, check_mark, this_version, write_mark
from keystead.jobs import job_list
from keystead.settings import load_settings

SAMPLES = Path(__file__).parent / "data" / "directories"


def mark(directory: Path, text: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / MARK_FILE).write_text(text)


def test_directory_without_a_mark_is_an_older_one_and_gets_one(tmp_path: Path) -> None:
    assert check_mark(tmp_path / "none") is None
    write_mark(tmp_path / "none")
    assert check_mark(tmp_path / "none") == this_version()
    assert [path.name for path in (tmp_path / "none").iterdir()] == [MARK_FILE]


@pytest.mark.parametrize("older", ["0.0.9", "0.0.10", "0"])
def test_older_mark_is_replaced(tmp_path: Path, older: str) -> None:
    mark(tmp_path, json.dumps({"version": older}))
    assert check_mark(tmp_path) == older
    write_mark(tmp_path)
    assert check_mark(tmp_path) == this_version()


@pytest.mark.parametrize("newer", ["99.0", "99.0.0rc1", "10.0.0"])
def test_newer_directory_is_refused_in_one_line_that_names_both(tmp_path: Path, newer: str) -> None:
    mark(tmp_path, json.dumps({"version": newer, "and": "more"}))
    with pytest.raises(Invalid, match=f"written by Keystead {newer}, and this is {this_version()}") as refusal:
        check_mark(tmp_path)
    assert "\n" not in str(refusal.value) and str(tmp_path) in str(refusal.value)
    with pytest.raises(Invalid):
        write_mark(tmp_path)


def test_file_is_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Invalid, match="is a file"):
        check_mark(tmp_path / "file")


@pytest.mark.parametrize("text", ["", "[]", '{"version": "new"}', '{"version": null}', "{"])
def test_damaged_mark_is_refused(tmp_path: Path, text: str) -> None:
    mark(tmp_path, text)
    with pytest.raises(Invalid, match="cannot be read: it is damaged"):
        check_mark(tmp_path)


async def test_newer_directory_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    mark(tmp_path, json.dumps({"version": "99.0"}))
    app = App(load_settings({"valkey.url": f"embedded://{tmp_path}"}, environment={}))
    with pytest.raises(Invalid, match=r"Keystead 99\.0"):
        async with app.running(start_server=True):
            pass
    assert [path.name for path in tmp_path.iterdir()] == [MARK_FILE]


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.tar.gz")), ids=lambda path: path.name)
async def test_directory_of_an_older_version_starts_with_all_it_held(tmp_path: Path, sample: Path) -> None:
    """Each sample holds Ada, her address, and a job that nobody has run."""
    with tarfile.open(sample) as packed:
        packed.extractall(tmp_path, filter="data")
    app = App(load_settings({"valkey.url": f"embedded://{tmp_path}"}, environment={}))
    async with app.running(start_server=True, works=True) as running:
        ada = await running.users.ensure("direct", "provider-7")
        assert (ada.given_name, ada.family_name, ada.created) == ("Ada", "Example", False)
        assert [one.address for one in await running.switchboard.contacts.listed_emails(ada.sub)] == ["ada@example.com"]
        assert [(record.name, record.kwargs) for record in await job_list("").range(running.valkey)] == [
            ("greet", {"name": "Ada"})]
        strays = [raw async for raw in running.valkey.scan_iter(count=1000) if running.registry.resolve(raw) is None]
        assert not strays
    assert check_mark(tmp_path) == this_version()
