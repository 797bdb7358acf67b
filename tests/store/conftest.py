"""Places for object files: a directory, and a bucket on a server of this test process that speaks the S3 protocol."""

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from keystead.engine import Valkey
from keystead.store import Database
from keystead.store.files import ObjectFiles, open_files
from keystead.testing.clock import MovableClock

from .file_place import Place


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The address of a server with the S3 protocol; started when the first test asks."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@asynccontextmanager
async def fresh_bucket(endpoint: str) -> AsyncIterator[str]:
    """The address of a new bucket."""
    from aiobotocore.session import get_session

    bucket = f"Test-{uuid.uuid4().hex}".lower()
    async with get_session().create_client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="id", aws_secret_access_key="secret"
    ) as client:
        await client.create_bucket(Bucket=bucket)
    yield f"s3://id:secret@{bucket}/some/place?endpoint={endpoint}&path_style=yes"


@pytest_asyncio.fixture(params=["directory", "s3"])
async def objects(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ObjectFiles]:
    """An empty place for object files, of both kinds."""
    if request.param == "directory":
        async with open_files((tmp_path / "objects").as_uri()) as files:
            yield files
        return
    async with fresh_bucket(request.getfixturevalue("s3_endpoint")) as url, open_files(url) as files:
        yield files


@pytest_asyncio.fixture
async def place(
    valkey: Valkey, database: Database, moving_clock: MovableClock, tmp_path: Path
) -> AsyncIterator[Place]:
    """Files in an empty directory, on both databases."""
    async with open_files((tmp_path / "objects").as_uri()) as objects:
        yield Place(valkey, database, objects, moving_clock)
