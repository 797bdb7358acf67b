"""Writers, readers and personal data in cells and sentences."""

from keystead.inventory.documents.blocks import Text, code, link
from keystead.inventory.documents.prose_people import (
    people_of_cell,
    people_of_prose,
    personal_of_cell,
    personal_of_prose,
)
from keystead.inventory.models import Certainty


def test_people():
    writers, readers = people_of_prose(
        Text(f"Set by the api, read by {code('ranker')} and search. Used {link('here', 'x.py')}", 1)
    )
    assert writers == ("api",) and readers == ("ranker", "search")
    assert people_of_cell(Text(f"{code('a/b.py')}, jobs (nightly, twice)", 1)) == ("a/b.py", "jobs (nightly, twice)")
    assert people_of_cell(Text("—", 1)) == ()
    assert people_of_prose(Text("由 order-service 写入，由 gateway 读取", 1)) == (("order-service",), ("gateway",))


def test_personal_data():
    assert personal_of_cell("**Yes** (JWT)") == (True, Certainty.STATED) and personal_of_cell("nein") == (
        False,
        Certainty.STATED,
    )
    assert personal_of_cell("???") is None and personal_of_cell("Consumer driven") is None
    assert personal_of_prose("Holds PII of the rider") == (True, "PII")
    assert personal_of_prose("no personal data")[0] is False and personal_of_prose("a counter") is None
