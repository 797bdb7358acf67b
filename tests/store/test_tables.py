"""The description of all tables; that the migrations make just these is shown in ``test_migration``."""

from keystead.store.tables import METADATA


def test_tables_of_the_store_carry_its_name() -> None:
    assert "store_outbox" in METADATA.tables
