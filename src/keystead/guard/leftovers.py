"""What a test left on the server it used: keys that nobody wrote down, of another type, or without their expiry."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from keystead.guard.reports import shown
from keystead.inventory import Entry, Inventory, Rule
from keystead.inventory.expiries import spell_expiry
from keystead.inventory.matching import Matcher

MOST_KEYS: Final = 100_000
_BATCH_KEYS: Final = 500
_ITSELF: Final = " itself"
_COPIED: Final = (
    "host", "port", "db", "username", "password", "ssl_keyfile", "ssl_certfile", "ssl_cert_reqs", "ssl_ca_certs",
    "ssl_check_hostname", "credential_provider",
)
_PATIENCE_SECONDS: Final = 30.0  # so that a server that neither answers nor refuses does not hold up a test for ever


class Leftovers:
    """Looks at servers, read-only, with connections of its own; one per server."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory = inventory
        self._matcher = Matcher(inventory)
        self._twins: dict[str, Any] = {}

    def look(self, clients: Iterable[Any]) -> dict[tuple[str, bytes], str]:
        """What is wrong with the keys on the servers of these clients, by server and key. Others are passed by.

        So is a server that does not answer: a test may be about just that.
        """
        from redis.exceptions import AuthenticationError, ConnectionError, RedisClusterException, TimeoutError

        wrong: dict[tuple[str, bytes], str] = {}
        for client in filter(is_client, clients):
            address = _address(client)
            if address is None:
                continue
            try:
                if address not in self._twins:
                    self._twins[address] = _twin(client)
                for raw, trouble in self._troubles(self._twins[address]):
                    wrong[address, raw] = trouble
            except AuthenticationError:  # is a ConnectionError, and somebody should know
                raise
            except (ConnectionError, TimeoutError, RedisClusterException):
                continue
        return wrong

    def close(self) -> None:
        for address, twin in self._twins.items():
            if not address.endswith(_ITSELF):
                twin.close()
        self._twins.clear()

    def _troubles(self, twin: Any) -> Iterator[tuple[bytes, str]]:
        keys = iter(islice(twin.scan_iter(count=1000), MOST_KEYS))
        while batch := list(islice(keys, _BATCH_KEYS)):
            with twin.pipeline(transaction=False) as pipe:
                for raw in batch:
                    pipe.type(raw)
                    pipe.pttl(raw)
                answers = pipe.execute()
            for raw, kind, ttl_ms in zip(batch, answers[::2], answers[1::2], strict=True):
                if ttl_ms != -2 and (trouble := self._trouble(raw, kind.decode(), ttl_ms)):
                    yield raw, trouble

    def _trouble(self, raw: bytes, kind: str, ttl_ms: int) -> str | None:
        found = self._matcher.find(raw)
        if found is None:
            return f"{shown(raw)} ({kind}) is not in {self.inventory.name}"
        entry: Entry = found.entry
        if found.loose:
            return f"{shown(raw)} ({kind}) is not in {self.inventory.name}; it fits {entry.pattern} only loosely"
        if entry.kind != "key":
            return None
        if entry.type is not None and entry.type.sure and entry.server_type not in (None, kind):
            return f"{shown(raw)} is a {kind}; {entry.pattern} is of type {entry.type.value}"
        ttl = entry.ttl.value if entry.ttl is not None and entry.ttl.sure else None
        if ttl is not None and ttl.rule is not Rule.NONE and ttl_ms == -1:
            return f"{shown(raw)} has no expiry; the ttl of {entry.pattern} is {spell_expiry(ttl)}"
        return None


def is_client(value: object) -> bool:
    """Whether something looks like a client of redis-py or valkey-py, and is no pipeline.

    Its class is asked: a mock would note the question as a call, and a proxy might not answer outside of its context.
    """
    kind = type(value)
    return (callable(getattr(kind, "execute_command", None)) and callable(getattr(kind, "scan_iter", None))
            and not callable(getattr(kind, "execute", None)))


def _options(client: Any) -> dict[str, Any] | None:
    """How its connections are made; ``None`` if they go to no server."""
    nodes = getattr(client, "nodes_manager", None)
    if nodes is not None:
        first = next(iter(nodes.startup_nodes.values()), None)
        asked = getattr(nodes, "connection_kwargs", None) or getattr(client, "connection_kwargs", {})
        return None if first is None else {**asked, "host": first.host, "port": first.port, "cluster": True}
    pool = getattr(client, "connection_pool", None)
    made_by = getattr(pool, "connection_class", None)
    if made_by is None or made_by.__module__.partition(".")[0] not in ("redis", "valkey"):
        return None
    return {**pool.connection_kwargs, "ssl": "SSL" in made_by.__name__}  # type: ignore[union-attr]


def _address(client: Any) -> str | None:
    options = _options(client)
    if options is None:
        return f"{type(client).__name__} {id(client)}{_ITSELF}" if _waits(client) else None
    place = options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
    return f"{place}/{options.get('db') or 0}"


def _twin(client: Any) -> Any:
    """A synchronous client of its own for the same server; the client itself if it speaks to none (an imitation)."""
    options = _options(client)
    if options is None:
        return client
    import redis

    given = {name: options[name] for name in _COPIED if options.get(name) is not None}
    given |= {"socket_timeout": _PATIENCE_SECONDS, "socket_connect_timeout": _PATIENCE_SECONDS / 3}
    if options.get("cluster"):
        given.pop("db", None)
        return redis.RedisCluster(**given)
    if options.get("path"):
        return redis.Redis(unix_socket_path=options["path"], **given)
    return redis.Redis(ssl=options["ssl"], **given)


def _waits(client: Any) -> bool:
    """Whether a client answers at once rather than with something to await."""
    return ".asyncio" not in "".join(each.__module__ for each in type(client).__mro__)
