"""Where one can go."""

from keystead.web.dashboard.menu import DESTINATIONS, menu_html, shortcuts_html


def test_every_letter_and_path_is_used_once():
    assert len({one.letter for one in DESTINATIONS}) == len(DESTINATIONS) == len({one.path for one in DESTINATIONS})


def test_the_page_one_is_on_is_marked():
    assert menu_html("/jobs").count("aria-current") == 1
    assert 'href="/jobs" data-letter="j" title="g j" aria-current="page"' in menu_html("/jobs")
    assert "aria-current" not in menu_html("/nowhere")


def test_help_tells_every_key():
    told = shortcuts_html()
    assert all(f"<kbd>g</kbd> <kbd>{one.letter}</kbd>" in told for one in DESTINATIONS)
    assert "<kbd>/</kbd>" in told and "<kbd>?</kbd>" in told
