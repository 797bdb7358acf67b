"""Writing an archive, and what is left when that fails; taking it apart again."""

import gzip
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import msgspec
import pytest

from keystead.backup.archive import ArchiveWriter
from keystead.backup.models import FORMAT, Head, Manifest, ObjectFilesPart
from keystead.backup.unpacking import read_head, unpack
from keystead.errors import Conflict, Invalid, Unavailable

HEAD = Head(keystead_version="0.1.0", taken_at=1.0, layout="plain")
PASSPHRASE = b"a long enough passphrase"


def made(path, passphrase=None, size=3_000_000, **head):
    with ArchiveWriter(path, passphrase) as archive:
        about = msgspec.structs.replace(HEAD, **head)
        archive.add_head(about)
        archive.add("state/ticket.secret", b"s" * 32)
        archive.begin("valkey/0.rdb", size)
        for start in range(0, size, 1_000_000):
            archive.write(os.urandom(min(1_000_000, size - start)))
        archive.keep(archive.end())
        archive.add("sql/keystead.sqlite", b"rows")
        archive.finish(Manifest(head=about, parts=archive.parts, files=ObjectFilesPart(), valkey_keys=1, held_ms=1.0))
    return path


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
def test_an_archive_is_whole_private_and_comes_apart_as_it_was(tmp_path, passphrase):
    path = made(tmp_path / "one.backup", passphrase)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["one.backup"]
    unpacked = unpack(path, tmp_path / "out", passphrase)
    assert (tmp_path / "out" / "valkey" / "0.rdb").stat().st_size == 3_000_000
    assert unpacked.head == HEAD == read_head(path, passphrase)
    assert [part.name for part in unpacked.snapshots()] == ["0.rdb"]


def test_tar_reads_an_archive_without_a_passphrase(tmp_path):
    path = made(tmp_path / "one.backup", size=1000)
    listed = subprocess.run(["tar", "--zstd", "-tf", str(path)], capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("tar has no zstd here")
    assert listed.stdout.split() == ["keystead-backup.json", "state/ticket.secret", "valkey/0.rdb",
                                     "sql/keystead.sqlite", "manifest.json"]


def test_an_archive_that_asks_for_much_memory_or_disk_is_refused(tmp_path):
    def written(name, *entries):
        raw = b"".join(one.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512) for one, content in entries)
        (tmp_path / name).write_bytes(gzip.compress(raw + bytes(1024)))
        return tmp_path / name

    def entry(name, size=0, kind=tarfile.REGTYPE):
        made = tarfile.TarInfo(name)
        made.size, made.type = size, kind
        return made

    raw = msgspec.json.encode(HEAD)
    head = entry("keystead-backup.json", len(raw)), raw
    for kind in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
        with pytest.raises(Invalid, match="no backup has"):
            read_head(written(f"long{kind!r}", (entry("x", 200_000, kind), bytes(200_000))), None)
    with pytest.raises(Invalid, match="no backup has"):
        unpack(written("holes", head, (entry("files/a", 2**40, tarfile.GNUTYPE_SPARSE), bytes(2**10))), tmp_path, None)
    with pytest.raises(Unavailable, match="are free"):
        unpack(written("huge", head, (entry("files/a", 2**60), b"")), tmp_path / "out", None)
    assert not (tmp_path / "out" / "files" / "a").exists()
    with pytest.raises(Invalid, match="no backup"):
        read_head(written("folder", (entry("keystead-backup.json", kind=tarfile.DIRTYPE), b"")), None)


def test_a_file_that_is_there_is_not_replaced(tmp_path):
    path = made(tmp_path / "one.backup", size=10)
    before = path.read_bytes()
    with pytest.raises(Conflict, match="there already"):
        made(path)
    assert path.read_bytes() == before


def test_what_was_not_finished_leaves_nothing(tmp_path):
    with pytest.raises(Unavailable, match="too early"), ArchiveWriter(tmp_path / "one.backup") as archive:
        archive.add_head(HEAD)
        (archive.work_directory / "copy").write_bytes(b"1")
        archive.begin("valkey/0.rdb", 100)
        archive.write(b"short")
        archive.end()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing_and_is_told(tmp_path):
    program = f"""
import resource, signal
from pathlib import Path
from tests.backup.test_archive import made
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    made(Path({str(tmp_path / "one.backup")!r}))
except Exception as error:
    print(type(error).__name__, error)
"""
    project = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=project)
    assert "Unavailable" in done.stdout and "disk is full" in done.stdout, done
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there_is_told(tmp_path):
    with pytest.raises(Invalid, match="cannot be written"):
        made(tmp_path / "nowhere" / "one.backup")


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
@pytest.mark.parametrize("share", [0.0, 0.0001, 0.3, 0.7, 0.999])
def test_an_archive_that_was_cut_off_is_refused(tmp_path, passphrase, share):
    path = made(tmp_path / "one.backup", passphrase)
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * share)])
    with pytest.raises(Invalid, match=r"cut off|damaged|no backup|passphrase"):
        unpack(path, tmp_path / "out", passphrase)


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_an_archive_that_was_changed_is_refused(tmp_path, passphrase, share):
    path = made(tmp_path / "one.backup", passphrase)
    raw = bytearray(path.read_bytes())
    raw[int(len(raw) * share)] ^= 1
    path.write_bytes(raw)
    with pytest.raises(Invalid):
        unpack(path, tmp_path / "out", passphrase)


def test_pieces_of_a_sealed_archive_cannot_change_places(tmp_path):
    path = made(tmp_path / "one.backup", PASSPHRASE)
    raw, piece, first = path.read_bytes(), 1024 * 1024 + 16, 25 + 16 + 31
    path.write_bytes(raw[:first] + raw[first + piece: first + 2 * piece] + raw[first: first + piece]
                     + raw[first + 2 * piece:])
    with pytest.raises(Invalid, match="damaged"):
        unpack(path, tmp_path / "out", PASSPHRASE)


def test_a_wrong_passphrase_and_a_missing_one_are_told_apart_from_damage(tmp_path):
    path = made(tmp_path / "one.backup", PASSPHRASE)
    with pytest.raises(Invalid, match="passphrase is not the one"):
        unpack(path, tmp_path / "out", b"another long passphrase")
    with pytest.raises(Invalid, match="--passphrase-file"):
        unpack(path, tmp_path / "out", None)


def test_an_archive_of_a_newer_form_is_refused(tmp_path):
    with pytest.raises(Invalid, match="newer Keystead"):
        read_head(made(tmp_path / "one.backup", size=10, format=FORMAT + 1), None)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x1f\x8b", b"\x28\xb5\x2f\xfd" + bytes(100)])
def test_another_file_is_no_backup(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(Invalid):
        unpack(path, tmp_path / "out", None)


@pytest.mark.parametrize("name", [
    "../evil", "/etc/evil", "files/../../evil", "state/.evil", "evil", "files/a/../../../b",
])
def test_no_name_in_an_archive_leaves_the_directory(tmp_path, name):
    import gzip

    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for each, content in (("keystead-backup.json", msgspec.json.encode(HEAD)), (name, b"evil")):
            entry = tarfile.TarInfo(each)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    path = tmp_path / "one.backup"
    path.write_bytes(gzip.compress(raw.getvalue()))
    with pytest.raises(Invalid, match="no backup"):
        unpack(path, tmp_path / "out", None)
    assert sorted(each.name for each in tmp_path.iterdir()) in (["one.backup"], ["one.backup", "out"])


def test_a_link_in_an_archive_is_refused(tmp_path):
    import gzip

    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        entry = tarfile.TarInfo("keystead-backup.json")
        content = msgspec.json.encode(HEAD)
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
        link = tarfile.TarInfo("files/a")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    path = tmp_path / "one.backup"
    path.write_bytes(gzip.compress(raw.getvalue()))
    with pytest.raises(Invalid, match="no backup"):
        unpack(path, tmp_path / "out", None)
