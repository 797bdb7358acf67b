"""Messages as people would have seen them."""

import html
import re

import pytest

from keystead.messaging.sandbox import Message, Recipient
from keystead.messaging.sandbox.models import Step
from keystead.web.dashboard.sandbox_shown import framed, recipient_row, short_address, shown_messages, status_chip


def message(channel="sms", status="delivered", code=0, **facts):
    return Message("m", channel, "x", 100.0, (Step("queued", 100.0), Step(status, 110.0, code)), **facts)


def test_a_text_is_a_bubble_whose_addresses_can_be_followed():
    shown = shown_messages("sms", [message(text="See https://a.example/l/x7?a=1&b=2.\n<b>now</b>")], 200.0)
    assert 'href="https://a.example/l/x7?a=1&amp;b=2"' in shown
    assert ".<br>&lt;b&gt;now&lt;/b&gt;" in shown
    assert 'rel="noopener noreferrer"' in shown


def test_what_they_wrote_stands_on_their_side():
    shown = shown_messages("sms", [message(text="STOP", direction="inbound")], 200.0)
    assert 'class="sb-bubble theirs"' in shown and "they wrote" in shown


@pytest.mark.parametrize("text", ["javascript:alert(1)", "http://", 'https://a.example/"onclick="x'])
def test_nothing_but_addresses_becomes_a_link(text):
    shown = shown_messages("sms", [message(text=text)], 200.0)
    assert "onclick=\"x" not in shown
    assert all(address.startswith("https://a.example/") for address in re.findall('href="([^"]*)"', shown))


def test_a_push_message_is_a_card():
    shown = shown_messages("push", [message("push", "ok", title="<T>", text="B")], 200.0)
    assert "<b>&lt;T&gt;</b>" in shown and "<p>B</p>" in shown and "delivered" in shown


def test_mail_is_shown_in_a_frame_that_may_do_nothing():
    body = '<p onclick="x">hi</p><script>alert(1)</script></iframe><img src="https://evil.example/x.png">'
    shown = shown_messages("email", [message("email", "Delivery", title="S", text="plain", html=body,
                                             headers=(("X-A", "<b>"),))], 200.0)
    assert 'sandbox=""' in shown
    (document,) = re.findall('srcdoc="([^"]*)"', shown)
    assert html.unescape(document) == framed(body)
    assert "<script>" not in shown and "<img" not in shown, "the mail is inside the attribute, escaped"
    assert "default-src 'none'" in framed(body)
    assert "<summary>Plain text</summary><pre>plain</pre>" in shown
    assert "<th>X-A</th><td>&lt;b&gt;</td>" in shown


def test_mail_without_html_is_shown_as_text():
    shown = shown_messages("email", [message("email", "Delivery", text="only words")], 200.0)
    assert "<iframe" not in shown and "<pre>only words</pre>" in shown and "(no subject)" in shown


@pytest.mark.parametrize(("channel", "status", "code", "words", "tone"), [
    ("sms", "delivered", 0, "delivered", "good"), ("sms", "undelivered", 30003, "undelivered 30003", "bad"),
    ("sms", "sent", 0, "sent", ""), ("push", "ok", 0, "delivered", "good"),
    ("push", "DeviceNotRegistered", 0, "DeviceNotRegistered", "bad"), ("push", "taken", 0, "no receipt yet", ""),
    ("email", "Permanent", 0, "bounced", "bad"), ("email", "Complaint", 0, "complained of", "bad"),
    ("email", "Send", 0, "taken", ""),
])
def test_where_a_message_stands(channel, status, code, words, tone):
    shown = status_chip(message(channel, status, code), 200.0)
    assert f">{words}<" in shown
    assert (tone in shown) if tone else not re.search("good|bad", shown)
    assert ">queued<" in status_chip(message("sms", status, code), 105.0)


def test_a_recipient_is_named_by_what_differs():
    assert short_address("ExponentPushToken[abc]") == "abc"
    assert short_address("ada@example.com") == "ada@example.com"
    row = recipient_row(Recipient("sms", "+1<b>", 100.0, 1234), 160.0)
    assert "+1&lt;b&gt;" in row and "1,234" in row and "Texts" in row


def test_an_empty_inbox_says_so():
    assert "no longer kept" in shown_messages("sms", [], 0.0)
