"""Signatures of requests to Amazon, version 4, of exactly the requests that are made here: without a query.

The library that Amazon offers signs any request, and takes longer for that than everything else that sending costs.
"""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlsplit

ALGORITHM: Final = "AWS4-HMAC-SHA256"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Keys:
    """Who signs. ``token``: proof that goes with keys that are lent for a while."""

    access_key: str
    secret_key: str
    token: str = ""


class Signer:
    """Signs requests to one service in one region."""

    def __init__(self, service: str, region: str) -> None:
        self._service, self._region = service, region

    def headers(self, method: str, url: str, body: bytes, keys: Keys, now: datetime) -> dict[str, str]:
        """The headers to send the request with. ``now`` is in UTC; the receiver accepts it for some minutes."""
        host, path = _split(url)
        moment = now.strftime("%Y%m%dT%H%M%SZ")
        day = moment[:8]
        given = {"content-type": JSON} if body else {}
        given |= {"host": host, "x-amz-date": moment}
        if keys.token:
            given["x-amz-security-token"] = keys.token
        names = ";".join(given)  # in the order of the alphabet already
        lines = "".join([f"{name}:{value}\n" for name, value in given.items()])
        canonical = f"{method}\n{path}\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        scope = f"{day}/{self._region}/{self._service}/aws4_request"
        told = f"{ALGORITHM}\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = _day_key(keys.secret_key, day, self._region, self._service)
        signature = hmac.digest(key, told.encode(), "sha256").hex()
        shown = {"Content-Type": JSON} if body else {}
        shown |= {"X-Amz-Date": moment, "Authorization": (
            f"{ALGORITHM} Credential={keys.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        )}
        if keys.token:
            shown["X-Amz-Security-Token"] = keys.token
        return shown


@lru_cache(maxsize=16)
def _split(url: str) -> tuple[str, str]:
    """Host as it is sent, and the path as it is signed."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    if parts.port is not None and parts.port != usual:
        host = f"{host}:{parts.port}"
    return host, quote(parts.path or "/", safe="/~")


@lru_cache(maxsize=16)
def _day_key(secret_key: str, *scope: str) -> bytes:
    """The key of one day, region and service: the same for every request of a day."""
    key = f"AWS4{secret_key}".encode()
    for part in (*scope, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
