"""A table for the tests, and what is in it."""

from sqlalchemy import BigInteger, Column, ForeignKey, MetaData, Table, Text, insert, select, update

from keystead.store import Database

TABLES = MetaData()
ITEMS = Table("items", TABLES, Column("name", Text, primary_key=True), Column("total", BigInteger, nullable=False))
PARTS = Table("parts", TABLES, Column("item", Text, ForeignKey("items.name"), nullable=False))


async def make_tables(database: Database, **items: int) -> None:
    async with database.transaction() as sql:
        await sql.run_sync(TABLES.create_all)
        for name, total in items.items():
            await sql.execute(insert(ITEMS).values(name=name, total=total))


async def items(database: Database) -> dict[str, int]:
    async with database.reading() as sql:
        rows = await sql.execute(select(ITEMS.c.name, ITEMS.c.total))
        return {row.name: row.total for row in rows}


def put(name: str, total: int) -> object:
    return insert(ITEMS).values(name=name, total=total)


def change(name: str, total: object) -> object:
    return update(ITEMS).where(ITEMS.c.name == name).values(total=total)
