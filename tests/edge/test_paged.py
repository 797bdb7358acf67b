"""Pages over HTTP."""

import httpx
from fastapi import FastAPI

from keystead.edge.paged import FIRST_LIMIT, Cursor, Limit, Paged
from keystead.edge.paging import MOST_CURSOR_CHARACTERS, MOST_ITEMS


class Numbers(Paged):
    items: list[int]


async def test_each_list_takes_the_same_and_says_the_same():
    app = FastAPI()

    @app.get("/numbers")
    async def numbers(limit: Limit = FIRST_LIMIT, cursor: Cursor = None) -> Numbers:
        return Numbers(items=[limit], next_cursor=cursor)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as http:
        assert (await http.get("/numbers")).json() == {"items": [FIRST_LIMIT], "next_cursor": None}
        asked = await http.get("/numbers", params={"limit": MOST_ITEMS, "cursor": "x"})
        assert asked.json() == {"items": [MOST_ITEMS], "next_cursor": "x"}
        for wrong in ({"limit": 0}, {"limit": MOST_ITEMS + 1}, {"cursor": "x" * (MOST_CURSOR_CHARACTERS + 1)}):
            assert (await http.get("/numbers", params=wrong)).status_code == 422
    limit, cursor = app.openapi()["paths"]["/numbers"]["get"]["parameters"]
    assert (limit["name"], cursor["name"]) == ("limit", "cursor") and "next_cursor" in cursor["description"]
