"""Messages as the person would have seen them: bubbles of a phone, cards of a lock screen, mail."""

import re
from datetime import UTC, datetime
from html import escape
from typing import Final

from keystead.messaging.sandbox import Channel, Message, Recipient
from keystead.web.dashboard.shown import chip, shown_ago, shown_count
from keystead.web.plain_pages import MARK

NAMES: Final[dict[Channel, str]] = {"sms": "Texts", "push": "Push", "email": "Email"}
_GOOD: Final = frozenset(("delivered", "ok", "Delivery", "received"))
_BAD: Final = frozenset(("undelivered", "failed", "Permanent", "Transient", "Complaint"))
_WORDS: Final = {"taken": "no receipt yet", "Send": "taken", "ok": "delivered", "Delivery": "delivered",
                 "Permanent": "bounced", "Transient": "bounced for now", "Complaint": "complained of"}
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"']+[^\s<>\"'.,;:!?)]")
_ICONS: Final = {
    "sms": '<path d="M4 5h16v11H9l-5 4z"/>', "push": '<path d="M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4"/>',
    "email": '<path d="M3 6h18v13H3zM3 7l9 7 9-7"/>',
}


def icon(channel: Channel) -> str:
    return ('<svg width="18" height="18" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" '
            f'stroke-linejoin="round" aria-hidden="true">{_ICONS[channel]}</svg>')


def recipient_row(recipient: Recipient, now: float) -> str:
    """One line of the list on the left."""
    return (f'<span class="sb-kind">{icon(recipient.channel)}</span><span class="sb-who">'
            f'<b>{escape(short_address(recipient.address))}</b><small>{NAMES[recipient.channel]} · '
            f'{escape(shown_ago(now - recipient.last_at))}</small></span>'
            f'<span class="sb-count">{shown_count(recipient.messages)}</span>')


def short_address(address: str) -> str:
    """A push token by what stands in its brackets: the rest is the same for all."""
    found = re.fullmatch(r"Expo(?:nent)?PushToken\[(.*)\]", address)
    return found[1] if found else address


def status_chip(message: Message, now: float) -> str:
    """Where the message stands, coloured; with the provider's number for what went wrong."""
    step = message.step_at(now)
    failed = step.status in _BAD or (message.channel == "push" and step.status not in ("taken", "ok"))
    words = _WORDS.get(step.status, step.status)
    return chip(f"{words} {step.code}" if step.code else words,
                "bad" if failed else "good" if step.status in _GOOD else "")


def shown_messages(channel: Channel, messages: list[Message], now: float) -> str:
    """What one recipient got, newest first in the page; the phone turns it round, as phones do."""
    if not messages:
        return '<div class="ks-empty">What was sent here is no longer kept.</div>'
    if channel == "sms":
        bubbles = "".join(_bubble(message, now) for message in messages)
        return ('<div class="sb-phone" tabindex="0" role="log" aria-label="Texts"><div class="sb-talk">'
                f"{bubbles}</div></div>")
    one = _push if channel == "push" else _mail
    return f'<div class="sb-list">{"".join(one(message, now) for message in messages)}</div>'


def _bubble(message: Message, now: float) -> str:
    ours = message.direction != "inbound"
    below = "they wrote" if not ours else status_chip(message, now)
    return (f'<div class="sb-bubble {"" if ours else "theirs"}"><p>{_linked(message.text)}</p>'
            f'<small>{_when(message.at)} · {below}</small></div>')


def _push(message: Message, now: float) -> str:
    title = f"<b>{escape(message.title)}</b>" if message.title else ""
    return (f'<article class="sb-push"><span class="sb-app">{MARK}</span><div><header><span>Keystead</span>'
            f"<time>{_when(message.at)}</time></header>{title}<p>{_lines(message.text)}</p></div></article>"
            f'<div class="sb-under">{status_chip(message, now)}</div>')


def _mail(message: Message, now: float) -> str:
    headers = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in message.headers)
    html = (f'<iframe sandbox="" referrerpolicy="no-referrer" loading="lazy" title="The mail" '
            f'srcdoc="{escape(framed(message.html))}"></iframe>' if message.html else "")
    text = f"<pre>{escape(message.text)}</pre>" if message.text else ""
    if html and text:
        text = f"<details><summary>Plain text</summary>{text}</details>"
    return (f'<article class="sb-mail"><header><div><h3>{escape(message.title) or "(no subject)"}</h3>'
            f"<small>{escape(message.sender)} · {_when(message.at)}</small></div>{status_chip(message, now)}</header>"
            f"{html}{text}<details><summary>Headers</summary><table>{headers}</table></details></article>")


def framed(html: str) -> str:
    """The mail as its frame shows it: on white, as most programs do, with nothing loaded and links leading nowhere."""
    return ('<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'; '
            'img-src data:"><style>body{background:#fff;color:#1a2330;font:15px/1.5 system-ui,sans-serif;margin:16px}'
            f"</style>{html}")


def _linked(text: str) -> str:
    """Addresses can be followed, in a tab of their own."""
    parts, end = [], 0
    for found in _ADDRESS.finditer(text):
        address = escape(found[0])
        parts += [_lines(text[end:found.start()]),
                  f'<a href="{address}" target="_blank" rel="noopener noreferrer">{address}</a>']
        end = found.end()
    return "".join((*parts, _lines(text[end:])))


def _lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%d %b %H:%M:%S UTC")
