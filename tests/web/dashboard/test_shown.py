"""Numbers, times and keys as people read them."""

import pytest

from keystead.web.dashboard.shown import (
    MASK,
    chip,
    fact_rows,
    masked,
    masked_key,
    shown_ago,
    shown_bytes,
    shown_count,
    shown_duration,
    shown_rate,
    shown_share,
)


@pytest.mark.parametrize(("size", "text"), [
    (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1349, "1.3 kB"), (99_960, "100 kB"), (999_600, "1.0 MB"),
    (1_400_000, "1.4 MB"), (123_400_000, "123 MB"), (5e9, "5.0 GB"), (7e13, "70.0 TB"),
])
def test_bytes(size, text):
    assert shown_bytes(size) == text


@pytest.mark.parametrize(("count", "text"), [
    (0, "0"), (12_345, "12,345"), (1_234_567, "1.23 M"), (2_500_000_000, "2.50 G"),
])
def test_counts(count, text):
    assert shown_count(count) == text


@pytest.mark.parametrize(("rate", "text"), [
    (0, "0"), (0.4, "0.4"), (12.6, "13"), (8200.2, "8,200"), (None, "\N{EN DASH}"),
])
def test_rates(rate, text):
    assert shown_rate(rate) == text


@pytest.mark.parametrize(("seconds", "text"), [
    (0, "0 s"), (-3, "0 s"), (59.9, "59 s"), (60, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (3601, "1 h"),
    (90061, "1 d 1 h"), (86400 * 400, "400 d"),
])
def test_durations_have_two_neighbouring_units_at_most(seconds, text):
    assert shown_duration(seconds) == text


def test_moments_and_shares():
    assert shown_ago(0.4) == "just now" and shown_ago(75) == "1 min 15 s ago"
    assert shown_share(None) == "\N{EN DASH}" and shown_share(0.5) == "50.0 %" and shown_share(1) == "100 %"


def test_mask_tells_apart_without_telling():
    assert masked("alice@mail.example") == f"al{MASK}"
    assert masked("alice") == MASK
    assert masked_key("mail:alice@mail.example:7", ["alice@mail.example"]) == f"mail:al{MASK}:7"
    assert masked_key("a:b", [""]) == "a:b"


def test_html_is_escaped():
    assert "<b>" not in chip("<b>") and "&lt;b&gt;" in chip("<b>")
    assert fact_rows([("<x>", "<b>ready</b>"), ("empty", "")]) == (
        '<dl class="ks-facts"><dt>&lt;x&gt;</dt><dd><b>ready</b></dd></dl>'
    )
