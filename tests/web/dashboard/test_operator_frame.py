"""Parts that the pages for operators share."""

from keystead.web.dashboard.operator_frame import bar, verdict


def test_a_bar_never_leaves_its_place_and_says_what_it_shows():
    assert "width:25.0%" in bar(0.25) and 'aria-label="25 %"' in bar(0.25)
    assert "width:100.0%" in bar(7.0) and "width:0.0%" in bar(-1.0)
    assert 'aria-label="a &lt;b&gt;"' in bar(0.5, "bad", "a <b>") and 'class="op-bar bad"' in bar(0.5, "bad")


def test_a_verdict_has_its_tone():
    assert verdict("<b>x</b>", "bad") == '<div class="op-verdict bad"><b>x</b></div>'
