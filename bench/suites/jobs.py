"""Job queues: queueing, running, waiting, memory, recovery; and whether ours stays as fast when it grows."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server

# Name -> module of bench.load.queues, environment, jobs of one measurement. At under a thousand jobs a second the full
# number would cost minutes and tell nothing more.
PEERS = {
    "huey": ("huey", Home.PEERS, 20_000),
    "dramatiq": ("dramatiq", Home.PEERS, 20_000),
    "taskiq list": ("taskiq:list", Home.PEERS, 20_000),
    "taskiq stream": ("taskiq:stream", Home.PEERS, 20_000),
    "arq": ("arq", Home.PEERS_OLD_REDIS, 20_000),
    "bullmq": ("bullmq", Home.PEERS, 20_000),
    "saq": ("saq", Home.PEERS_OLD_REDIS, 20_000),
    "docket": ("docket", Home.PEERS, 5_000),
    "streaq": ("streaq", Home.PEERS, 5_000),
    "celery": ("celery", Home.PEERS, 5_000),
    "rq": ("rq", Home.PEERS, 5_000),
}
BOUND = "bare loop"
# Those that run the job of a killed worker again, on an idle queue, with their shortest sensible settings.
SURVIVE = ("dramatiq", "arq", "bullmq", "saq", "docket", "streaq", "celery")


def best(value: float) -> Bar:
    return Bar(value, "best peer", tuple(PEERS))


def ours(module: str, *arguments: str) -> Contestant:
    return Contestant(OURS, Home.PROJECT, f"bench.load.{module}", ("keystead", *arguments))


def peers(module: str, *arguments: str) -> tuple[Contestant, ...]:
    return tuple(
        Contestant(name, home, f"bench.load.{module}", (library, *arguments))
        for name, (library, home, _) in PEERS.items()
    )


SUITE = Suite(
    name="jobs",
    title="jobs: one process that queues, one worker process, one server on loopback",
    stage=one_server,
    cases=(
        Case(
            "enqueue and drain",
            (
                Figure("drain", "drain_per_second", "jobs/s", bars=(
                    Bar(15, "best that survives kill -9", SURVIVE), best(12), Bar(0.35, BOUND),
                )),
                Figure("bulk enqueue", "enqueue_per_second", "jobs/s", bars=(best(12),)),
                Figure("server memory per queued job", "bytes_per_job", "bytes", lower_is_better=True, bars=(best(1),)),
            ),
            (
                ours("jobs_drain", "--passes", "3"),
                Contestant(BOUND, Home.PROJECT, "bench.load.jobs_bound"),
                *(Contestant(name, home, "bench.load.jobs_drain", (library, "--count", str(count)))
                  for name, (library, home, count) in PEERS.items()),
            ),
            patience_seconds=180.0,
        ),
        Case(
            "latency of a single job on an idle worker",
            tuple(
                Figure(f"latency of a single job on an idle worker, p{share}", f"p{share}_ms", "ms",
                       lower_is_better=True, bars=(best(1),))
                for share in (50, 99)
            ),
            (ours("jobs_latency"), *peers("jobs_latency")),
        ),
        Case(
            "job of a killed worker runs again, defaults",
            (Figure("job of a killed worker runs again, idle queue, defaults", "seconds", "s", lower_is_better=True,
                    bars=(Bar(5),)),),
            (ours("jobs_recovery"),),
        ),
        Case(
            "job of a killed worker runs again, another one idle beside it",
            (Figure("job of a killed worker runs again, another one idle beside it", "seconds", "s",
                    lower_is_better=True, bars=(Bar(5),)),),
            (ours("jobs_recovery", "--standby"),),
        ),
        Case(
            "four worker processes",
            (
                Figure("four worker processes against one", "share", "x", bars=(Bar(0.9),)),
                Figure("drain, four worker processes", "four_per_second", "jobs/s"),
            ),
            (ours("jobs_scale", "processes"),),
            patience_seconds=300.0,
        ),
        Case(
            "1,000,000 queued jobs",
            (
                Figure("bulk enqueue of 1,000,000 against 20,000", "enqueue_share", "x", bars=(Bar(0.8),)),
                Figure("drain of 1,000,000 against 20,000", "drain_share", "x", bars=(Bar(0.8),)),
                Figure("bulk enqueue of 1,000,000", "enqueue_many", "jobs/s"),
                Figure("drain of 1,000,000", "drain_many", "jobs/s"),
            ),
            (ours("jobs_scale", "depth"),),
            patience_seconds=300.0,
        ),
        Case(
            "kill -9 with the shortest settings",  # about four minutes, nearly all of it waiting
            (Figure("job of a killed worker runs again, shortest settings of each", "seconds", "s",
                    lower_is_better=True),),
            (ours("jobs_recovery"), *peers("jobs_recovery", "--tuned")),
            most_rounds=1,
        ),
    ),
    notes=(
        "20,000 no-op jobs with one float argument, 5,000 for docket, streaq, celery and rq; 500 a bulk call, or 20 "
        "callers at a time, or a plain loop, whatever a library offers; ours three times in each round, the loop five",
        "peers at settings found by a sweep, see bench/load/queues; ours at its defaults, every job kept until it is "
        "acknowledged; huey and the taskiq list lose the jobs of a killed worker",
        "the bare loop takes 100 jobs by one script into a busy list, starts a task for each, acknowledges in batches",
    ),
)
