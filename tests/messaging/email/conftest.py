"""The room of email; for tests that are marked ``on_sqlite``."""

import pytest_asyncio

from keystead.engine import Valkey
from keystead.store import Database

from .room import Room


@pytest_asyncio.fixture
async def room(valkey: Valkey, database: Database) -> Room:
    """On one server. A module whose tests run on the cluster too has a ``room`` of its own."""
    return Room(valkey, database)
