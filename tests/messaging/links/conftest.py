"""The links room with a message that was delivered."""

from collections.abc import AsyncIterator

import pytest_asyncio

from keystead.engine import Valkey
from keystead.store import Database

from .room import Room


@pytest_asyncio.fixture
async def room(valkey: Valkey, database: Database) -> AsyncIterator[Room]:
    """On one server, with each database."""
    made = Room(valkey, database)
    await made.people()
    yield made


@pytest_asyncio.fixture
async def wide_room(server: Valkey, database: Database) -> AsyncIterator[Room]:
    """On one server and on the cluster; for tests that are marked ``on_sqlite``."""
    made = Room(server, database)
    await made.people()
    yield made
