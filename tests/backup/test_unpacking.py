"""Every way in which an archive can be wrong: one clear line from check and restore, and nothing changed."""

import gzip
import hashlib
import io
import re
import sqlite3
import struct
import tarfile
from contextlib import closing

import msgspec
import pytest
import zstandard

from keystead.cli.entry import run
from keystead.store.migration import line

NEWEST = line()[-1].revision
EMPTY_RDB = b"REDIS0011\xff" + bytes(8)
HEAD = {"format": 1, "keystead_version": "0.1.0", "taken_at": 1.7e9, "layout": "plain", "lanes": 1,
        "valkey_form": "rdb", "migration": NEWEST}


def sqlite(version=NEWEST, damaged=False):
    with closing(sqlite3.connect(":memory:")) as file:
        file.execute("CREATE TABLE store_migrations (version_num)")
        file.execute("INSERT INTO store_migrations VALUES (?)", (version,))
        file.execute("CREATE TABLE many (x)")
        file.executemany("INSERT INTO many VALUES (?)", [("y" * 500,)] * 100)
        file.commit()
        raw = bytearray(file.serialize())
    if damaged:
        raw[5000:9000] = bytes(4000)
    return bytes(raw)


class Draft:
    """The members of an archive, to be spoilt before it is written."""

    def __init__(self, **head):
        self.head = HEAD | head
        self.members = {"state/ticket.secret": b"s" * 32, "valkey/0.rdb": EMPTY_RDB,
                        "sql/keystead.sqlite": sqlite(), "files/a/b": b"file"}
        self.keys = 0
        self.also = []  # members as TarInfo and content, before the manifest
        self.after = []
        self.manifest = {}  # replaced in the manifest, when it is written
        self.has_manifest = True
        self.listed = None

    def parts(self):
        return [{"name": name, "bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
                for name, raw in self.members.items() if not name.startswith("files/")]

    def files(self):
        own = {name: raw for name, raw in self.members.items() if name.startswith("files/")}
        digest = hashlib.sha256("".join(f"{hashlib.sha256(raw).hexdigest()} {name}\n" for name, raw in own.items())
                                .encode()).hexdigest()
        return {"count": len(own), "bytes": sum(map(len, own.values())), "sha256": digest if own else ""}

    def tar(self):
        head = msgspec.json.encode(self.head)
        manifest = {"head": self.head, "parts": self.listed if self.listed is not None else self.parts(),
                    "files": self.files(), "valkey_keys": self.keys, "held_ms": 1.0} | self.manifest
        entries = [(entry("keystead-backup.json", head), head)]
        entries += [(entry(name, raw), raw) for name, raw in self.members.items()]
        entries += self.also
        if self.has_manifest:
            raw = manifest.get("raw") or msgspec.json.encode(manifest)
            entries.append((entry("manifest.json", raw), raw))
        entries += self.after
        written = (one.tobuf(tarfile.GNU_FORMAT) + raw + bytes(-len(raw) % 512) for one, raw in entries)
        return b"".join(written) + bytes(1024)

    def write(self, path):
        path.write_bytes(gzip.compress(self.tar(), 1))


def entry(name, raw=b"", kind=tarfile.REGTYPE, size=None):
    made = tarfile.TarInfo(name)
    made.size, made.type = len(raw) if size is None else size, kind
    return made


def good(draft): ...


def without(name):
    def spoil(draft):
        del draft.members[name]
    return spoil


def head(**changes):
    def spoil(draft):
        draft.head |= changes
    return spoil


def manifest(**changes):
    def spoil(draft):
        draft.manifest |= changes
    return spoil


def member(name, raw=b"evil", kind=tarfile.REGTYPE, size=None):
    def spoil(draft):
        draft.also.append((entry(name, raw, kind, size), raw))
    return spoil


def content(name, raw):
    def spoil(draft):
        draft.members[name] = raw
    return spoil


def raw_manifest(raw):
    return manifest(raw=raw)


def no_manifest(draft):
    draft.has_manifest = False


def after_manifest(draft):
    draft.after.append((entry("files/z", b"1"), b"1"))


def listed_but_missing(draft):
    draft.listed = draft.parts()
    del draft.members["sql/keystead.sqlite"]


def wrong_checksum(draft):
    draft.listed = [part | {"sha256": "0" * 64} if "sql" in part["name"] else part for part in draft.parts()]


def listed_twice(draft):
    draft.listed = [*draft.parts(), draft.parts()[1]]


def gap(draft):
    draft.members["valkey/1.rdb"] = draft.members.pop("valkey/0.rdb")


def extra_state(draft):
    draft.listed = draft.parts()
    draft.members["state/other"] = b"1"


def link(draft):
    made = entry("files/a", kind=tarfile.SYMTYPE)
    made.linkname = "/etc/passwd"
    draft.also.append((made, b""))


def longer_than_it_is(draft):
    draft.also.append((entry("files/z", size=2**50), b"x"))


def negative_size(draft):
    class Negative(tarfile.TarInfo):
        def tobuf(self, *given):
            head = bytearray(super().tobuf(*given))
            head[124:136] = (-512).to_bytes(12, "big", signed=True)
            head[148:156] = b"        "
            head[148:156] = f"{sum(head):06o}\0 ".encode()
            return bytes(head)
    made = Negative("files/z")
    draft.also.append((made, b""))


def chain_of_heads(draft):
    record = b"16 comment=xxxx\n"
    draft.also += [(entry("x", record, tarfile.XHDTYPE), record)] * 3000


def sparse_by_words(draft):
    raw = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n24 GNU.sparse.name=files\n"
    draft.also += [(entry("x", raw, tarfile.XHDTYPE), raw), (entry("files/z", b"not a map"), b"not a map")]


def record(name=b"a", raw=b"\0", short=0):
    made = struct.pack(">I", len(name)) + name + struct.pack(">qI", -1, len(raw)) + raw
    return made[: len(made) - short]


def dump(raw, keys=1):
    def spoil(draft):
        draft.head["valkey_form"] = "dump"
        del draft.members["valkey/0.rdb"]
        draft.members["valkey/000000.dump"] = raw
        draft.keys = keys
    return spoil


def two_servers(draft):
    draft.members["valkey/1.rdb"] = EMPTY_RDB


WRONG = {
    "no part of Valkey": (without("valkey/0.rdb"), "data of Valkey are missing"),
    "no database": (without("sql/keystead.sqlite"), "no database"),
    "no manifest": (no_manifest, "cut off"),
    "a listed part is missing": (listed_but_missing, "is not what the manifest says"),
    "a wrong checksum": (wrong_checksum, "is not what the manifest says"),
    "a part listed twice": (listed_twice, "twice"),
    "a gap in the parts of Valkey": (gap, "some of the data of Valkey are missing"),
    "a part that is not listed": (extra_state, "does not know"),
    "a member that is there twice": (member("sql/keystead.sqlite"), "twice"),
    "a file that is a folder too": (member("files/a/b/c"), "twice"),
    "parts of two servers": (two_servers, "one server"),
    "parts of another form": (head(valkey_form="dump"), "another form"),
    "object files that the manifest does not count": (manifest(files={"count": 7}), "object files"),
    "keys that the manifest does not count": (manifest(valkey_keys=5), "holds 0 keys"),
    "after the manifest": (after_manifest, "it holds 'files/z'"),
    "another beginning than in the manifest": (manifest(head=HEAD | {"lanes": 3}), "do not agree"),
    "a newer form": (head(format=2), "newer Keystead"),
    "a newer version": (head(keystead_version="99.0"), "99.0"),
    "a version that is no number": (head(keystead_version="\u00b2.9" * 3), "WORKS"),
    "newer tables": (head(migration="9999"), "9999"),
    "tables of another age": (head(migration="0001"), "tables"),
    "a database of another age": (content("sql/keystead.sqlite", sqlite("0000")), "tables '0000'"),
    "a database that is damaged": (content("sql/keystead.sqlite", sqlite(damaged=True)), "database in this backup"),
    "no database at all": (content("sql/keystead.sqlite", b"hello" * 500), "not a database"),
    "an empty database": (content("sql/keystead.sqlite", b""), "tables ''"),
    "a short secret": (content("state/ticket.secret", b"s"), "secret"),
    "a damaged mark": (content("state/keystead.json", b"[]"), "keystead.json"),
    "a mark of a newer version": (content("state/keystead.json", b'{"version": "99.1"}'), "keystead.json"),
    "a damaged clock": (content("state/clock.json", b"{}"), "clock.json"),
    "no snapshot": (content("valkey/0.rdb", b"hello"), "cannot read the snapshot"),
    "half a snapshot": (content("valkey/0.rdb", EMPTY_RDB[:9]), "cannot read the snapshot"),
    "half a record": (dump(record(short=1)), "ends within a key"),
    "a record of great length": (dump(b"\xff\xff\xff\xff"), "ends within a key"),
    "a value that is none": (dump(record()), "damaged"),
    "fewer records than keys": (dump(b"", keys=1), "holds 0 keys"),
    "a format of the wrong type": (head(format="1"), "damaged"),
    "a layout of the wrong type": (head(layout=3), "damaged"),
    "a layout that is none": (head(layout="sideways"), "damaged"),
    "a form that is none": (head(valkey_form="zip"), "damaged"),
    "a moment of the wrong type": (head(taken_at="now"), "damaged"),
    "a moment far away": (head(taken_at=1e300), "damaged"),
    "a database number below zero": (head(valkey_database=-1), "damaged"),
    "no lanes": (head(lanes=0), "damaged"),
    "a manifest that is a list": (raw_manifest(b"[]"), "damaged"),
    "a manifest that is no JSON": (raw_manifest(b"{"), "damaged"),
    "a manifest without parts": (raw_manifest(b'{"head": {}}'), "damaged"),
    "parts of the wrong type": (manifest(parts={"a": 1}), "damaged"),
    "a part without a name": (manifest(parts=[{"bytes": 1}]), "damaged"),
    "keys of the wrong type": (manifest(valkey_keys="many"), "damaged"),
    "keys below zero": (manifest(valkey_keys=-1), "damaged"),
    "a name above the directory": (member("../evil"), "no backup"),
    "a name from the root": (member("/etc/evil"), "no backup"),
    "a name that climbs": (member("files/../../evil"), "no backup"),
    "a hidden name": (member("state/.evil"), "no backup"),
    "a name with line breaks": (member("files/a\nb\x1b[1m"), "no backup"),
    "a name that nobody knows": (member("evil"), "no backup"),
    "a link": (link, "no backup"),
    "a hard link": (member("files/z", b"", tarfile.LNKTYPE), "no backup"),
    "a device": (member("files/z", b"", tarfile.CHRTYPE), "no backup"),
    "a pipe": (member("files/z", b"", tarfile.FIFOTYPE), "no backup"),
    "a folder": (member("files/z", b"", tarfile.DIRTYPE), "no backup"),
    "a file with holes": (member("files/z", bytes(1024), tarfile.GNUTYPE_SPARSE, 2**40), "no backup"),
    "a file with holes in other words": (sparse_by_words, "no backup|damaged"),
    "more than the disk holds": (longer_than_it_is, "are free"),
    "a long note beside a member": (member("x", bytes(200_000), tarfile.XHDTYPE), "no backup"),
    "a size below zero": (negative_size, "no backup|damaged"),
    "heads upon heads": (chain_of_heads, "damaged"),
}


@pytest.mark.parametrize("case", ["good", *WRONG])
def test_an_archive_that_is_wrong_is_refused_in_one_line_and_nothing_changes(case, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spoil, says = WRONG.get(case, (good, "WORKS"))
    draft = Draft()
    spoil(draft)
    draft.write(tmp_path / "one.backup")
    _judge(tmp_path, capsys, says)


def _judge(place, capsys, says):
    for arguments in (["backup", "--check", "one.backup"], ["restore", "one.backup", "--data", "new"]):
        before = sorted(place.rglob("*"))
        code = run(arguments)
        shown = capsys.readouterr()
        if says == "WORKS":
            assert code == 0, shown.err
            continue
        assert code == 2 and shown.out == "", (code, shown)
        assert re.search(says, shown.err), shown.err
        assert len(shown.err.splitlines()) == 1 and "\x1b" not in shown.err and "Traceback" not in shown.err, shown.err
        assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.99])
def test_an_archive_that_is_cut_off_is_refused_in_one_line(share, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    raw = zstandard.ZstdCompressor().compress(Draft().tar())
    (tmp_path / "one.backup").write_bytes(raw[: int(len(raw) * share)])
    _judge(tmp_path, capsys, "cut off|no backup")


def test_a_frame_that_asks_for_much_memory_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.backup").write_bytes(b"\x28\xb5\x2f\xfd\x00\xf8" + b"\x01\x00\x00" + bytes(100))
    _judge(tmp_path, capsys, "cut off")


def test_a_flood_of_nothing_stops_before_the_disk_is_full(tmp_path, capsys, monkeypatch):
    from keystead.backup import unpacking

    monkeypatch.chdir(tmp_path)
    usage = unpacking.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(unpacking, "RESERVED_SHARE", 1.0)
    monkeypatch.setattr(unpacking, "MOST_RESERVED_BYTES", usage.free - 20_000_000)
    draft = Draft()
    for number in range(4):
        member(f"files/{number}", bytes(30_000_000))(draft)
    draft.write(tmp_path / "one.backup")
    _judge(tmp_path, capsys, "are free for it")


def test_a_tar_without_anything_is_no_backup(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    raw = io.BytesIO()
    tarfile.open(fileobj=raw, mode="w").close()
    (tmp_path / "one.backup").write_bytes(gzip.compress(raw.getvalue()))
    _judge(tmp_path, capsys, "no backup")
