"""What people do with messages."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from keystead.demo.people import make_person
from keystead.demo.reactions import BROWSERS, SCANNERS, browser_of, links_in, react
from keystead.messaging.links.bots import is_bot

_ids = st.text("abcdef0123456789", min_size=1, max_size=20)


@given(st.integers(0, 1000), st.integers(0, 1000), _ids, st.sampled_from(["push", "sms", "email"]), st.integers(0, 3))
def test_a_person_does_the_same_with_the_same_message(
    seed: int, number: int, message: str, channel: str, links: int
) -> None:
    person = make_person(seed, number)
    reaction = react(person, message, channel, links)
    assert reaction == react(person, message, channel, links)
    assert reaction.after_seconds >= 20
    assert reaction.act != "stop" or channel == "sms"
    assert reaction.act != "unsubscribe" or (channel == "email" and links > 1)
    assert not reaction.scanner or (channel == "email" and links)


def test_some_click_few_leave_most_do_nothing() -> None:
    acts = Counter(react(make_person(5, number), f"SM{number}", "sms", 1).act for number in range(2000))
    assert acts["nothing"] > acts["click"] > 200
    assert 5 < acts["stop"] < 120


def test_links_are_found_with_and_without_a_scheme() -> None:
    assert links_in("Mika, here it is: 127.0.0.1:8400/a/Xy-9_z") == ["/a/Xy-9_z"]
    assert links_in("Start: http://h.example/l/abc Unsubscribe: http://h.example/l/def http://h.example/l/abc") == [
        "/l/abc", "/l/def"]
    assert links_in("no link at all") == []


def test_browsers_count_as_people_and_scanners_do_not() -> None:
    assert not any(is_bot("GET", {"user-agent": agent}) for agent in BROWSERS)
    assert all(is_bot("GET", {"user-agent": agent}) for agent in SCANNERS)
    assert browser_of(make_person(1, 1)) in BROWSERS
