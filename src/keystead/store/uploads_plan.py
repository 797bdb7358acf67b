"""What an upload may be, into which parts it is cut, and what its client is told."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec

from keystead.errors import DeclarationError, Invalid
from keystead.jobs import JobBook

PART_BYTES: Final = 1024 * 1024
MOST_BYTES: Final = 10 * 1024**3
MOST_LASTS_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class UploadPurpose:
    """What uploads are for, declared once: how large they may be, how long they may take, and the names of their jobs.

    ``success`` is queued when every part has come, ``failure`` when the time is over before that.
    """

    name: str
    most_bytes: int
    success: str
    failure: str
    lasts_seconds: float = 3600.0

    def __post_init__(self) -> None:
        if not 1 <= self.most_bytes <= MOST_BYTES or not 1 <= self.lasts_seconds <= MOST_LASTS_SECONDS:
            raise DeclarationError(
                f"uploads for {self.name}: most_bytes is from 1 to {MOST_BYTES}, lasts_seconds from 1 to "
                f"{MOST_LASTS_SECONDS:.0f}"
            )

    def check_size(self, file_size: int) -> None:
        if not 1 <= file_size <= self.most_bytes:
            raise Invalid(f"a file for {self.name} has from 1 to {self.most_bytes} bytes, not {file_size}")


@dataclass(frozen=True, slots=True)
class PartRange:
    """Parts of one size that follow one another."""

    start_number: int
    start_byte: int
    number_of_parts: int
    part_size: int


@dataclass(frozen=True, slots=True)
class SinglePart:
    """One part; both ends are included."""

    number: int
    start_byte: int
    end_byte: int


@dataclass(frozen=True, slots=True)
class ProgressTicket:
    """Lets its holder watch what becomes of the upload."""

    uid: str
    ticket: str


@dataclass(frozen=True, slots=True)
class StartedUpload:
    """What a client needs to send the parts. ``as_dict`` is the shape for HTTP."""

    uid: str
    ticket: str
    expires_at: float
    parts: tuple[PartRange | SinglePart, ...]
    progress: ProgressTicket | None

    def as_dict(self) -> dict[str, Any]:
        found = asdict(self)
        if self.progress is None:
            del found["progress"]
        return found


def plan(file_size: int) -> tuple[PartRange | SinglePart, ...]:
    """How a file of this size is cut: whole parts as one range, the rest as a single part."""
    whole, rest = divmod(file_size, PART_BYTES)
    found: list[PartRange | SinglePart] = []
    if whole == 1:
        found.append(SinglePart(1, 0, PART_BYTES - 1))
    elif whole:
        found.append(PartRange(1, 0, whole, PART_BYTES))
    if rest:
        found.append(SinglePart(whole + 1, whole * PART_BYTES, file_size - 1))
    return tuple(found)


def part_rows(upload_id: int, file_size: int) -> Iterator[dict[str, int]]:
    """The rows of these parts."""
    for number, start in enumerate(range(0, file_size, PART_BYTES), 1):
        yield {"upload_id": upload_id, "part_number": number, "start_byte": start,
               "end_byte": min(start + PART_BYTES, file_size) - 1}


def check_job(book: JobBook, name: str, kwargs: Mapping[str, Any]) -> str:
    """The arguments as JSON, if the book has this job and it takes them."""
    job = book.get(name)
    if job is None:
        raise Invalid(f"an upload cannot end with {name}: there is no such job in the book")
    job.check(dict(kwargs))
    try:
        return msgspec.json.encode(kwargs).decode()
    except TypeError as error:
        raise Invalid(f"job {name}: its arguments cannot be written as JSON: {error}") from None
