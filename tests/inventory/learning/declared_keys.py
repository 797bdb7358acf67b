"""Live keys as Keystead's own rooms write them: several for every declared pattern, with values as they really look."""

import base64
import random
from collections.abc import Iterator
from uuid import UUID

from keystead.app import App
from keystead.keys import Declaration, Registry
from keystead.settings import Settings

HOSTS = ("web-1", "web-2", "worker-a", "worker-b", "batch")
QUEUES = ("mail", "reports", "thumbnails", "billing", "exports")
TENANTS = ("acme", "globex", "initech", "umbrella", "hooli", "vandelay", "wonka", "stark")
JOBS = ("send_mail", "render_report", "resize_image", "charge_card", "sync_contacts", "purge_files", "rotate_stats",
        "assign_reminders", "push_receipts", "refresh_tokens", "build_index", "export_csv")
SUBCATEGORIES = ("Mindfulness", "Anxiety", "Sleep", "Gratitude", "Focus", "Breathing", "Stress", "Meditation", "Poetry")
SLUGS = ("daily_reminder", "oscar_winner", "streak_lost", "welcome_back")
FIELDS = ("sender", "region", "priority", "template")


def registry() -> Registry:
    return Registry(App(Settings()).keyspaces())


def live_keys(registry: Registry, rng: random.Random, each: int) -> Iterator[tuple[Declaration, bytes]]:
    """``each`` keys for every declared pattern; one for a pattern without variables."""
    for declaration in registry:
        if declaration.kind != "key":
            continue
        for _ in range(each if declaration.template.names else 1):
            arguments = {variable.name: _value(variable.name, variable.kind.name, variable.kind, declaration, rng)
                         for variable in declaration.template.variables}
            yield declaration, declaration.reference(arguments).name(registry.layout)


def _token(rng: random.Random, size: int = 16) -> str:
    return base64.urlsafe_b64encode(rng.randbytes(size)).decode().rstrip("=")


def _value(name: str, kind: str, sampler: object, declaration: Declaration, rng: random.Random) -> str:
    room = declaration.pattern.partition(":")[0].rstrip("s")
    by_name = {
        "worker": lambda: f"{rng.choice(HOSTS)}-{rng.randrange(100, 60_000)}-{rng.randbytes(3).hex()}",
        "queue": lambda: rng.choice(QUEUES),
        "uid": lambda: f"{room}_{_token(rng)}",
        "batch": lambda: f"batch_{_token(rng)}",
        "id": lambda: _token(rng),
        "key": lambda: f"{rng.choice(JOBS)}-{rng.randrange(10**6)}",
        "tenant": lambda: rng.choice(TENANTS),
        "item_uuid": lambda: str(UUID(int=rng.getrandbits(128), version=4))[:-2] + "00",  # a queue's number
        "item_id": lambda: f"{UUID(int=rng.getrandbits(128), version=4)}.{rng.randrange(9)}",
        "field": lambda: rng.choice(FIELDS),
        "task_id": lambda: str(UUID(int=rng.getrandbits(128), version=4)),
        "kind": lambda: rng.choice(("family", "summary")),
        "recipient": lambda: rng.choice((f"+1555{rng.randrange(10**7):07}", f"user{rng.randrange(999)}@example.com")),
        "sub": lambda: f"user_{_token(rng, 12)}",
        "user_sub": lambda: f"user_{_token(rng, 12)}",
        "visitor_uid": lambda: f"v_{_token(rng)}",
        "utm": lambda: f"utm_campaign={rng.choice(JOBS)}&utm_source={rng.choice(HOSTS)}",
        "step": lambda: rng.choice(("send", "pending", "check0", "check1")),
        "retry": lambda: str(rng.randrange(6)),
        "sid": lambda: f"SM{rng.randbytes(16).hex()}",
        "message_id": lambda: f"{rng.randbytes(8).hex()}-{UUID(int=rng.getrandbits(128), version=4)}-000000",
        "parked": lambda: f"email_{_token(rng)}-{rng.choice(('Delivered', 'Bounced', 'Complained'))}",
        "sns_message_id": lambda: str(UUID(int=rng.getrandbits(128), version=4)),
        "code": lambda: _token(rng, 4),
        "subcategory": lambda: rng.choice(SUBCATEGORIES),
        "slug": lambda: rng.choice(SLUGS),
        "unix_month": lambda: str(rng.randrange(670, 683)),
        "name": lambda: rng.choice(JOBS),
    }
    if name.endswith("unix_date"):
        return str(rng.randrange(20_300, 20_410))
    if name == "uid" and kind == "click":
        return f"utlc_{_token(rng)}_{rng.choice('wn')}"
    if name == "channel" and kind == "word":
        return rng.choice(("sms", "email", "push"))
    if name in by_name:
        return by_name[name]()
    if kind == "integer":
        return str(rng.randrange(9))
    return str(sampler.sample(rng))  # type: ignore[attr-defined]
