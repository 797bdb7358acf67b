"""Under which names the server may be reached.

A page of a foreign site can make a browser send requests to a loopback address under that site's own name (DNS
rebinding). Such a request carries the foreign name in its Host header, so a name we do not know is refused. An address
written in digits cannot be rebound and is always fine.
"""

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit


class HostNames:
    """The names that are ours: loopback names, addresses in digits, and those that were configured."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {name.strip().lower().rstrip(".") for name in names if name.strip()} | {"localhost"}

    def serves(self, host_header: str) -> bool:
        name = _name_of(host_header)
        if name is None:
            return False
        if name in self._names or name.endswith(".localhost"):
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


def same_origin(origin: str, host_header: str) -> bool:
    """Whether a page of ``origin`` belongs to the server that was asked as ``host_header``."""
    try:
        parts = urlsplit(origin)
        default = {"http": 80, "https": 443}[parts.scheme]
        asked = urlsplit(f"{parts.scheme}://{host_header}")
        return (parts.hostname, parts.port or default) == (asked.hostname, asked.port or default)
    except (KeyError, ValueError):
        return False


def _name_of(host_header: str) -> str | None:
    try:
        parts = urlsplit(f"//{host_header}")
        _ = parts.port
    except ValueError:
        return None
    if parts.hostname is None or parts.path or parts.username is not None:
        return None
    return parts.hostname.lower().rstrip(".")
