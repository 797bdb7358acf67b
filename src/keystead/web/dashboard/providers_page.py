"""Is a provider down? A card for each channel: its state, its answers, what went wrong, and what waits for it."""

from collections.abc import Sequence
from html import escape
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.clock import real
from keystead.web.dashboard.jobs_shown import cut, moment, plural
from keystead.web.dashboard.messages_look import NAMES
from keystead.web.dashboard.operator_frame import bar, operator_frame, operator_head, problem_banner, verdict
from keystead.web.dashboard.providers_look import LATELY_SECONDS, NAMED, ProviderLook, look_at
from keystead.web.dashboard.shown import chip, fact_rows, shown_ago, shown_count, shown_duration, shown_share
from keystead.web.dashboard.stats_frame import keep_looking
from keystead.web.dashboard.stats_spark import sparkline
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import StatsWatch

SHOWN_TROUBLES: Final = 5
SHOWN_CALLS: Final = 100
STATES: Final = {
    "down": ("Down: the breaker is open", "bad"), "probing": ("One call tries whether it is back", "bad"),
    "paused": ("Paused by somebody", "warn"), "resting": ("Asked for a rest", "warn"),
    "refusing": ("Every call failed lately", "bad"), "failing": ("Answers, with failures", "warn"),
    "answering": ("Answers", "good"), "idle": ("Not asked lately", ""),
}


async def show_providers(running: Running, sampler: Sampler, watch: StatsWatch) -> None:
    """Build the page for one viewer; it then moves by itself."""

    async def read(_: tuple[ProviderLook, ...] | None) -> tuple[ProviderLook, ...]:
        return await look_at(running)

    shared = watch.share("providers", read)
    await shared.first()
    with operator_frame(running, sampler, "/providers"):
        state = operator_head("Providers", "Who delivers push, texts and email, and whether they answer.")
        problem = problem_banner(sampler, "Providers", shared)
        says = ui.html("", sanitize=False).props("role=status data-verdict")
        shown: dict[str, ui.html] = {}
        with ui.element("div").classes("op-three"):
            for name in ("push", "sms", "email"):
                with ui.element("section").classes("ks-card op-provider").props(f'aria-label="{NAMES[name]}"'):
                    shown[name] = ui.html("", sanitize=False)

    def look() -> None:
        problem()
        if shared.value is None:
            return
        state(*standing(shared.value))
        now, real_now = running.clock.now(), real(running.clock).now()
        if (words := verdict_html(shared.value)) != says.content:
            says.set_content(words)
        for one in shared.value:
            if (text := provider_html(one, now, real_now)) != shown[one.channel].content:
                shown[one.channel].set_content(text)

    keep_looking(look, shared)


def standing(providers: Sequence[ProviderLook]) -> tuple[str, str]:
    states = [one.state for one in providers]
    if down := sum(state in ("down", "probing") for state in states):
        return f"{plural(down, 'provider')} down", "away"
    if "refusing" in states:
        return "Calls fail", "away"
    if any(state in ("paused", "resting", "failing") for state in states):
        return "Needs a look", "warn"
    return ("Answering", "") if "answering" in states else ("Not asked lately", "idle")


def verdict_html(providers: Sequence[ProviderLook]) -> str:
    """Whether one is down, in a sentence; and whether any of this is real."""
    down = [one for one in providers if one.state in ("down", "probing")]
    ill = [one for one in providers if one.state in ("failing", "resting", "paused")]
    sandboxes = [NAMES[one.channel] for one in providers if one.is_sandbox]
    honest = "" if not sandboxes else (
        f'<small>{escape(_listed(sandboxes))} {"goes" if len(sandboxes) == 1 else "go"} to our own '
        '<a class="ks-link" href="/sandbox">sandbox</a>: nothing is delivered to anybody, and what fails there is '
        "what it was told to do.</small>")
    if down:
        words = "; ".join(f"<b>{NAMES[one.channel]}</b>: {_calls_said(one)}, {plural(_waiting(one), 'message')} "
                          f"{'waits' if _waiting(one) == 1 else 'wait'}" for one in down)
        return verdict(f"{'A provider is' if len(down) == 1 else 'Providers are'} down. {words}.{honest}", "bad")
    if refusing := [one for one in providers if one.state == "refusing"]:
        words = "; ".join(f"<b>{NAMES[one.channel]}</b>: {_calls_said(one)}" for one in refusing)
        return verdict(f"A provider may be down. {words}.{honest}", "bad")
    if ill:
        words = "; ".join(f"<b>{NAMES[one.channel]}</b>: {escape(STATES[one.state][0].lower())}" for one in ill)
        return verdict(f"No provider is down. {words}.{honest}", "warn")
    return verdict(f"No provider is down.{honest}")


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _waiting(one: ProviderLook) -> int:
    return one.now.waiting + one.now.retrying


def _calls_said(one: ProviderLook) -> str:
    return (f"{shown_count(one.now.failed_calls)} of the last {shown_count(one.now.calls)} calls failed"
            if one.now.calls else "it was failing when it was last asked")


def provider_html(one: ProviderLook, now: float, real_now: float) -> str:
    """One card. Calls are told by the real clock, what waits by that of the installation."""
    words, tone = STATES[one.state]
    sandbox = chip("sandbox", "warn") if one.is_sandbox else ""
    faults = f"{plural(one.faults, 'fault')} switched on in the sandbox" if one.faults else ""
    made_up = f"<div>{chip(faults, 'warn')}</div>" if faults else ""
    return (
        f'<div class="ks-card-head"><h2>{NAMES[one.channel]}</h2><span>{sandbox} {chip(words, tone)}</span></div>'
        + fact_rows([
            ("Provider", f"{escape(NAMED.get(one.provider, one.provider))}{made_up}"),
            ("Calls", calls_html(one)),
            ("Answers in", latency_html(one)),
            ("Last asked", shown_ago(real_now - one.answers.last_at) if one.answers.last_at else ""),
            ("Went wrong", troubles_html(one, real_now)),
            ("Counted", counted_html(one)),
            ("Waits", waits_html(one, now)),
        ])
    )


def calls_html(one: ProviderLook) -> str:
    if not one.now.calls:
        return f'<span class="quiet">none in the last {LATELY_SECONDS / 60:.0f} minutes</span>'
    share = one.now.failed_calls / one.now.calls
    tone = "bad" if share >= 0.5 else "warn" if share else "good"
    return (f"{bar(share, tone, f'{share:.0%} of calls failed')}{shown_count(one.now.failed_calls)} of the last "
            f"{shown_count(one.now.calls)} failed ({shown_share(share)})<small>the breaker opens at 50 % of 20 within "
            f"{LATELY_SECONDS / 60:.0f} minutes</small>")


def latency_html(one: ProviderLook) -> str:
    middle, most = one.answers.within(0.5), one.answers.within(0.95)
    if middle is None or most is None:
        return ('<span class="quiet">not known here: this process asked nothing in the last hour; a worker elsewhere '
                "may have</span>" if one.now.calls else '<span class="quiet">nothing asked in the last hour</span>')
    drawn = sparkline([seconds * 1000 for seconds in one.answers.seconds[-SHOWN_CALLS:]])
    return (f"<b>{_ms(middle)}</b> in the middle, <b>{_ms(most)}</b> at most for 95 %{drawn}"
            f"<small>{plural(len(one.answers.seconds), 'call')} of this process in the last hour</small>")


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else shown_duration(seconds)


def troubles_html(one: ProviderLook, now: float) -> str:
    """The last failures by reason, as this process saw them."""
    if not one.answers.troubles:
        return '<span class="quiet">nothing that this process saw in the last hour</span>'
    rows = "".join(
        f'<li><span>{escape(cut(each.why.replace("_", " "), 80))} <span class="quiet" title="{moment(each.last_at)}">'
        f"{shown_ago(now - each.last_at)}</span></span><b>{shown_count(each.count)}</b></li>"
        for each in one.answers.troubles[:SHOWN_TROUBLES])
    return f'<ul class="op-why">{rows}</ul>'


def counted_html(one: ProviderLook) -> str:
    """Over all processes, today."""
    today = [each for each in one.counted if each.today]
    if not today:
        return '<span class="quiet">no failures today</span>'
    rows = "".join(
        f'<li><span><a class="ks-link" href="/stats/{each.family}">'
        f'{escape(each.event.removeprefix("failed_due_to_").replace("_", " "))}</a> <span class="quiet">'
        f'{escape(", ".join(cut(value, 40) for value, _ in each.details[:2]))}</span></span>'
        f"<b>{shown_count(each.today)}</b></li>" for each in today[:SHOWN_TROUBLES])
    return f'<ul class="op-why">{rows}</ul><small>today, over all processes</small>'


def waits_html(one: ProviderLook, now: float) -> str:
    found = one.now
    parts = [f"{plural(found.waiting, 'message')} to send"] if found.waiting else []
    parts += [f"{shown_count(found.retrying)} to try again"] if found.retrying else []
    parts += [f"{shown_count(found.pending)} whose news is awaited"] if found.pending else []
    parts += [f'<span class="bad">{shown_count(found.overdue)} overdue</span>'] if found.overdue else []
    parts += [f'<span class="bad">{shown_count(found.dead)} given up</span>'] if found.dead else []
    if found.oldest_at:
        parts.append(f"the oldest since {shown_duration(now - found.oldest_at)}")
    said = ", ".join(parts) or '<span class="quiet">nothing</span>'
    return f'{said}<small><a class="ks-link" href="/messages">queues, pause and resume</a></small>'
