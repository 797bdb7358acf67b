"""Which address a request is counted under.

The peer of the socket, unless the peer is a proxy we trust: then the right-most hop of its forwarding header that is
not itself trusted. What stands left of that hop was written by the client and is not believed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from keystead.errors import Invalid

UNKNOWN = "unknown"

_Address = IPv4Address | IPv6Address
_Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Networks:
    """A list of networks that can be asked whether an address lies inside."""

    networks: tuple[_Network, ...] = ()

    @classmethod
    def parse(cls, text: str | Iterable[str], *, setting: str) -> "Networks":
        """From ``"10.0.0.0/8, ::1"``; refuses with ``Invalid``, naming the setting, what is no network."""
        parts = text.split(",") if isinstance(text, str) else text
        found: list[_Network] = []
        for part in (part.strip() for part in parts):
            if not part:
                continue
            try:
                found.append(ip_network(part, strict=False))
            except ValueError:
                raise Invalid(f"{setting}: {part!r} is not an address or network such as 10.0.0.0/8") from None
        return cls(tuple(found))

    def __contains__(self, address: object) -> bool:
        return any(address in network for network in self.networks)


LOOPBACK = Networks((IPv4Network("127.0.0.0/8"), IPv6Network("::1/128")))


@dataclass(frozen=True, slots=True)
class ClientAddress:
    """``bucket`` is what limits and blocks are counted under; ``exact`` is the whole address, if there is one."""

    bucket: str
    exact: _Address | None

    def within(self, networks: Networks) -> bool:
        return self.exact is not None and self.exact in networks


NOBODY = ClientAddress(UNKNOWN, None)


def client_address(
    peer: str | None, forwarded_for: Sequence[str], trusted: Networks, *, ipv6_prefix_bits: int = 64
) -> ClientAddress:
    """The address to count a request under; ``unknown`` for one that cannot be read.

    ``forwarded_for`` holds the values of every ``X-Forwarded-For`` line, in order. IPv4 inside IPv6 counts as IPv4,
    and IPv6 as its network, because one household has a whole /64.
    """
    exact = _parsed(peer)
    if exact is not None and exact in trusted:
        hops = [hop for line in forwarded_for for hop in line.split(",")]
        for hop in reversed(hops):
            exact = _parsed(hop)
            if exact is None or exact not in trusted:
                break
    if exact is None:
        return NOBODY
    if isinstance(exact, IPv6Address):
        return ClientAddress(str(IPv6Network((exact, ipv6_prefix_bits), strict=False).network_address), exact)
    return ClientAddress(str(exact), exact)


def _parsed(text: str | None) -> _Address | None:
    """An address, with a port or brackets around it if need be."""
    if text is None:
        return None
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
