"""The page of templates."""

from keystead.messaging.email import Templates
from keystead.web.dashboard.templates_page import _Page


def test_a_template_that_is_named_is_shown_first_and_otherwise_the_first_one():
    assert _Page(Templates(), "notice").chosen == "notice"
    assert _Page(Templates(), "missing").chosen == Templates().slugs()[0]
