"""Who looks at a link without being somebody who clicked on it."""

import re
from collections.abc import Mapping
from typing import Final

# Programs that fetch a page to index it, to show a preview of it, or to try it out. Cubot makes phones.
_AGENTS: Final = re.compile(
    r"(?<!cu)bot(?![a-z0-9])|crawl|spider|slurp|facebookexternalhit|facebookcatalog|meta-externalagent|whatsapp/|embedly"
    r"|skypeuripreview|google-read-aloud|googleimageproxy|google-inspectiontool|bingpreview|yahoo! slurp|vkshare"
    r"|pinterest/0\.|quora link preview|outbrain|w3c_validator|redditbot|mattermost|nextcloud server|lighthouse"
    r"|pagespeed|headlesschrome|phantomjs|curl/|wget/|python-|aiohttp|go-http-client|libwww|java/|apache-httpclient"
    r"|okhttp/|node-fetch|axios/|undici|guzzlehttp|safelinks|barracuda|proofpoint|mimecast|urlscan|censys|nmap|zgrab",
    re.IGNORECASE,
)
_AHEAD: Final = re.compile(r"prefetch|prerender|preview", re.IGNORECASE)
_AHEAD_HEADERS: Final = ("purpose", "sec-purpose", "x-purpose", "x-moz")


def is_bot(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a request is a program's: by its method, its name, or because it only fetches ahead.

    ``headers`` are looked up in lower case. Whoever says nothing about itself is a program.
    """
    if method == "HEAD" or any(_AHEAD.search(headers.get(name, "")) for name in _AHEAD_HEADERS):
        return True
    agent = headers.get("user-agent", "")
    return not agent.strip() or _AGENTS.search(agent) is not None
