"""All settings: one frozen tree, read once at start, passed on as values.

Precedence: flags over environment over file over defaults. The environment name of ``http.port`` is
``KEYSTEAD_HTTP_PORT``; the file is TOML with one table per section. Every setting has its unit in its name.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from keystead.setting import Origin, Setting, checked, from_demo, from_environment, from_file, from_flags


def _setting(default: Any, says: str, *, choices: tuple[str, ...] = (), secret: bool = False) -> Any:
    return field(default=default, metadata={"says": says, "choices": choices, "secret": secret})


@dataclass(frozen=True, slots=True)
class ValkeySettings:
    """How to reach the server."""

    url: str = _setting(
        "embedded://.keystead",
        "where the server is: embedded://DIR, valkey://, redis://, rediss://, unix://, sentinel:// or cluster://",
        secret=True,
    )
    command_timeout_seconds: float = _setting(
        10.0, "a connection whose oldest command has waited this long is taken for dead and replaced"
    )
    connect_timeout_seconds: float = _setting(5.0, "longest wait for one connection attempt, log-in included")
    outage_seconds: float = _setting(
        10.0, "how long a command waits for a server that is away before it fails with Unavailable"
    )
    in_flight_bytes: int = _setting(
        64 * 1024 * 1024, "bytes of unanswered commands per connection before callers have to wait"
    )
    wires: int = _setting(1, "shared connections per server")
    replicas: int = _setting(
        0, "a write is answered when so many replicas have it, so that no failover can take it back; 0 waits for none"
    )
    replicas_timeout_seconds: float = _setting(
        2.0, "how long a write waits for its replicas before it fails with ReplyLost; less than command_timeout_seconds"
    )


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """The Valkey server that Keystead starts itself."""

    fsync: str = _setting(
        "everysec", "when the append-only file reaches the disk; always loses nothing, everysec about a second",
        choices=("always", "everysec", "no"),
    )
    memory_bytes: int = _setting(0, "memory limit of the server, 0 for none; at the limit writes are refused")
    port: int = _setting(0, "also listen on this loopback port, with a password file; 0 for the private socket only")


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """What is kept outside Valkey."""

    url: str = _setting(
        "", "the database: sqlite:///FILE or postgresql://...; empty for keystead.sqlite in the data directory",
        secret=True,
    )
    files_url: str = _setting(
        "", "object files: file:///DIRECTORY or s3://BUCKET; empty for files in the data directory", secret=True
    )


@dataclass(frozen=True, slots=True)
class InstallationSettings:
    """What all processes of one installation share."""

    directory: str = _setting(
        "", "where its own files are: the secret, and SQLite and object files unless store says otherwise; empty for "
        "the directory of the embedded server, or .keystead in the working directory"
    )
    secret: str = _setting(
        "", "signs log-ins, tokens and links, 32 characters or more and the same in all processes; empty for the one "
        "that is kept in the directory, which processes on several machines do not share", secret=True,
    )


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    """Your own program, beside which Keystead runs."""

    modules: str = _setting(
        "", "comma-separated modules of your program, such as shop.stats: their keys are shown, what their families "
        "count is rotated and charted, and their jobs are run"
    )
    queues: str = _setting("hot", "comma-separated queues whose jobs are run, besides those of its recurring lists")
    concurrent_jobs: int = _setting(100, "jobs of the program that run at once in one process")


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The HTTP server."""

    host: str = _setting("127.0.0.1", "address to listen on")
    port: int = _setting(8400, "port to listen on; 0 picks a free one")
    host_names: str = _setting("", "comma-separated names the server is reached by, besides loopback and addresses")
    trusted_proxies: str = _setting("", "comma-separated networks whose forwarding header is believed")
    uncounted_networks: str = _setting(
        "", "comma-separated networks that are never limited or blocked; loopback never is"
    )
    login_link_seconds: int = _setting(900, "how long the printed one-time login link works")
    session_seconds: int = _setting(12 * 3600, "how long a dashboard log-in lasts")


@dataclass(frozen=True, slots=True)
class MessagingSettings:
    """What all channels share."""

    public_url: str = _setting(
        "", "how the world reaches this server, such as https://app.example.com: links and webhooks are made of it; "
        "empty for the address it listens on"
    )
    app_url: str = _setting(
        "", "address of your app, such as https://app.example.com: links in messages lead there; empty for this server"
    )
    site_name: str = _setting("Keystead", "name that pages behind links in messages are shown under")
    workers: int = _setting(1, "couriers of each channel in this process")
    lanes: int = _setting(
        1, "slots of a cluster that people are spread over, the same for all processes; one server has only 1"
    )
    on_ambiguous: str = _setting(
        "verify", "a message that may have been sent when its courier died: ask the provider where that can be done, "
        "send it again, or drop it", choices=("verify", "resend", "drop"),
    )
    retries: int = _setting(3, "how often a message that failed is sent again")
    retry_age_seconds: int = _setting(12 * 3600, "a message older than this is given up instead of sent again")
    retry_base_seconds: float = _setting(30.0, "the pause before the first retry; it doubles, with jitter")
    retry_cap_seconds: float = _setting(3600.0, "the longest pause before a retry")
    trace_seconds: int = _setting(172_800, "how long the life of a message can be traced; 0 for no traces")
    person_day_messages: int = _setting(
        20, "messages to one person in a day on one channel, codes and security aside; 0 for any number"
    )
    quiet_from_hour: int = _setting(22, "local hour from which people are left alone, codes and security aside")
    quiet_until_hour: int = _setting(6, "local hour until which people are left alone; the same hour twice for never")
    same_content_seconds: int = _setting(600, "the same words are not sent to one person again within this time")
    payload_keys: str = _setting(
        "", "words, addresses, tokens and parameters of messages lie on the server encrypted with the first of these "
        "comma-separated secrets of 32 characters or more, and are read with all of them; empty for no encryption",
        secret=True,
    )


@dataclass(frozen=True, slots=True)
class SmsSettings:
    """Texts."""

    provider: str = _setting("sandbox", "who delivers", choices=("sandbox", "twilio"))
    url: str = _setting("", "address of the provider's API; empty for the real one, or for our sandbox")
    account_sid: str = _setting("AC00000000000000000000000000000000", "Twilio account")
    auth_token: str = _setting("sandbox", "Twilio auth token: log-in and signatures", secret=True)
    service_sid: str = _setting("MG00000000000000000000000000000000", "Twilio messaging service that sends")
    concurrent_requests: int = _setting(10, "requests to the provider at once")
    rate_per_second: float = _setting(10.0, "texts per second over all processes; 0 for any number")
    wait_seconds: int = _setting(900, "without news of a text for so long, the provider is asked")
    unreachable_codes: str = _setting(
        "21408,21606,21610,21614,30004,30005,30006,30007,30010,30011,63032,63033",
        "comma-separated error codes that mean that a number cannot be reached and is not to be tried again",
    )


@dataclass(frozen=True, slots=True)
class EmailSettings:
    """Email."""

    provider: str = _setting("sandbox", "who delivers", choices=("sandbox", "ses", "smtp"))
    url: str = _setting("", "address of the provider's API, or smtp://HOST:PORT; empty for the real one or our sandbox")
    region: str = _setting("us-west-2", "region of Amazon SES")
    access_key: str = _setting("", "access key of SES or user name of SMTP; empty: found as AWS tools do", secret=True)
    secret_key: str = _setting("", "secret key of SES or password of SMTP", secret=True)
    sender: str = _setting("hello@example.com", "address that email comes from")
    sender_name: str = _setting("Keystead", "name that email comes from")
    reply_to: str = _setting("support@example.com", "address that answers go to")
    topics: str = _setting("", "comma-separated ARNs of the SNS topics whose notifications are believed")
    configuration_set: str = _setting("", "SES configuration set that publishes events to these topics; empty for none")
    templates: str = _setting("", "directory of your Jinja2 templates; they come before the built-in ones")
    concurrent_requests: int = _setting(14, "requests to the provider at once")
    rate_per_second: float = _setting(14.0, "email per second over all processes; 0 for any number")
    verify_seconds: int = _setting(
        600, "an email whose provider did not answer is sent again when no news of it came within this time"
    )
    receipt_seconds: int = _setting(86_400, "without news of an email for so long, it counts as failed")


@dataclass(frozen=True, slots=True)
class PushSettings:
    """Push messages."""

    provider: str = _setting("sandbox", "who delivers", choices=("sandbox", "expo"))
    url: str = _setting("", "address of the provider's API; empty for the real one, or for our sandbox")
    access_token: str = _setting("", "Expo access token", secret=True)
    concurrent_requests: int = _setting(6, "requests to the provider at once, a hundred messages each")
    rate_per_second: float = _setting(600.0, "push messages per second over all processes; 0 for any number")
    cold_seconds: int = _setting(900, "receipts are asked for this long after a message was taken")


@dataclass(frozen=True, slots=True)
class LinksSettings:
    """Trackable links in messages."""

    persist_seconds: float = _setting(1800.0, "a link is stored this long after its message was delivered")
    persist_again_seconds: float = _setting(600.0, "the pause before a link is tried again that could not be stored")
    delayed_seconds: float = _setting(1800.0, "a click that came while its link was being stored is stored after this")
    delayed_again_seconds: float = _setting(600.0, "the pause before such a click is tried again")
    leak_seconds: float = _setting(133_200.0, "a link that nobody stored or gave up for so long has leaked")
    flood_clicks: int = _setting(500, "so many clicks of nobody known in five seconds mean that codes are guessed")
    flood_fake_share: float = _setting(0.1, "share of guesses in a flood that get an answer which leads home")
    short_bytes: int = _setting(3, "random bytes that short codes begin with")
    most_short_bytes: int = _setting(16, "random bytes that short codes grow to at most")
    short_streak: int = _setting(5, "short codes grow after more taken ones in a row than this")


@dataclass(frozen=True, slots=True)
class RemindersSettings:
    """Daily reminders."""

    queued_items: int = _setting(25_000, "no more times are chosen while so many reminders wait to be sent")
    horizon_seconds: int = _setting(2100, "times are chosen this far ahead")
    youngest_seconds: int = _setting(12 * 3600, "people get reminders only this long after they joined")


@dataclass(frozen=True, slots=True)
class ClockSettings:
    """What time it is."""

    speed: float = _setting(
        1.0, "how many seconds pass in a real one: 1 is the real time, 288 makes a day last five minutes; only for "
        "demonstrations, with the embedded server"
    )


@dataclass(frozen=True, slots=True)
class AlertsSettings:
    """Alerts that reach somebody."""

    webhook_url: str = _setting(
        "", "events of alerts are posted here as JSON; empty for no webhook", secret=True
    )
    webhook_secret: str = _setting(
        "", "signs what is posted (header Keystead-Signature, HMAC-SHA256); empty for no signature", secret=True
    )
    mail_to: str = _setting(
        "", "address that mail about alerts goes to; empty for none, or with the sandbox for mail that only it shows"
    )
    heartbeat_url: str = _setting(
        "", "address that is called every minute while all is well, for a service that tells when it is not; empty for "
        "none", secret=True
    )
    watch_seconds: float = _setting(15.0, "all watchers look this often, in one of the processes")
    repeat_seconds: float = _setting(4 * 3600.0, "an alert that stays open is told again after this pause")
    queue_seconds: float = _setting(300.0, "a queue is stuck when its oldest item has waited so long")
    rotation_seconds: float = _setting(2 * 3600.0, "rotation is late when a day is here so long after it was due")
    dead_letter_seconds: float = _setting(3600.0, "dead letters are told of for so long after they became more")
    audit_seconds: float = _setting(600.0, "undeclared keys are told by a count no older than this; 0 for not at all")
    memory_share: float = _setting(0.85, "share of the server's limit, or of its machine, from which memory is high")


@dataclass(frozen=True, slots=True)
class BackupSettings:
    """Backups that are taken every day by themselves."""

    directory: str = _setting("", "where a backup is put every day; empty for none by themselves")
    start_hour: int = _setting(3, "hour of the day, in UTC, when it is taken")
    keep_files: int = _setting(7, "so many of the newest backups in that directory are kept")
    passphrase_file: str = _setting("", "file with the passphrase that backups are sealed with; empty for none")
    hold_seconds: float = _setting(
        3.0, "longest time that writes to Valkey may be held for the moment of a backup; it takes some milliseconds"
    )


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Traces for a collector of OpenTelemetry."""

    otlp_url: str = _setting("", "collector that spans are sent to, by OTLP over HTTP; empty for none", secret=True)
    service_name: str = _setting("keystead", "name under which the collector shows this installation")
    trace_share: float = _setting(1.0, "share of the traces that begin here which are kept, from 0 to 1")


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Log lines."""

    level: str = _setting("info", "least serious level that is written", choices=("debug", "info", "warning", "error"))
    format: str = _setting("auto", "text for people, json for machines; auto asks whether a person is watching",
                           choices=("auto", "text", "json"))


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set, and where each value that was given came from."""

    valkey: ValkeySettings = field(default_factory=ValkeySettings)
    embedded: EmbeddedSettings = field(default_factory=EmbeddedSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    installation: InstallationSettings = field(default_factory=InstallationSettings)
    program: ProgramSettings = field(default_factory=ProgramSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    messaging: MessagingSettings = field(default_factory=MessagingSettings)
    sms: SmsSettings = field(default_factory=SmsSettings)
    email: EmailSettings = field(default_factory=EmailSettings)
    push: PushSettings = field(default_factory=PushSettings)
    links: LinksSettings = field(default_factory=LinksSettings)
    reminders: RemindersSettings = field(default_factory=RemindersSettings)
    clock: ClockSettings = field(default_factory=ClockSettings)
    alerts: AlertsSettings = field(default_factory=AlertsSettings)
    backup: BackupSettings = field(default_factory=BackupSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    log: LogSettings = field(default_factory=LogSettings)
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False, repr=False)

    def origin(self, name: str) -> Origin:
        """Where the value of a setting came from, by its name such as ``http.port``."""
        return self.origins.get(name, Origin())

    def value(self, name: str) -> object:
        section, _, entry = name.partition(".")
        value: object = getattr(getattr(self, section), entry)
        return value


def all_settings() -> Iterator[Setting]:
    """Every setting, in the order of the tree."""
    for section, section_type in get_type_hints(Settings).items():
        if section == "origins":
            continue
        hints = get_type_hints(section_type)
        for entry in fields(section_type):
            yield Setting(f"{section}.{entry.name}", hints[entry.name], entry.default, **entry.metadata)


def load_settings(
    flags: Mapping[str, object] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
    demo: Mapping[str, object] | None = None,
) -> Settings:
    """Read the tree once.

    ``flags`` maps names such as ``http.port`` to values; ``None`` values count as not given. Without ``file``, a
    ``keystead.toml`` in the working directory is read if it is there. Refuses with ``Invalid`` what it does not know.
    ``demo``: what a demonstration has in place of the defaults; whatever somebody set wins over it.
    """
    known = {setting.name: setting for setting in all_settings()}
    path = file if file is not None else Path("keystead.toml")
    given = from_demo(demo or {})
    given |= from_file(path, known) if file is not None or path.is_file() else {}
    given |= from_environment(os.environ if environment is None else environment, known)
    given |= from_flags(flags or {}, known)
    sections: dict[str, dict[str, object]] = {}
    for name, one in given.items():
        section, _, entry = name.partition(".")
        sections.setdefault(section, {})[entry] = checked(known[name], one)
    settings = Settings()
    changed: dict[str, Any] = {name: replace(getattr(settings, name), **values) for name, values in sections.items()}
    return replace(settings, **changed, origins={name: one.origin for name, one in given.items()})
