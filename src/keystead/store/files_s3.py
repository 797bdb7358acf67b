"""Object files in a bucket that speaks the S3 protocol.

A write sends parts of ``PART_BYTES``, one at a time, and an object that fits into one part in a single request.
Credentials reach no log line and no error message.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final
from urllib.parse import SplitResult, unquote

from keystead.errors import GatewayError, Invalid, NotFound, Unavailable
from keystead.store.files import (
    CHUNK_BYTES,
    DEFAULT_CONTENT_TYPE,
    ObjectFiles,
    checked_key,
    in_pieces,
    refuse_unknown,
)

PART_BYTES: Final = 8 * 1024 * 1024  # the protocol takes no part below 5 MiB, except the last
DEFAULT_REGION: Final = "us-east-1"
CONNECT_SECONDS: Final = 10
READ_SECONDS: Final = 60
ATTEMPTS: Final = 3
MISSING: Final = frozenset(("404", "NoSuchKey", "NoSuchUpload", "NotFound"))
# What the service says when it is the service that cannot, not we who are wrong.
TRANSIENT: Final = frozenset((
    "500", "502", "503", "504", "InternalError", "OperationAborted", "RequestTimeout", "RequestTimeTooSkewed",
    "ServiceUnavailable", "SlowDown", "Throttling", "ThrottlingException", "TooManyRequestsException",
))


class S3Files:
    """Objects of one bucket, under a prefix."""

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix

    @property
    def bucket(self) -> str:
        return self._bucket

    async def write(
        self, key: str, chunks: AsyncIterable[bytes], *, content_type: str = DEFAULT_CONTENT_TYPE
    ) -> int:
        place = self._place(key)
        parts = in_pieces(chunks, PART_BYTES)
        first = await anext(parts, b"")
        if len(first) < PART_BYTES:
            with _said("write"):
                await self._client.put_object(**place, Body=first, ContentType=content_type)
            return len(first)
        with _said("begin a write"):
            begun = await self._client.create_multipart_upload(**place, ContentType=content_type)
        place["UploadId"] = begun["UploadId"]
        try:
            return await self._write_parts(place, first, parts)
        except BaseException:
            # Parts that nobody completes cost storage; a deletion of the key ends them if this does not.
            with contextlib.suppress(Exception):
                await asyncio.shield(self._client.abort_multipart_upload(**place))
            raise

    async def _write_parts(self, place: dict[str, str], first: bytes, rest: AsyncIterator[bytes]) -> int:
        size = 0
        sent: list[dict[str, object]] = []
        part: bytes | None = first
        while part is not None:
            number = len(sent) + 1
            with _said("write a part"):
                answer = await self._client.upload_part(**place, PartNumber=number, Body=part)
            sent.append({"PartNumber": number, "ETag": answer["ETag"]})
            size += len(part)
            part = await anext(rest, None)
        with _said("finish a write"):
            await self._client.complete_multipart_upload(**place, MultipartUpload={"Parts": sent})
        return size

    async def read(self, key: str, *, start_byte: int = 0, end_byte: int | None = None) -> AsyncIterator[bytes]:
        place = self._place(key)
        if start_byte or end_byte is not None:
            if end_byte is not None and end_byte < start_byte:
                return
            place["Range"] = f"bytes={start_byte}-{'' if end_byte is None else end_byte}"
        try:
            with _said("read", key):
                answer = await self._client.get_object(**place)
        except _PastTheEnd:
            return
        body = answer["Body"]
        async with body:
            with _said("read", key):
                async for chunk in body.iter_chunks(CHUNK_BYTES):
                    yield chunk

    async def size(self, key: str) -> int | None:
        try:
            with _said("ask for", key):
                answer = await self._client.head_object(**self._place(key))
        except NotFound:
            return None
        return int(answer["ContentLength"])

    async def delete(self, key: str) -> None:
        place = self._place(key)
        with _said("delete"):
            # Unfinished writes first: one that is completed meanwhile is then found under its own name.
            found = await self._client.list_multipart_uploads(Bucket=self._bucket, Prefix=place["Key"])
        for upload in found.get("Uploads", ()):
            if upload["Key"] == place["Key"]:
                with contextlib.suppress(NotFound), _said("delete", key):
                    await self._client.abort_multipart_upload(**place, UploadId=upload["UploadId"])
        with contextlib.suppress(NotFound), _said("delete", key):
            await self._client.delete_object(**place)

    async def keys(self, under: str = "") -> AsyncIterator[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix + under)
        with _said("list"):
            async for page in pages:
                for entry in page.get("Contents", ()):
                    yield entry["Key"].removeprefix(self._prefix)

    def _place(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + checked_key(key)}


@asynccontextmanager
async def open_s3(parts: SplitResult, query: dict[str, str]) -> AsyncIterator[ObjectFiles]:
    """The bucket of an address as ``files`` describes it. Connects when the first object is asked for."""
    try:
        from aiobotocore.config import AioConfig
        from aiobotocore.session import get_session
    except ImportError:
        raise Invalid("files in S3 need another package: pip install 'keystead[s3]'") from None
    refuse_unknown(query, "endpoint", "path_style", "region")
    if not parts.hostname:
        raise Invalid("a bucket is written s3://BUCKET or s3://BUCKET/PREFIX")
    prefix = unquote(parts.path).strip("/")
    config = AioConfig(
        connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS,
        retries={"mode": "standard", "max_attempts": ATTEMPTS},
        s3={"addressing_style": "path" if _yes(query.get("path_style", "")) else "auto"},
        # Servers other than Amazon's know nothing of the newer checksums.
        request_checksum_calculation="when_required", response_checksum_validation="when_required",
    )
    login = {}
    if parts.username or parts.password:
        login = {"aws_access_key_id": unquote(parts.username or ""),
                 "aws_secret_access_key": unquote(parts.password or "")}
    making = get_session().create_client(
        "s3", region_name=query.get("region", DEFAULT_REGION), endpoint_url=query.get("endpoint") or None,
        config=config, **login,
    )
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(making)
        except ValueError:
            raise Invalid("the bucket's address cannot be used: endpoint is an http(s) URL, region a name") from None
        yield S3Files(client, _bucket_of(parts), f"{checked_key(prefix)}/" if prefix else "")


class _PastTheEnd(Exception):
    """The range begins behind the last byte."""


def _bucket_of(parts: SplitResult) -> str:
    """The host as it was written: ``hostname`` would lower its case."""
    return parts.netloc.rpartition("@")[2].partition(":")[0]


def _yes(text: str) -> bool:
    if text.lower() not in ("", "0", "1", "no", "yes", "false", "true"):
        raise Invalid("path_style is yes or no")
    return text.lower() in ("1", "yes", "true")


@contextlib.contextmanager
def _said(doing: str, key: str = "") -> Iterator[None]:
    """What the service or the network says, in our words; the names of errors, never what they quote."""
    import aiohttp
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError
    from botocore.exceptions import ConnectionError as NoConnection

    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", "unknown"))
        status = str(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", ""))
        if code == "InvalidRange":
            raise _PastTheEnd from None
        if key and code in MISSING:
            raise NotFound(f"there is no file {key}") from None
        raise GatewayError(
            f"the bucket did not {doing}: {code}", transient=code in TRANSIENT or status.startswith("5")
        ) from None
    except NoCredentialsError:
        raise GatewayError("the bucket needs credentials and none were found", transient=False) from None
    except (HTTPClientError, NoConnection, aiohttp.ClientError, OSError, TimeoutError) as error:
        raise Unavailable(f"the bucket is out of reach: {type(error).__name__}") from None
    except BotoCoreError as error:
        raise GatewayError(f"the bucket could not be asked to {doing}: {type(error).__name__}", transient=False) \
            from None
