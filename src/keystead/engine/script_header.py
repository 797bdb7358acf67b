"""The contract at the top of every Lua script, and whether the body keeps it.

::

    #!lua
    -- take: move the oldest items of a queue into purgatory and return them.
    -- KEYS[1]    list  queue      oldest at the left
    -- ARGV[1]    int   most       1..1000
    -- ARGV[2..]  text  items      any number, also none
    -- DERIVES    hash  record     from ARGV[1], a template
    -- Returns    array of items, oldest first
    -- Cost       O(most)          Repeat: safe

A key's kind is what TYPE answers, or ``any``; an argument's kind is int, float, number, text or bytes. ``Repeat``
says whether running the script twice does no harm.
"""

import re
from dataclasses import dataclass

KEY_KINDS = frozenset(("any", "hash", "list", "set", "stream", "string", "zset"))
ARGUMENT_KINDS = frozenset(("bytes", "float", "int", "number", "text"))

_SLOT = re.compile(r"^(KEYS|ARGV)\[(\d+)(\.\.)?\]\s+(\S+)\s+(\S+)\s*(.*)$")
_BOUNDS = re.compile(r"^(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)(?![\w.])")
_NUMBERS = frozenset(("float", "int", "number"))


@dataclass(frozen=True, slots=True)
class Slot:
    """One documented key or argument."""

    kind: str
    name: str
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """What a script takes, gives and costs. ``more_keys`` and ``more_arguments`` repeat the last documented slot."""

    summary: str
    keys: tuple[Slot, ...]
    arguments: tuple[Slot, ...]
    more_keys: bool
    more_arguments: bool
    derives: tuple[str, ...]
    returns: str
    cost: str
    repeat: bool


def parse_header(text: str) -> Header:
    """Read the header; ``ValueError`` names the first line that is not as it must be."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "#!lua":
        raise ValueError("the first line must be #!lua, so that the server refuses keys outside the slot")
    comments = []
    for line in lines[1:]:
        if not line.startswith("--"):
            break
        comments.append(line[2:].strip())
    if not comments or not re.match(r"[\w ]+: \S", comments[0]):
        raise ValueError("the second line must say what the script does: -- name: purpose")
    slots: dict[str, list[Slot]] = {"KEYS": [], "ARGV": []}
    more = {"KEYS": False, "ARGV": False}
    derives, returns, cost, repeat = [], "", "", None
    for comment in comments[1:]:
        if found := _SLOT.match(comment):
            table, number, open_end, kind, name, note = found.groups()
            if more[table] or int(number) != len(slots[table]) + 1:
                raise ValueError(f"{table}[{number}] is out of order")
            if kind not in (KEY_KINDS if table == "KEYS" else ARGUMENT_KINDS):
                raise ValueError(f"{table}[{number}] has an unknown kind {kind}")
            bounds = _BOUNDS.match(note) if kind in _NUMBERS else None
            least, most = (float(bounds[1]), float(bounds[2])) if bounds else (None, None)
            slots[table].append(Slot(kind, name, least, most))
            more[table] = bool(open_end)
        elif comment.startswith(("KEYS[", "ARGV[")):
            raise ValueError(f"the line {comment!r} must read like KEYS[1]  list  queue  or ARGV[1]  int  most  1..10")
        elif comment.startswith("DERIVES"):
            derives.append(comment.removeprefix("DERIVES").strip())
        elif comment.startswith("Returns"):
            returns = comment.removeprefix("Returns").strip()
        elif comment.startswith("Cost"):
            cost = comment.removeprefix("Cost").partition("Repeat:")[0].strip()
        if "Repeat:" in comment:
            word = comment.partition("Repeat:")[2].strip()
            repeat = not word.startswith("not safe")
            if repeat and not word.startswith("safe"):
                raise ValueError("Repeat: must say safe or not safe")
    if not returns or not cost or repeat is None:
        raise ValueError("the header needs the lines Returns, and Cost with Repeat: safe or not safe")
    return Header(
        comments[0], tuple(slots["KEYS"]), tuple(slots["ARGV"]), more["KEYS"], more["ARGV"], tuple(derives), returns,
        cost, repeat,
    )  # fmt: skip


def body_problems(text: str) -> list[str]:
    """Where a script's body breaks its header or the rules for scripts; empty when it keeps them."""
    try:
        header = parse_header(text)
    except ValueError as error:
        return [str(error)]
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("--", "#!"))]
    body = "\n".join(lines)
    problems = []
    if re.search(r"call\(\s*['\"]TIME['\"]", body, re.IGNORECASE):
        problems.append("the body asks the server for the time; time comes in as an argument")
    for table, documented, open_end in (
        ("KEYS", header.keys, header.more_keys), ("ARGV", header.arguments, header.more_arguments),
    ):  # fmt: skip
        used = {int(number) for number in re.findall(rf"{table}\[(\d+)\]", body)}
        loops = bool(re.search(rf"#{table}\b|{table}\[[a-z]|unpack\({table}|ipairs\({table}", body))
        for number in range(1, len(documented) + 1):
            last = open_end and number == len(documented)
            if number not in used and not (loops and last):
                problems.append(f"{table}[{number}] is documented and not used")
        for number in sorted(used):
            if number > len(documented) and not open_end:
                problems.append(f"{table}[{number}] is used and not documented")
        if loops and not open_end:
            problems.append(f"the body walks over {table}, so the header must end it with {table}[n..]")
    return problems
