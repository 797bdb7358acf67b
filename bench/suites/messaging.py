"""Messaging: texts beside a sender of the older kind, and a hundred thousand touches on their way out."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server

TEXTS, DRAIN, DISPATCH = "bench.load.texts", "bench.load.touch_drain", "bench.load.touch_dispatch"
OLDER = "one at a time"
MOST_BYTES, MOST_SCRIPT_MS = 2048, 5

SUITE = Suite(
    name="messaging",
    title="messaging: providers that answer after 50 ms, one server on loopback",
    stage=one_server,
    cases=(
        Case(
            "10,000 texts, 64 requests at once",
            (
                Figure("texts, 64 requests at once", "per_second", "texts/s", bars=(Bar(20, OLDER),)),
                Figure("server memory per waiting text", "bytes_per_text", "bytes", lower_is_better=True,
                       bars=(Bar(MOST_BYTES),)),
            ),
            (
                Contestant(OURS, Home.PROJECT, TEXTS, ("keystead", "--count", "10000", "--concurrency", "64")),
                Contestant(OLDER, Home.PROJECT, TEXTS, ("one_at_a_time", "--count", "1000")),
            ),
            most_rounds=3, patience_seconds=240.0,
        ),
        Case(
            "100,000 touches, 2,000 messages a second on each channel",
            (
                # 1 means that the rate was the only limit.
                Figure("drain against the configured rate of 2,000/s", "against_allowed", "x", bars=(Bar(0.95),)),
                Figure("messages, 2,000/s allowed on each of three channels", "messages_per_second", "messages/s"),
                Figure("server memory per waiting touch", "bytes_per_touch", "bytes", lower_is_better=True,
                       bars=(Bar(MOST_BYTES),)),
                Figure("99 of 100 scripts take at most", "script_p99_ms", "ms", lower_is_better=True,
                       bars=(Bar(MOST_SCRIPT_MS),)),
            ),
            (Contestant(OURS, Home.PROJECT, DRAIN, ("--touches", "100000", "--rate", "2000", "--processes", "2")),),
            most_rounds=1, patience_seconds=600.0,
        ),
        Case(
            "20,000 touches, one process, no couriers",
            (
                Figure("touches accepted, 400 a call", "accepted_per_second", "touches/s"),
                Figure("touches made into messages", "dispatched_per_second", "touches/s"),
                Figure("server memory per message, with all that belongs to it", "bytes_per_message", "bytes",
                       lower_is_better=True),
            ),
            (Contestant(OURS, Home.PROJECT, DISPATCH, ("--touches", "20000")),),
            most_rounds=3, patience_seconds=240.0,
        ),
        Case(
            "20,000 touches, 300 messages a second on each channel",
            (
                Figure("drain against the configured rate of 300/s", "against_allowed", "x", bars=(Bar(0.95),)),
            ),
            (Contestant(OURS, Home.PROJECT, DRAIN, ("--touches", "20000", "--rate", "300", "--processes", "2")),),
            most_rounds=1, patience_seconds=300.0,
        ),
    ),
    notes=(
        "the older sender: one message for each request behind one lock, its purgatory one item long, every step an "
        "exchange of its own; 1,000 texts, since it hardly varies",
        "1.3 destinations for each touch, a third of the touches on each channel; two worker processes, each a whole "
        "installation with its jobs, log and traces; drained means sent and settled, news of deliveries left aside",
    ),
)
