"""What holds for object files wherever they lie, and how addresses and keys are refused."""

import os
from collections.abc import AsyncIterator

import pytest

from keystead.errors import Invalid, NotFound
from keystead.store.files import ObjectFiles, checked_key, open_files

MIB = 1024 * 1024


async def pieces(raw: bytes, size: int = 100_000) -> AsyncIterator[bytes]:
    for at in range(0, len(raw), size):
        yield raw[at : at + size]


async def whole(objects: ObjectFiles, key: str, **between: int) -> bytes:
    return b"".join([chunk async for chunk in objects.read(key, **between)])


async def listed(objects: ObjectFiles, under: str = "") -> list[str]:
    return sorted([key async for key in objects.keys(under)])


async def test_what_was_written_is_read_back_and_replaced_whole(objects: ObjectFiles) -> None:
    for size in (300_000, 0, 8 * MIB, 17 * MIB + 5, 1):
        raw = os.urandom(size)
        assert await objects.write("a/b/c.bin", pieces(raw), content_type="image/png") == size
        assert await objects.size("a/b/c.bin") == size
        assert await whole(objects, "a/b/c.bin") == raw


async def test_a_part_of_an_object_can_be_read(objects: ObjectFiles) -> None:
    raw = os.urandom(700_000)
    await objects.write("one", pieces(raw))
    assert await whole(objects, "one", start_byte=5, end_byte=9) == raw[5:10]
    assert await whole(objects, "one", start_byte=600_000) == raw[600_000:]
    assert await whole(objects, "one", start_byte=10, end_byte=650_000) == raw[10:650_001]
    assert await whole(objects, "one", start_byte=700_000) == b""
    assert await whole(objects, "one", start_byte=5, end_byte=4) == b""


async def test_a_missing_object_is_said_to_be_missing(objects: ObjectFiles) -> None:
    assert await objects.size("nowhere/x") is None
    with pytest.raises(NotFound, match="nowhere/x"):
        await whole(objects, "nowhere/x")
    await objects.delete("nowhere/x")


async def test_a_deleted_object_is_gone(objects: ObjectFiles) -> None:
    await objects.write("a/b/one", pieces(b"1"))
    await objects.write("a/two", pieces(b"2"))
    await objects.delete("a/b/one")
    assert await objects.size("a/b/one") is None
    assert await listed(objects) == ["a/two"]
    await objects.write("a/b/one", pieces(b"3"))
    assert await whole(objects, "a/b/one") == b"3"


async def test_keys_are_listed_by_their_beginning(objects: ObjectFiles) -> None:
    for key in ("a/one", "a/two", "b/one", "ab"):
        await objects.write(key, pieces(b"x"))
    assert await listed(objects) == ["a/one", "a/two", "ab", "b/one"]
    assert await listed(objects, "a/") == ["a/one", "a/two"]


@pytest.mark.parametrize("size", [10, 20 * MIB])
async def test_a_write_that_fails_leaves_nothing(objects: ObjectFiles, size: int) -> None:
    async def broken() -> AsyncIterator[bytes]:
        async for piece in pieces(bytes(size), MIB):
            yield piece
        raise ValueError("the client went away")

    await objects.write("one", pieces(b"before"))
    with pytest.raises(ValueError, match="went away"):
        await objects.write("one", broken())
    with pytest.raises(ValueError, match="went away"):
        await objects.write("two", broken())
    assert await listed(objects) == ["one"]
    assert await whole(objects, "one") == b"before"


async def test_a_deletion_ends_a_write_that_is_under_way(objects: ObjectFiles) -> None:
    async def deleted_meanwhile() -> AsyncIterator[bytes]:
        for number in range(20):
            if number == 15:
                await objects.delete("one")
            yield bytes(MIB)

    with pytest.raises(Exception, match=r"did not write a part|taken away"):
        await objects.write("one", deleted_meanwhile())
    assert await listed(objects) == []


BAD_KEYS = (
    "", "/etc/passwd", "../x", "a/../b", "a//b", "a/", ".partial/x", "a/.b", "a\\b", "a b", "ä", "a\0b", "a\n",
    "x" * 201, "/".join(["x" * 100] * 10),
)


async def test_a_key_that_could_lead_elsewhere_is_refused(objects: ObjectFiles) -> None:
    for key in BAD_KEYS:
        for doing in (objects.write(key, pieces(b"x")), whole(objects, key), objects.delete(key), objects.size(key)):
            with pytest.raises(Invalid, match="cannot name a file"):
                await doing


def test_usual_keys_are_taken() -> None:
    for key in ("s3_files/uploads/s3fu_q-3J/1/x.bin", "a", "_a", "a=1~2"):
        assert checked_key(key) == key


@pytest.mark.parametrize(("url", "says"), [
    ("ftp://host/x", "file:///DIR or s3://BUCKET"),
    ("somewhere", "without a scheme"),
    ("file://somewhere/x", "three slashes"),
    ("file:///", "three slashes"),
    ("file:///x?color=red", "unknown option color"),
    ("s3://", "s3://BUCKET"),
    ("s3://bucket?zone=x", "unknown option zone"),
    ("s3://bucket?path_style=maybe", "yes or no"),
    ("s3://bucket/../x", "cannot name"),
    ("s3://bucket?endpoint=nonsense", "endpoint"),
    ("file://[x", "cannot be read"),
])
async def test_a_bad_address_is_refused_with_a_way_to_mend_it(url: str, says: str) -> None:
    with pytest.raises(Invalid, match=says):
        async with open_files(url):
            pass
