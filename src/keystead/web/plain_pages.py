"""The few pages that need no dashboard behind them: log-in and its refusals. One file each, nothing loaded."""

import json
from html import escape

from starlette.responses import HTMLResponse

_STYLE = """
:root { --ground:#f6f7f9; --card:#fff; --ink:#1c2430; --quiet:#5d6878; --line:#e3e7ec; --accent:#0f766e;
  --code:#f0f3f6 }
@media (prefers-color-scheme: dark) { :root { --ground:#0f1419; --card:#171e26; --ink:#e6eaf0; --quiet:#93a0b1;
  --line:#26303b; --accent:#2dd4bf; --code:#0f1419 } }
* { box-sizing:border-box }
body { margin:0; min-height:100vh; display:grid; place-items:center; background:var(--ground); color:var(--ink);
  font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif; padding:24px }
main { width:100%; max-width:460px; background:var(--card); border:1px solid var(--line); border-radius:14px;
  padding:36px 36px 32px }
.mark { display:flex; align-items:center; gap:10px; font-weight:650; letter-spacing:-.01em; margin-bottom:26px }
.mark svg { color:var(--accent) }
h1 { font-size:22px; line-height:1.25; letter-spacing:-.015em; margin:0 0 10px }
p { margin:0 0 14px; color:var(--quiet) }
code { display:block; background:var(--code); border:1px solid var(--line); border-radius:8px; padding:11px 14px;
  font:14px/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; color:var(--ink);
  margin:0 0 16px; user-select:all }
button { font:inherit; font-weight:600; border:0; border-radius:9px; padding:11px 20px; background:var(--accent);
  color:var(--card); cursor:pointer; margin-top:6px }
"""

MARK = (
    '<svg width="22" height="22" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.1" '
    'stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">'
    '<path d="M4 20V9.5L12 4l8 5.5V20"/><circle cx="12" cy="12.2" r="2.1"/><path d="M12 14.3V20"/></svg>'
)


def plain_page(title: str, body: str, *, status: int = 200) -> HTMLResponse:
    """``body`` is ready HTML; whatever came from outside must already be escaped."""
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · Keystead</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">'
        f'<link rel="icon" href="data:,"><style>{_STYLE}</style></head><body><main>'
        f'<div class="mark">{MARK}Keystead</div>'
        f"<h1>{escape(title)}</h1>{body}</main></body></html>",
        status_code=status,
        headers={"Cache-Control": "no-store"},
    )


def exchange_page(ticket: str, next_path: str) -> HTMLResponse:
    """Logs in by a POST that the page sends itself, so that a program that merely opens links uses nothing up.

    A page that the browser prepares in advance waits until someone looks at it.
    """
    return plain_page("Logging you in", (
        '<form method="post" action="/login">'
        f'<input type="hidden" name="ticket" value="{escape(ticket)}">'
        f'<input type="hidden" name="next" value="{escape(next_path)}">'
        "<p>This takes a moment. If nothing happens, press the button.</p>"
        '<button type="submit">Log in</button></form>'
        "<script>const go=()=>document.forms[0].submit();"
        "document.prerendering?document.addEventListener('prerenderingchange',go,{once:true}):go()</script>"
    ))


_NEW_LINK = "<p>To get a new link, run this where Keystead is installed:</p><code>keystead login-link</code>"


def login_needed_page(next_path: str) -> HTMLResponse:
    """For a browser without a session. One that followed a link from another site did not send its cookie along;
    asked again from our own page it does, and goes straight on."""
    return plain_page("Please log in", (
        "<p>The dashboard opens with a one-time link, which <b>keystead up</b> printed when it started.</p>"
        f"{_NEW_LINK}<p>Open the printed link in this browser.</p>"
        f'<script>fetch("/session").then(r=>r.json()).then(s=>{{if(s.known)location.replace({_js(next_path)})}})</script>'
    ))


def refused_ticket_page(title: str, says: str, *, status: int) -> HTMLResponse:
    return plain_page(title, f"<p>{escape(says)}</p>{_NEW_LINK}", status=status)


def _js(text: str) -> str:
    return json.dumps(text).replace("<", "\\u003c")
