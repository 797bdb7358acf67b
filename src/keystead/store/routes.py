"""The HTTP door of the store: parts of uploads. Begun is an upload by the room that wants the file."""

import re
from base64 import b64decode
from typing import Annotated, Final

from fastapi import APIRouter, Header, Path, Query, Request
from pydantic import BaseModel, Field

from keystead.edge import NotLoggedIn
from keystead.errors import Invalid
from keystead.store.uploads import Uploads

_DIGEST: Final = re.compile(r"(?:^|,)\s*sha-256=:([A-Za-z0-9+/]{43}=):")


class Taken(BaseModel):
    """A part was taken."""

    done: bool = Field(description="whether it was the last one that was missing")


def routes(uploads: Uploads) -> APIRouter:
    """Under the prefix of the HTTP interface."""
    router = APIRouter(tags=["files"])

    @router.post("/file_uploads/{uid}/{part}", status_code=202, responses={409: {}, 413: {}}, openapi_extra={
        "requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
    })
    async def put_part(
        request: Request,
        uid: Annotated[str, Path(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_-]+$")],
        part: Annotated[int, Path(ge=1, le=100_000)],
        ticket: Annotated[str, Query(max_length=4096, description="of the upload; or as a bearer token")] = "",
        authorization: Annotated[str, Header(max_length=4200)] = "",
        content_digest: Annotated[
            str, Header(max_length=1000, description="sha-256=:BASE64: of the part, as in RFC 9530")
        ] = "",
    ) -> Taken:
        """Send one part of an upload, as the body of the request. Parts may come in any order and at the same time."""
        ticket = ticket or _bearer(authorization)
        done = await uploads.put(uid, part, ticket, request.stream(), sha256=_sha256(content_digest))
        return Taken(done=done)

    return router


def _bearer(header: str) -> str:
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "bearer" or not value.strip():
        raise NotLoggedIn("a part needs the ticket of its upload: ?ticket=... or Authorization: Bearer ...")
    return value.strip()


def _sha256(header: str) -> str:
    """The checksum in hexadecimal; empty without the header."""
    if not header:
        return ""
    found = _DIGEST.search(header)
    if found is None:
        raise Invalid("the header Content-Digest must read sha-256=:BASE64:, or be left out")
    return b64decode(found[1]).hex()
