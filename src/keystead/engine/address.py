"""Where a server is: one URL, parsed once, with its secrets kept out of every message.

::

    embedded://.keystead                                   the server Keystead runs itself, in that directory
    valkey://user:password@host:6379/0                     one server; redis:// means the same
    valkeys://host:6379?ca=FILE&cert=FILE&key=FILE         the same over TLS; rediss:// means the same; verify=no
    unix:///run/valkey.sock?db=1                           one server through its socket
    sentinel://user:password@host:26379,host2:26379/name   whichever server the sentinels call the primary
    cluster://host:6379,host2:6379?tls=yes                 a cluster, found through any of its nodes

User name, password and paths are percent-decoded. Every address takes ``client_name``; all but a cluster take ``db``.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote

from keystead.errors import Invalid


class Kind(Enum):
    """What stands behind an address."""

    EMBEDDED = "embedded"
    TCP = "tcp"
    UNIX = "unix"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Tls:
    """How to speak TLS. Without ``authority`` the system's authorities are trusted."""

    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Address:
    """One parsed URL. ``hosts`` has one entry for a single server, several for a cluster or sentinels."""

    kind: Kind
    hosts: tuple[tuple[str, int], ...] = ()
    path: Path | None = None  # the socket, or the directory of an embedded server
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    db: int = 0
    primary: str = ""  # the name sentinels know the primary by
    client_name: str = ""
    tls: Tls | None = None
    sentinel_username: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)

    @property
    def display(self) -> str:
        """The address for people: complete enough to find the server, without its password."""
        credentials = ""
        if self.username is not None or self.password is not None:
            credentials = quote(self.username or "", safe="") + (":***" if self.password is not None else "") + "@"
        database = f"/{self.db}" if self.db else ""
        if self.kind is Kind.EMBEDDED or self.kind is Kind.UNIX:
            return f"{self.kind.value}://{credentials}{quote(str(self.path))}" + (f"?db={self.db}" if self.db else "")
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        if self.kind is Kind.TCP:
            return f"{'valkeys' if self.tls else 'valkey'}://{credentials}{hosts}{database}"
        if self.kind is Kind.SENTINEL:
            return f"sentinel://{credentials}{hosts}/{quote(self.primary)}" + (f"?db={self.db}" if self.db else "")
        return f"cluster://{credentials}{hosts}" + ("?tls=yes" if self.tls else "")


_TLS_OPTIONS = ("ca", "cert", "key", "verify")
_EXAMPLE = "valkey://user:password@localhost:6379/0"


def parse(url: str) -> Address:
    """Read a server URL. Refuses with one line that names the problem; no message repeats any part of a password."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        raise Invalid(f"the server address has no scheme; write it like {_EXAMPLE} (schemes: {_known()})")
    reader = _READERS.get(scheme.lower())
    if reader is None:
        shown = f"scheme {scheme}" if re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]{0,20}", scheme) else "such scheme"
        raise Invalid(f"there is no {shown} for a server address; known are {_known()}")
    body, _, query = rest.partition("?")
    return reader(scheme.lower(), body, query)


def _known() -> str:
    return ", ".join(f"{name}://" for name in _READERS)


def _embedded(scheme: str, body: str, query: str) -> Address:
    options = _options(scheme, query, ("db", "client_name"))
    if not body:
        raise Invalid("embedded:// names no directory; write embedded://.keystead or embedded:///var/lib/keystead")
    path = Path(unquote(body)).expanduser()
    return Address(Kind.EMBEDDED, path=path, db=_database(scheme, options), client_name=options.get("client_name", ""))


def _tcp(scheme: str, body: str, query: str) -> Address:
    secure = scheme in ("valkeys", "rediss")
    options = _options(scheme, query, ("db", "client_name", *(_TLS_OPTIONS if secure else ())))
    username, password, where = _credentials(scheme, body)
    hosts, _, database = where.partition("/")
    return Address(
        Kind.TCP,
        hosts=(_host(scheme, hosts, 6379),),
        username=username,
        password=password,
        db=_database(scheme, options, database),
        client_name=options.get("client_name", ""),
        tls=_tls(scheme, options) if secure else None,
    )


def _unix(scheme: str, body: str, query: str) -> Address:
    options = _options(scheme, query, ("db", "client_name"))
    username, password, where = _credentials(scheme, body)
    if not where.startswith("/") or where == "/":
        raise Invalid("unix:// needs the full path of the socket; write unix:///run/valkey.sock")
    return Address(
        Kind.UNIX,
        path=Path(unquote(where)),
        username=username,
        password=password,
        db=_database(scheme, options),
        client_name=options.get("client_name", ""),
    )


def _sentinel(scheme: str, body: str, query: str) -> Address:
    known = ("db", "client_name", "tls", *_TLS_OPTIONS, "sentinel_username", "sentinel_password")
    options = _options(scheme, query, known)
    username, password, where = _credentials(scheme, body)
    hosts, _, primary = where.partition("/")
    if not primary or "/" in primary:
        raise Invalid("sentinel:// needs the name of the primary as its path; write sentinel://host:26379/mymaster")
    return Address(
        Kind.SENTINEL,
        hosts=tuple(_host(scheme, host, 26379) for host in hosts.split(",")),
        username=username,
        password=password,
        db=_database(scheme, options),
        primary=unquote(primary),
        client_name=options.get("client_name", ""),
        tls=_optional_tls(scheme, options),
        sentinel_username=options.get("sentinel_username"),
        sentinel_password=options.get("sentinel_password"),
    )


def _cluster(scheme: str, body: str, query: str) -> Address:
    options = _options(scheme, query, ("client_name", "tls", *_TLS_OPTIONS))
    username, password, where = _credentials(scheme, body)
    hosts, _, database = where.partition("/")
    if database not in ("", "0"):
        raise Invalid("a cluster has database 0 only; write cluster://host:6379,host:6379 without a path")
    return Address(
        Kind.CLUSTER,
        hosts=tuple(_host(scheme, host, 6379) for host in hosts.split(",")),
        username=username,
        password=password,
        client_name=options.get("client_name", ""),
        tls=_optional_tls(scheme, options),
    )


_READERS: Mapping[str, Callable[[str, str, str], Address]] = {
    "embedded": _embedded,
    "valkey": _tcp,
    "redis": _tcp,
    "valkeys": _tcp,
    "rediss": _tcp,
    "unix": _unix,
    "sentinel": _sentinel,
    "cluster": _cluster,
}


def _options(scheme: str, query: str, known: tuple[str, ...]) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            # A password with a bare ? ends up here, so only what looks like a name is repeated.
            shown = f"option {name}" if re.fullmatch(r"[a-z_]{1,32}", name) and "@" not in query else "such option"
            raise Invalid(f"{scheme}:// has no {shown}; known are {', '.join(known)}")
        if name in options:
            raise Invalid(f"{scheme}:// has the option {name} twice; keep one")
        options[name] = value
    return options


def _credentials(scheme: str, body: str) -> tuple[str | None, str | None, str]:
    given, separator, where = body.rpartition("@")
    if not separator:
        return None, None, body
    if "/" in given or "@" in given:
        raise Invalid(
            f"{scheme}:// has an unescaped character before its last @; inside a user name or password write / as %2F, "
            "@ as %40, : as %3A, ? as %3F"
        )
    username, colon, password = given.partition(":")
    return unquote(username) or None, unquote(password) if colon else None, where


def _host(scheme: str, text: str, default_port: int) -> tuple[str, int]:
    if text.startswith("["):
        host, closed, port = text[1:].partition("]")
        if not closed or (port and not port.startswith(":")):
            raise Invalid(f"{scheme}:// has a broken IPv6 address; write it like [::1]:{default_port}")
        port = port[1:]
    else:
        host, _, port = text.partition(":")
    if not host:
        raise Invalid(f"{scheme}:// names no host; write it like {scheme}://localhost:{default_port}")
    if not port:
        return unquote(host), default_port
    # The text of a bad port is not shown: after an unescaped slash it may be the beginning of a password.
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise Invalid(
            f"{scheme}:// has a bad port; a port is a number from 1 to 65535, and / ? @ : inside a user name or "
            "password are written %2F %3F %40 %3A"
        )
    return unquote(host), int(port)


def _database(scheme: str, options: Mapping[str, str], path: str = "") -> int:
    if path and "db" in options and path != options["db"]:
        raise Invalid(f"{scheme}:// names two different databases; keep the path or the option db")
    text = path or options.get("db", "0")
    if not (text.isascii() and text.isdigit()):
        raise Invalid(f"{scheme}:// has a bad database; it is a number such as 0, as in {_EXAMPLE}")
    return int(text)


def _switch(scheme: str, options: Mapping[str, str], name: str, default: str) -> bool:
    value = options.get(name, default)
    if value not in ("yes", "no"):
        raise Invalid(f"{scheme}:// option {name} must be yes or no")
    return value == "yes"


def _optional_tls(scheme: str, options: Mapping[str, str]) -> Tls | None:
    if _switch(scheme, options, "tls", "no"):
        return _tls(scheme, options)
    for name in _TLS_OPTIONS:
        if name in options:
            raise Invalid(f"{scheme}:// option {name} needs tls=yes beside it")
    return None


def _tls(scheme: str, options: Mapping[str, str]) -> Tls:
    def file(name: str) -> Path | None:
        if name not in options:
            return None
        path = Path(options[name]).expanduser()
        if not path.is_file():
            raise Invalid(f"{scheme}:// option {name}: there is no file {path}")
        return path

    tls = Tls(file("ca"), file("cert"), file("key"), _switch(scheme, options, "verify", "yes"))
    if tls.key is not None and tls.certificate is None:
        raise Invalid(f"{scheme}:// option key needs cert beside it")
    return tls
