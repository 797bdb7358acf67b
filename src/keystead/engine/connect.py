"""From a URL to a client."""

import ssl
from dataclasses import replace

from keystead.engine.address import Address, Kind, Tls, parse
from keystead.engine.client import Valkey
from keystead.engine.connect_pool import redis_pool
from keystead.engine.endpoint import Endpoint
from keystead.engine.sentinel import following_pool, primary_finder
from keystead.errors import Invalid
from keystead.keys.layout import Layout
from keystead.settings import ValkeySettings


async def connect(
    url: str | Address,
    *,
    settings: ValkeySettings | None = None,
    layout: Layout | None = None,
    lanes: int = 1,
    replicas: int | None = None,
    only_looks: bool = False,
) -> Valkey:
    """A client for the server at ``url``, connected and logged in.

    ``layout`` defaults to plain names on one server and tagged names on a cluster, where the keys of laned keyspaces
    are there in so many ``lanes``; all who use a cluster must say the same. With ``replicas`` (by default what the
    settings say) a write is answered when so many of them have it. Raises at once what is wrong: ``Invalid`` for the
    URL, ``Unavailable`` for a server that is away, too old, or does not let us in. Who ``only_looks`` is not refused by
    age, down to Redis 6: the commands that read keys are the same there.
    """
    address = parse(url) if isinstance(url, str) else url
    settings = _checked(settings or ValkeySettings(), replicas, address)
    if address.kind is Kind.EMBEDDED:
        from keystead.engine.embedded import attach

        address = attach(address)
    if address.kind is Kind.CLUSTER:
        from keystead.engine.cluster import ClusterValkey

        cluster = ClusterValkey(
            [replace(_endpoint(address, host, port), only_looks=only_looks) for host, port in address.hosts],
            settings=settings,
            layout=layout or Layout.tagged(lanes),
        )
        return await _opened(cluster, address)
    if address.kind is Kind.SENTINEL:
        valkey = _following_sentinels(address, settings, layout or Layout.PLAIN, only_looks)
    else:
        host, port = address.hosts[0] if address.hosts else ("", 0)
        endpoint = replace(_endpoint(address, host, port), only_looks=only_looks)

        async def find() -> Endpoint:
            return endpoint

        valkey = Valkey(find, pool=redis_pool(endpoint), settings=settings, layout=layout or Layout.PLAIN)
    return await _opened(valkey, address)


def _checked(settings: ValkeySettings, replicas: int | None, address: Address) -> ValkeySettings:
    if replicas is not None:
        settings = replace(settings, replicas=replicas)
    if settings.replicas < 0:
        raise Invalid(f"replicas counts servers; {settings.replicas} is less than none")
    if settings.replicas and address.kind is Kind.EMBEDDED:
        raise Invalid("the embedded server has no replicas that a write could wait for; leave valkey.replicas at 0")
    if settings.replicas and not 0 < settings.replicas_timeout_seconds < settings.command_timeout_seconds:
        raise Invalid(
            f"valkey.replicas_timeout_seconds is {settings.replicas_timeout_seconds:g}; it must be more than 0 and"
            f" less than valkey.command_timeout_seconds, which is {settings.command_timeout_seconds:g}"
        )
    return settings


async def _opened(valkey: Valkey, address: Address) -> Valkey:
    valkey.address = address
    try:
        return await valkey.open()
    except BaseException:
        await valkey.aclose()
        raise


def _endpoint(address: Address, host: str, port: int) -> Endpoint:
    return Endpoint(
        host=host,
        port=port,
        path=str(address.path) if address.kind is Kind.UNIX else None,
        username=address.username,
        password=address.password,
        db=address.db,
        client_name=address.client_name or "keystead",
        tls=_tls_context(address.tls) if address.tls else None,
        tls_host=host or None,
        must_be_primary=address.kind is Kind.SENTINEL,
    )


def _tls_context(tls: Tls) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(tls.authority) if tls.authority else None)
    if tls.certificate is not None:
        context.load_cert_chain(str(tls.certificate), str(tls.key) if tls.key else None)
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _following_sentinels(address: Address, settings: ValkeySettings, layout: Layout, only_looks: bool) -> Valkey:
    primary = replace(_endpoint(address, "", 0), only_looks=only_looks)
    sentinels = [
        Endpoint(
            host=host,
            port=port,
            username=address.sentinel_username,
            password=address.sentinel_password,
            client_name=primary.client_name,
            tls=primary.tls,
            tls_host=host,
            only_looks=only_looks,
        )
        for host, port in address.hosts
    ]
    find = primary_finder(sentinels, address.primary, primary, settings)
    return Valkey(find, pool=following_pool(find, primary), settings=settings, layout=layout, follows_primary=True)
