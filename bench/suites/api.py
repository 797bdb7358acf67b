"""HTTP: a whole ``keystead up`` asked from outside, beside a bare FastAPI application; and what standing by costs."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import bare

HELLO = "FastAPI hello"


def _rates(name: str, kind: str, bars: tuple[Bar, ...], who: str = "keystead") -> Case:
    return Case(
        name,
        (Figure(name, "per_second", "requests/s", bars=bars),
         Figure(f"{name}: wait, 99th percentile", "p99_ms", "ms", lower_is_better=True),
         Figure(f"{name}: cores of what answers, and its children", "cores", "cores", lower_is_better=True)),
        (Contestant(OURS, Home.PROJECT, "bench.load.api", (who, kind)),
         Contestant(HELLO, Home.PROJECT, "bench.load.api", ("hello", kind))),
    )


SUITE = Suite(
    name="api",
    title="api: keystead up through HTTP, from outside",
    stage=bare,
    cases=(
        _rates("GET of a queue's state, from Valkey", "read", (Bar(3000), Bar(0.5, HELLO))),
        _rates("GET of a job that has ended, from Valkey", "read_job", ()),
        _rates("GET of a person, from SQL", "read_sql", ()),
        _rates("POST of a touch, a worker beside", "send", (Bar(1500), Bar(0.25, HELLO)), "apart"),
        _rates("POST of a touch, all in one process", "send", ()),
        Case(
            "first screen",
            (Figure("command to first screen", "screen_seconds", "s", lower_is_better=True, bars=(Bar(10),)),
             Figure("dashboard in Chromium, first paint", "paint_seconds", "s", lower_is_better=True, bars=(Bar(2),))),
            (Contestant(OURS, Home.PROJECT, "bench.load.first_light", ("--browser",)),),
            most_rounds=3,
        ),
        Case(
            "idle",
            (Figure("idle: resident memory, all processes", "resident_mb", "MB", lower_is_better=True,
                    bars=(Bar(400),)),
             Figure("idle: share of one core, all processes", "cpu_percent", "%", lower_is_better=True,
                    bars=(Bar(3),))),
            (Contestant(OURS, Home.PROJECT, "bench.load.idle"),),
            most_rounds=1, patience_seconds=150,
        ),
        Case(
            "500 requests a second for 60 s",
            (Figure("500 mixed requests/s for 60 s: wait, 99th percentile", "p99_ms", "ms", lower_is_better=True,
                    bars=(Bar(250),)),
             Figure("500 mixed requests/s for 60 s: failed", "errors", "requests", lower_is_better=True,
                    bars=(Bar(0),)),
             Figure("500 mixed requests/s for 60 s: answered", "per_second", "requests/s")),
            (Contestant(OURS, Home.PROJECT, "bench.load.steady"),),
            most_rounds=1, patience_seconds=200,
        ),
    ),
    notes=("32 connections, one request at a time on each; client, server, Valkey and delivery share the machine",
           "every request of ours shows an admin key; a touch goes to one of 200 people with a phone number and is "
           "delivered to the sandbox meanwhile, at the default 10 texts a second",
           "a worker beside: `keystead api` and `keystead worker` on one Valkey, a process each; all in "
           "one process: `keystead up`, where making messages of touches takes its share of the same core",
           "the bare application has one route, no layer and no log, on the same uvicorn, httptools and uvloop"),
)
