"""Expiries in sentences."""

import pytest

from keystead.inventory.documents.prose_expiries import expiry_of_prose
from keystead.inventory.models import Rule


@pytest.mark.parametrize(
    ("text", "rule", "seconds"),
    [
        ("Counts uploads, with a 1 hour expiration.", Rule.EXACTLY, 3600),
        ("Always set to expire after 60s in case of a crash.", Rule.EXACTLY, 60),
        ("Set to expire 15m after it was last used.", Rule.SLIDING, 900),
        ("how many tries with less than 10 minutes between them, by incr then expire", Rule.SLIDING, 600),
        ("This key is always set to expire when the code expires.", Rule.UNTIL, None),
        ("Always set to expire 1m after the corresponding JWT expires.", Rule.UNTIL, None),
        ("We use a basic expiring key for this.", Rule.SOME, None),
        ("Never expires.", Rule.NONE, None),
        ("hash, 24h, profile", Rule.EXACTLY, 86400),
        ("Hash. TTL: 5 min", Rule.EXACTLY, 300),
        ("过期时间 30 分钟", Rule.EXACTLY, 1800),
        ("30분 후 만료", Rule.EXACTLY, 1800),
        ("有効期限は15秒", Rule.EXACTLY, 15),
        ("läuft nach 24 Stunden ab", Rule.EXACTLY, 86400),
        ("caduca a los 7 días", Rule.EXACTLY, 604800),
        ("kept for 400 days", Rule.EXACTLY, 34560000),
    ],
)
def test_expiries_of_sentences(text, rule, seconds):
    said = expiry_of_prose(text)
    assert said is not None and (said[0].rule, said[0].seconds) == (rule, seconds)


@pytest.mark.parametrize(
    "text",
    [
        "the scores are when those tokens expire. Used for revoking",
        "stays in this list for at least 15 minutes",
        "checked every 5 minutes by a job",
        "a list",
        "",
    ],
)
def test_sentences_that_say_nothing_of_an_end(text):
    assert expiry_of_prose(text) is None
