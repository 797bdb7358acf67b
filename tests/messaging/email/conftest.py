"""The room of email on one server and on the cluster."""

import pytest_asyncio

from keystead.engine import Valkey
from keystead.store import Database

from .room import Room


@pytest_asyncio.fixture
async def room(server: Valkey, database: Database) -> Room:
    """For tests that are marked ``on_sqlite``."""
    return Room(server, database)
