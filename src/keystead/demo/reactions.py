"""What somebody does with a message that reached them. Pure: decided by the person and the message alone."""

import random
import re
from dataclasses import dataclass
from typing import Final, Literal

from keystead.demo.people import Person

Act = Literal["nothing", "click", "unsubscribe", "stop"]
_LINK: Final = re.compile(r"/(?:l|a)/[A-Za-z0-9_-]{1,255}")
# A scanner of a mail host opens the link before the person does; it must not count as a click.
SCANNERS: Final = (
    "Mozilla/5.0 (compatible; Barracuda Sentinel)", "Slackbot-LinkExpanding 1.0", "WhatsApp/2.23 A",
)
BROWSERS: Final = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 "
    "Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 "
    "Safari/605.1.15",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:133.0) Gecko/20100101 Firefox/133.0",
)


@dataclass(frozen=True, slots=True)
class Reaction:
    """``after_seconds`` by the town's clock. ``scanner``: the name of a program that looks first, or empty."""

    act: Act
    after_seconds: float
    scanner: str = ""


def links_in(text: str) -> list[str]:
    """The paths of trackable links in a message, each once, in order."""
    return list(dict.fromkeys(_LINK.findall(text)))


def react(person: Person, message_id: str, channel: str, links: int) -> Reaction:
    """What they do with it. Whoever is in a bad mood about messages says STOP, or unsubscribes, much sooner."""
    draw = random.Random(f"{person.seed}:message:{person.number}:{message_id}")
    mood, after = draw.random(), draw.expovariate(1 / 1500) + 20
    scanner = draw.choice(SCANNERS) if channel == "email" and links and draw.random() < 0.15 else ""
    leaves = 0.2 if person.grumpy else 0.004
    if channel == "sms" and mood < leaves:
        return Reaction("stop", after)
    if channel == "email" and links > 1 and mood < leaves:
        return Reaction("unsubscribe", after, scanner)
    # A push message opens the app when it is tapped, and has no address of its own.
    if draw.random() < person.clicks:
        return Reaction("click", after, scanner)
    return Reaction("nothing", after, scanner)


def browser_of(person: Person) -> str:
    """What their browser calls itself."""
    return BROWSERS[0 if person.platform == "ios" and person.push_token else person.number % len(BROWSERS)]
