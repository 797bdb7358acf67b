"""Counts and log lines of any floor. The web front exports them; nothing here knows who reads.

A *count* is a named number with labels, cheap enough for a hot path (one dictionary step). Names read as
``wire_replies_lost``; the exporter adds the prefix ``keystead_``.
"""

import itertools
import logging
import sys
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from keystead.scrubbing import failure_traced, scrubbed
from keystead.tracing import span as span
from keystead.tracing import traceparent as traceparent

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One number as an exporter sees it."""

    name: str
    help: str
    kind: str  # "counter" or "gauge"
    labels: Labels
    value: float


class Counts:
    """Process-wide numbers: counters that only grow, and gauges that are asked for when someone looks."""

    def __init__(self) -> None:
        self._help: dict[str, str] = {}
        self._counters: dict[tuple[str, Labels], float] = {}
        self._gauges: dict[tuple[str, Labels], Callable[[], float]] = {}

    def describe(self, name: str, help: str) -> None:
        """Say in one sentence what ``name`` counts; the exporter shows it."""
        self._help[name] = help

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        key = name, tuple(sorted(labels.items()))
        self._counters[key] = self._counters.get(key, 0) + amount

    def gauge(self, name: str, read: Callable[[], float], **labels: str) -> Callable[[], None]:
        """Ask ``read`` whenever someone looks. Returns a function that takes the gauge away again."""
        key = name, tuple(sorted(labels.items()))
        self._gauges[key] = read

        def remove() -> None:
            if self._gauges.get(key) is read:
                del self._gauges[key]

        return remove

    def value(self, name: str, **labels: str) -> float:
        """The counter's value so far; zero if it was never added to."""
        return self._counters.get((name, tuple(sorted(labels.items()))), 0)

    def samples(self) -> Iterator[Sample]:
        for (name, labels), value in list(self._counters.items()):
            yield Sample(name, self._help.get(name, name.replace("_", " ")), "counter", labels, value)
        for (name, labels), read in list(self._gauges.items()):
            yield Sample(name, self._help.get(name, name.replace("_", " ")), "gauge", labels, read())


counts = Counts()


# -- how long things take ----------------------------------------------------------------------------------------------

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
MOST_ROWS: Final = 500
OTHERS: Final = "other"


class Durations:
    """How long something takes, by labels: a histogram that an exporter reads. Noting one is a dictionary step.

    ``name`` ends in ``_seconds``. After ``MOST_ROWS`` combinations of labels all further ones are one.
    """

    all: ClassVar[list["Durations"]] = []

    def __init__(self, name: str, help: str, *, labels: tuple[str, ...], bounds: tuple[float, ...] = SECONDS) -> None:
        self.name, self.help, self.labels, self.bounds = name, help, labels, bounds
        self._rows: dict[tuple[str, ...], list[float]] = {}
        self.all.append(self)

    def observe(self, seconds: float, *values: str) -> None:
        """Note one, with the values of the labels in their order."""
        row = self._rows.get(values)
        if row is None:
            if len(self._rows) >= MOST_ROWS:
                values = (OTHERS,) * len(self.labels)
            row = self._rows.setdefault(values, [0.0] * (len(self.bounds) + 2))
        row[bisect_left(self.bounds, seconds)] += 1
        row[-1] += seconds

    def rows(self) -> Iterator[tuple[tuple[str, ...], list[float], float]]:
        """For each combination of labels how many fell under each bound, the last without one, and their sum."""
        for values, row in list(self._rows.items()):
            yield values, row[:-1], row[-1]

    def count(self, *values: str) -> int:
        """How many were noted with these values."""
        return int(sum(self._rows.get(values, [0.0])[:-1]))


# -- the last log lines of this process --------------------------------------------------------------------------------

KEPT_LINES: Final = 2000
LONGEST_FIELD: Final = 400
_LEVELS: Final = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line. ``number`` grows by one with each line of this process."""

    number: int
    at: float
    level: str
    room: str
    event: str
    fields: Mapping[str, str] = field(default_factory=dict)


class LogRing:
    """The last lines, for whoever looks into this process. Bounded, whatever is logged."""

    def __init__(self, kept: int = KEPT_LINES) -> None:
        self._lines: deque[LogLine] = deque(maxlen=kept)
        self._numbers = itertools.count(1)

    def add(self, level: int, room: str, event: str, fields: Mapping[str, Any]) -> None:
        """Keep a line; it holds no personal data any more."""
        shown = {name: str(value)[:LONGEST_FIELD] for name, value in fields.items() if name != "exception"}
        if "exception" in fields:
            shown["exception"] = str(fields["exception"]).rpartition("\n")[2][:LONGEST_FIELD]
        self._lines.append(LogLine(
            next(self._numbers), time.time(), _LEVELS.get(level, "info"), room, event[:LONGEST_FIELD], shown
        ))

    def after(self, number: int = 0) -> list[LogLine]:
        """Lines with a greater number, oldest first."""
        found: list[LogLine] = []
        for line in reversed(self._lines):
            if line.number <= number:
                break
            found.append(line)
        return found[::-1]

    def clear(self) -> None:
        self._lines.clear()


log_lines = LogRing()


def configure_logging(
    level: str, format: str, *, expected: Callable[[Mapping[str, Any]], bool] | None = None
) -> None:
    """Send log lines to standard error: JSON for machines, text for people.

    ``expected`` says of a line that it is part of a demonstration: kept for the page of the log, but not written.
    """
    import structlog  # a tenth of a second that a library user who never configures it need not pay

    as_json = format == "json" or (format == "auto" and not sys.stderr.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *([_without(expected)] if expected is not None else []),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    foreign = logging.getLogger()
    foreign.handlers = [each for each in foreign.handlers if not isinstance(each, _Foreign)] + [_Foreign()]


def _without(expected: Callable[[Mapping[str, Any]], bool]) -> Callable[[Any, str, Any], Any]:
    import structlog

    def unless_expected(_: Any, __: str, line: Any) -> Any:
        if expected(line):
            raise structlog.DropEvent
        return line

    return unless_expected


class _Foreign(logging.Handler):
    """Lines of other libraries, from warnings on, written as ours are; of theirs only the first line of words."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("keystead."):
            return
        words = scrubbed(record.getMessage().strip().partition("\n")[0])[:LONGEST_FIELD]  # before half of it is cut off
        fields = {"exc_info": record.exc_info[1]} if record.exc_info and record.exc_info[1] else {}
        RoomLogger(record.name)._write(min(record.levelno, logging.ERROR), words, fields)


class RoomLogger:
    """Log lines of one room: an event in plain words, and fields.

    They go where structlog was configured to send them, by ``configure_logging`` or by the program we are part of.
    Until then they go to the standard library's logger ``keystead.ROOM``, as those of any library: never to the
    standard output, which belongs to the program.
    """

    __slots__ = ("_plain", "_room")

    def __init__(self, room: str) -> None:
        self._room = room
        self._plain = logging.getLogger(f"keystead.{room}")

    def debug(self, event: str, **fields: Any) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write(logging.ERROR, event, fields)

    def exception(self, event: str, **fields: Any) -> None:
        """An error with the traceback of the exception that is being handled."""
        self._write(logging.ERROR, event, {"exc_info": True} | fields)

    def _write(self, level: int, event: str, fields: dict[str, Any]) -> None:
        structlog = sys.modules.get("structlog")
        configured = structlog if structlog is not None and structlog.is_configured() else None
        if level < logging.INFO and not (configured is not None or self._plain.isEnabledFor(level)):
            return
        event, told = scrubbed(event), _without_personal_data(fields)
        if level >= logging.INFO:
            bound = structlog.contextvars.get_contextvars() if structlog is not None else {}
            log_lines.add(level, self._room, event, {**bound, **told} if bound else told)
        if configured is not None:
            configured.get_logger(room=self._room).log(level, event, **told)
        elif self._plain.isEnabledFor(level):
            traced = told.pop("exception", "")
            words = " ".join([event, *(f"{name}={value!r}" for name, value in told.items())])
            self._plain.log(level, "%s%s", words, f"\n{traced}" if traced else "", stacklevel=3)


def _without_personal_data(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The last step before a line is kept or written: an exception becomes its place, and every text is scrubbed."""
    raised = fields.get("exc_info")
    error = sys.exc_info()[1] if raised is True else raised
    told = {name: value if isinstance(value, int | float | None) else scrubbed(str(value))
            for name, value in fields.items() if name != "exc_info"}
    return {**told, "exception": failure_traced(error)} if isinstance(error, BaseException) else told


def logger(room: str) -> RoomLogger:
    """The logger of one room; its name goes into every line."""
    return RoomLogger(room)
