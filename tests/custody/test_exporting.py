"""Everything of a person as JSON, and nothing of anybody else."""

import json
from typing import Any

import pytest

from keystead.custody import Person, export
from keystead.custody.finding import Finder, Search
from keystead.engine import Valkey

from .shop import ANN, BOB, MAIL, SHOP, fill


async def test_export_is_whole_and_only_theirs(server: Valkey) -> None:
    await fill(server)
    await server.hset(f"profile:{ANN}", "picture", b"\xff\xfe")
    told = await export(server, SHOP, Person([ANN, MAIL]), server="here")
    text = json.dumps(told)
    assert BOB not in text and "bob@" not in text
    values = {each["key"]: each["value"] for each in told["keys"]}
    assert values[f"profile:{ANN}"] == {"name": "x", "mail": MAIL, "picture": "base64://4="}
    assert json.loads(values["session:711x9"])["user"] == ANN and json.loads(values["packed:9"])["mail"] == MAIL
    assert values["newsletter"] == [MAIL] and values["ranking"] == {ANN: "5"} and len(values["mails:to_send"]) == 3
    assert [entry["fields"]["n"] for entry in values["events"]] == ["0", "1", "2"]
    assert len(values["huge"]) == 512 * 1024 - 4 + len(ANN) + 600_000
    assert "page:7" not in values and "page:7" in str(await export(server, SHOP, Person([ANN]), everywhere=True))
    (session,) = [each for each in told["keys"] if each["key"] == "session:711x9"]
    assert 3500 < session["expires_in_seconds"] <= 3600 and session["purpose"]


async def test_key_that_became_something_else_meanwhile_does_not_end_the_export(valkey: Valkey) -> None:
    await valkey.xadd("events", {"user": ANN})
    await valkey.hset(f"profile:{ANN}", mapping={"name": "x"})
    taken = Finder.search

    async def search_slowly(self: Finder, **options: Any) -> Search:
        found = await taken(self, **options)
        await valkey.delete(f"profile:{ANN}")
        await valkey.set(f"profile:{ANN}", "a string now")
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Finder, "search", search_slowly)
        told = await export(valkey, SHOP, Person([ANN]))
    assert {key["key"]: key.get("unreadable", False) for key in told["keys"]} == {
        "events": False, f"profile:{ANN}": True}
