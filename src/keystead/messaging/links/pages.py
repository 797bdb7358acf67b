"""The pages behind links: what previews are made of, and where a person goes on. They work without scripts."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from keystead.errors import Invalid
from keystead.messaging.links.models import Target

# What a page may load and where its form may go; it needs nothing from anywhere.
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src https: data:; "
                               "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    # A code may be a secret, so no other site is told of it. Our own has to be: a page that tells nobody sends its form
    # with the origin "null", which the server takes for a page of another site.
    "Referrer-Policy": "same-origin",
    "X-Robots-Tag": "noindex, nofollow",
    "Cache-Control": "no-store",
}
_MOST_TEXT: Final = 200
_STYLE: Final = """
:root{--ground:#f6f7f9;--card:#fff;--ink:#1c2430;--quiet:#5d6878;--line:#e3e7ec;--accent:#0f766e}
@media(prefers-color-scheme:dark){:root{--ground:#0f1419;--card:#171e26;--ink:#e6eaf0;--quiet:#93a0b1;--line:#26303b;
--accent:#2dd4bf}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--ground);color:var(--ink);padding:24px;
font:17px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif}
main{width:100%;max-width:440px;background:var(--card);border:1px solid var(--line);border-radius:16px;padding:36px}
.site{font-weight:650;color:var(--quiet);margin:0 0 22px}
h1{font-size:24px;line-height:1.25;letter-spacing:-.015em;margin:0 0 10px}
p{margin:0 0 18px;color:var(--quiet)}
input{width:100%;font:inherit;padding:11px 14px;margin:0 0 14px;border:1px solid var(--line);border-radius:10px;
background:var(--ground);color:var(--ink)}
.go{display:inline-block;font:inherit;font-weight:600;border:0;border-radius:10px;padding:12px 22px;cursor:pointer;
background:var(--accent);color:var(--card);text-decoration:none}
"""


class Pages:
    """Makes the pages. ``app_url`` is where people go on, this server's root if it is empty.

    Nothing in a link decides where a browser is sent: a page that is known by name has a place in the app, and every
    other leads to the app's beginning.
    """

    def __init__(self, *, app_url: str = "", site_name: str = "Keystead") -> None:
        parts = urlsplit(app_url)
        if app_url and (parts.scheme not in ("https", "http") or not parts.netloc or parts.query or parts.fragment):
            raise Invalid(f"messaging.app_url must be an address such as https://app.example.com, got {app_url!r}")
        self._app, self._site = app_url.rstrip("/"), site_name

    def destination(self, target: Target, click_uid: str = "") -> str:
        """Where a person goes on, with what the app needs to say after a log-in which click it was."""
        place = "/"
        journey = target.page_extra.get("journey_uid")
        if target.page_identifier == "share_journey" and isinstance(journey, str):
            place = f"/shared/{quote(journey, safe='')}"
        said = {"touch_link": target.code, "click": click_uid} if click_uid else {}
        return f"{self._app}{place}{'?' + urlencode(said) if said else ''}"

    def lead_on(self, target: Target, click_uid: str, *, at_once: bool) -> str:
        """The page of a link that leads into the app. ``at_once``: it goes there by itself, for people."""
        destination = escape(self.destination(target, click_uid))
        shared = target.page_identifier == "share_journey"
        title, description = _preview(target, self._site)
        going = f'<meta http-equiv="refresh" content="0;url={destination}">' if at_once and not shared else ""
        words = "Somebody shared this with you." if shared else "If nothing happens by itself, press the button."
        body = f'<p>{words}</p><a class="go" href="{destination}" rel="noreferrer">Open</a>'
        return self._page(title, body, description, head=going, preview=True)

    def unsubscribe(self, target: Target, addresses: Sequence[str]) -> str:
        """Asks, with one button, whether to unsubscribe; for the address too, where it is not known yet."""
        title, description = _preview(target, self._site)
        shown = ", ".join(escape(_masked(address)) for address in addresses)
        asked = '<p>Which address shall get no more email?</p>' \
                '<input type="email" name="email" required maxlength="320" autocomplete="email" aria-label="Email">'
        if addresses:
            asked = f"<p>Shall {shown} get no more email?</p>"
        form = f'<form method="post">{asked}<button class="go" type="submit">Unsubscribe</button></form>'
        return self._page(title, form, description, preview=True)

    def unsubscribed(self) -> str:
        return self._page("You are unsubscribed", "<p>You will get no more email from us at this address.</p>")

    def invalid_address(self) -> str:
        return self._page("That is no email address", '<p>Please go back and check what you typed.</p>')

    def unknown(self) -> str:
        """For a code that leads nowhere: it may have been cut off, mistyped, or has ended."""
        home = escape(f"{self._app}/")
        return self._page(
            "This link does not lead anywhere",
            "<p>It may have been cut off when it was copied, or it has ended. Nothing is wrong on your side.</p>"
            f'<a class="go" href="{home}" rel="noreferrer">Go to the start</a>',
        )

    def too_many(self) -> str:
        """For an address from which too much was opened, or guessed."""
        return self._page("Too many links at once", "<p>Very many links were opened from your network. Please try "
                                                    "again in a few minutes.</p>")

    def _page(self, title: str, body: str, description: str = "", *, head: str = "", preview: bool = False) -> str:
        tags = ""
        if preview:
            properties = {"og:type": "website", "og:site_name": self._site, "og:title": title,
                          "og:description": description}
            named = {"description": description, "twitter:card": "summary", "twitter:title": title,
                     "twitter:description": description}
            tags = _tags("property", properties) + _tags("name", named)
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f"<title>{escape(title)} · {escape(self._site)}</title>"
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<meta name="robots" content="noindex">{tags}{head}<link rel="icon" href="data:,">'
            f'<style>{_STYLE}</style></head><body><main><p class="site">{escape(self._site)}</p>'
            f"<h1>{escape(title)}</h1>{body}</main></body></html>"
        )


def _tags(kind: str, values: Mapping[str, str]) -> str:
    return "".join(f'<meta {kind}="{name}" content="{escape(value)}">' for name, value in values.items())


def _preview(target: Target, site: str) -> tuple[str, str]:
    """Title and description that a preview shows. What the link itself says comes first, cut to a line."""
    extra = target.preview_extra
    which = _text(extra, "list")
    titles = {
        "unsubscribe": f"Unsubscribe from {which}" if which else "Unsubscribe",
        "share_journey": "Something was shared with you",
    }
    descriptions = {
        "unsubscribe": "Get no more of these messages.",
        "share_journey": f"Open it in {site}.",
    }
    title = _text(extra, "title") or titles.get(target.preview_identifier, site)
    return title, _text(extra, "description") or descriptions.get(target.preview_identifier, f"Open this in {site}.")


def _text(extra: Mapping[str, Any], name: str) -> str:
    value = extra.get(name)
    return " ".join(value.split())[:_MOST_TEXT] if isinstance(value, str) else ""


def _masked(address: str) -> str:
    """Enough for its owner to know it, too little for whoever else got the link."""
    name, _, host = address.rpartition("@")
    return f"{name[:1]}•••@{host}" if name else "this address"
