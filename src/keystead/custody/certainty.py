"""Whether what was found is the person, or something that only looks like them and is for somebody to judge."""

import re
from collections.abc import Mapping
from typing import Final

from keystead.custody.person import Person, is_short_number
from keystead.custody.reading import Part
from keystead.inventory import Entry

# Names of variables and fields that stand for one person in most programs.
_WHO: Final = """
    user user_id userid user_sub sub uid username user_name user_uuid member member_id customer customer_id person
    person_id patient_id employee_id subscriber_id
"""
# And those that may stand for a firm, a program or a thing of theirs.
_WHOSE: Final = """
    client_id account account_id profile_id email mail email_address phone phone_number msisdn ip ip_address device
    device_id visitor visitor_id
"""
_PEOPLE: Final = frozenset(_WHO.split())
PERSONAL_VARIABLES: Final = _PEOPLE | frozenset(_WHOSE.split())
PERSONAL_KINDS: Final = frozenset(("user", "email", "ip", "phone"))
_COUNTS: Final = frozenset(("integer", "float", "bitmap", "hyperloglog"))
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Certainty:
    """Judges what stands in one key. ``fields`` are those that the inventory marks as personal."""

    def __init__(self, person: Person, entry: Entry | None, arguments: Mapping[str, str]) -> None:
        self._person = person
        self._names = person.names
        self._numbers = [each for each in person.ids if is_short_number(each)]
        self._entry = entry
        self._arguments = arguments
        marked = entry.personal.words if entry is not None and entry.personal is not None else ""
        self.fields = {name.removeprefix("field ") for name in marked.split(", ") if name.startswith("field ")}

    @property
    def of_somebody_else(self) -> bool:
        """Whether the name of the key says that it is another person's."""
        return any(name in _PEOPLE and not self._person.is_value(value) for name, value in self._arguments.items())

    def names_them(self, key: bytes, ours: bool) -> bool:
        """Whether the key is the person's by its name: not by a number that may be that of an order."""
        for variable, value in self._arguments.items():
            if self._person.is_value(value) and (self._is_of_people(variable) or (ours and not is_short_number(value))):
                return True
        # A name that holds the identifier without being found in a variable is theirs as well: u:17|friends.
        return self._names is not None and self._names.is_in(key)

    def is_sure(self, part: Part, type: str) -> bool:
        """Whether a part that seems to hold the person does."""
        if type == "zset":
            return self._says(part.raw[0], None)
        if type in ("string", "ReJSON-RL"):
            if self.of_somebody_else and not self._is_just_them(part.raw[0]):
                return False  # somebody else's, and only mentions them
            return self._says(part.raw[0], None)
        if part.where in ("field", "entry"):
            pairs = zip(part.raw[::2], part.raw[1::2], strict=False)
            return any(self._says(name, None) or self._says(value, name) for name, value in pairs)
        if part.where in ("group", "consumer"):  # worker-17 is no person
            return self._names is not None and self._names.is_in(part.raw[0])
        return any(self._says(raw, None) for raw in part.raw)

    def _says(self, raw: bytes, field: bytes | None) -> bool:
        if self._names is not None and self._names.is_in(raw):
            return True
        if not self._numbers:
            return False
        if field is not None and raw.isdigit():
            return self._person.is_in(raw) and self._is_personal(field.decode(errors="replace"))
        if self._is_just_them(raw):
            counts = self._entry is not None and self._entry.type is not None and self._entry.type.value in _COUNTS
            return not (counts or self.of_somebody_else)
        return any(self._is_personal(found[1].decode(errors="replace")) for number in self._numbers for found in
                   re.finditer(rb'"(\w+)\\?"\s*:\s*\\?"?' + number.encode() + rb"(?![0-9.])", raw))

    def _is_just_them(self, raw: bytes) -> bool:
        return self._person.is_value(raw.strip(b'" \r\n').decode(errors="replace"))

    def _is_of_people(self, variable: str) -> bool:
        """Whether a variable stands for a person: by its name, its kind, or the word before it (user:{id})."""
        if self._entry is None:
            return False
        if variable in PERSONAL_VARIABLES or dict(self._entry.variables).get(variable) in PERSONAL_KINDS:
            return True
        word = re.search(r"(\w+)[^\w{}]*$", self._entry.pattern.partition(f"{{{variable}}}")[0])
        if variable not in ("id", "uuid", "number", "name") or word is None:
            return False
        one = word[1].removesuffix("s")
        return not {word[1], one, one + "_id"}.isdisjoint(PERSONAL_VARIABLES)

    def _is_personal(self, field: str) -> bool:
        name = _HUMP.sub("_", field).lower()
        return field in self.fields or name in PERSONAL_VARIABLES or any(
            name.endswith("_" + each) for each in PERSONAL_VARIABLES)
