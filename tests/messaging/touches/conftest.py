"""The room of touches, put together as the app does it."""

from collections.abc import AsyncIterator

import pytest_asyncio

from keystead.engine import Valkey
from keystead.store import Database

from .room import Room


@pytest_asyncio.fixture
async def room(valkey: Valkey, database: Database) -> AsyncIterator[Room]:
    """On one server, with each database."""
    yield Room(valkey, database)


@pytest_asyncio.fixture
async def wide_room(server: Valkey, database: Database) -> AsyncIterator[Room]:
    """On one server and on the cluster; for tests that are marked ``on_sqlite``."""
    yield Room(server, database)
