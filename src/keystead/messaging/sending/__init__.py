"""What the channels share: lanes, couriers, retries, intents, traces."""

from keystead.messaging.sending.answers import pause_of, read_body
from keystead.messaging.sending.callbacks import callbacks_relay, queue_job
from keystead.messaging.sending.calls import Call, calls
from keystead.messaging.sending.carrier import Carried, Carrier, CredentialsMissing, Health, Verdict
from keystead.messaging.sending.channel import Channel, lane_of
from keystead.messaging.sending.courier import Courier, CourierSettings
from keystead.messaging.sending.lanes import agree_on_lanes
from keystead.messaging.sending.listed import Listed
from keystead.messaging.sending.models import Fact, Lane, Outgoing, TraceEntry
from keystead.messaging.sending.overview import Overview, OverviewReader, WatchedRun, WatchedSet, latest_run
from keystead.messaging.sending.retries import Retries, backoff, decide, retry_or_abandon
from keystead.messaging.sending.standing import Standing, standing
from keystead.messaging.sending.trace import trace, trace_all, traced

__all__ = [
    "Call",
    "Carried",
    "Carrier",
    "Channel",
    "Courier",
    "CourierSettings",
    "CredentialsMissing",
    "Fact",
    "Health",
    "Lane",
    "Listed",
    "Outgoing",
    "Overview",
    "OverviewReader",
    "Retries",
    "Standing",
    "TraceEntry",
    "Verdict",
    "WatchedRun",
    "WatchedSet",
    "agree_on_lanes",
    "backoff",
    "callbacks_relay",
    "calls",
    "decide",
    "lane_of",
    "latest_run",
    "pause_of",
    "queue_job",
    "read_body",
    "retry_or_abandon",
    "standing",
    "trace",
    "trace_all",
    "traced",
]
