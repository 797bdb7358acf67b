"""Pages over HTTP, the same for every list that has them: what a client asks with, and what each answer ends with.

Apart from ``paging``, which programs without an HTTP server use too.
"""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from keystead.edge.paging import DEFAULT_ITEMS, MOST_CURSOR_CHARACTERS, MOST_ITEMS

Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="how many at most")]
Cursor = Annotated[str | None, Query(
    max_length=MOST_CURSOR_CHARACTERS, description="`next_cursor` of the page before; without it, from the beginning",
)]
FIRST_LIMIT = DEFAULT_ITEMS


class Paged(BaseModel):
    """One page. Each list adds its ``items``."""

    next_cursor: str | None = Field(None, description="asks for the next page; without one this was the last")
