"""What only a bucket can do wrong: no server, no bucket, no right; and that secrets stay secret."""

import socket

import pytest

from keystead.errors import GatewayError, Unavailable
from keystead.store.files import open_files
from keystead.store.files_s3 import S3Files

from .conftest import fresh_bucket
from .test_files import pieces, whole

MIB = 1024 * 1024


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


async def test_a_bucket_out_of_reach_is_unavailable_and_no_secret_is_told(caplog: pytest.LogCaptureFixture) -> None:
    url = f"s3://theid:thesecret@bucket?endpoint=http://127.0.0.1:{free_port()}&path_style=yes"
    caplog.set_level("DEBUG", logger="keystead")
    async with open_files(url) as files:
        with pytest.raises(Unavailable) as caught:
            await files.write("one", pieces(b"x"))
    assert "thesecret" not in str(caught.value) + caplog.text


async def test_a_bucket_that_does_not_exist_is_no_passing_trouble(s3_endpoint: str) -> None:
    async with open_files(f"s3://id:secret@nowhere?endpoint={s3_endpoint}&path_style=yes") as files:
        for doing in (files.write("one", pieces(b"x")), files.delete("one"), whole(files, "one")):
            with pytest.raises(GatewayError, match="NoSuchBucket") as caught:
                await doing
            assert not caught.value.transient


async def test_an_upload_that_nobody_finished_goes_with_the_object(s3_endpoint: str) -> None:
    async with fresh_bucket(s3_endpoint) as url, open_files(url) as files:
        assert isinstance(files, S3Files)
        client, bucket = files._client, files.bucket
        for key in ("one", "one-more"):
            await client.create_multipart_upload(Bucket=bucket, Key=f"some/place/{key}")
        await files.delete("one")
        left = await client.list_multipart_uploads(Bucket=bucket)
        assert [upload["Key"] for upload in left["Uploads"]] == ["some/place/one-more"]


async def test_content_type_and_prefix_reach_the_bucket(s3_endpoint: str) -> None:
    async with fresh_bucket(s3_endpoint) as url, open_files(url) as files:
        assert isinstance(files, S3Files)
        for key, size in (("small", 3), ("large", 9 * MIB)):
            await files.write(key, pieces(bytes(size)), content_type="image/webp")
            found = await files._client.head_object(Bucket=files.bucket, Key=f"some/place/{key}")
            assert found["ContentType"] == "image/webp"
