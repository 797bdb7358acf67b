"""The rows of the operations room."""

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from keystead.errors import KeysteadError
from keystead.operations.tables import ADMIN_KEYS
from keystead.store import Database

ROW = {"id": "abc", "name": "shop", "secret_sha256": "0" * 64, "scopes": "jobs", "created_at": 1.0}


async def test_a_key_has_an_id_of_its_own_and_a_hash(database: Database) -> None:
    async with database.transaction() as sql:
        await sql.execute(insert(ADMIN_KEYS), ROW)
    for wrong in (ROW, {**ROW, "id": "other", "secret_sha256": None}):
        with pytest.raises((IntegrityError, KeysteadError)):
            async with database.transaction() as sql:
                await sql.execute(insert(ADMIN_KEYS), wrong)
