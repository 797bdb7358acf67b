"""The worker's door: jobs of the store, when they run, and what they do."""

import pytest_asyncio

from keystead.jobs import JobBook, RecurringList
from keystead.store.files import new_key
from keystead.store.jobs import DISCARD_UPLOAD, EXPIRE_UPLOADS, LIST_STRAYS, SWEEP_FILES, recurring, register
from keystead.store.uploads import DELETE_FILES

from .file_place import Place
from .test_files import listed, pieces
from .test_uploads import Door


@pytest_asyncio.fixture
async def door(place: Place) -> Door:
    return Door(place)


async def run(book: JobBook, name: str, **kwargs: object) -> object:
    job = book.get(name)
    assert job is not None
    job.check(kwargs)
    return await job(**kwargs)


async def test_the_jobs_of_the_book_do_what_their_names_say(door: Door) -> None:
    book, place = JobBook(), door.place
    register(book, place.sweep, door.uploads)
    upload, late = await door.start(3), await door.start(3)
    await door.put(upload, 1, b"abc")
    await run(book, DISCARD_UPLOAD, upload_uid=upload.uid)
    deletions = [kwargs for name, kwargs in await door.jobs() if name == DELETE_FILES]
    assert len(deletions) == 1
    await run(book, DELETE_FILES, **deletions[0])
    assert await run(book, SWEEP_FILES) == {"purged": 1, "kept": 0, "failed": 0}
    assert await place.rows() == await listed(place.objects) == []
    await place.objects.write(new_key("stray"), pieces(b"x"))
    assert await run(book, LIST_STRAYS) == 1
    place.clock.advance(3600)
    assert await run(book, EXPIRE_UPLOADS) == 1
    assert ("test.give_up", {"upload_uid": late.uid}) in await door.jobs()


async def test_every_recurring_job_is_in_the_book(door: Door) -> None:
    book = JobBook()
    register(book, door.place.sweep, door.uploads)
    RecurringList(recurring()).check(book)
