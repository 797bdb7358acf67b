"""Templates: two variants, escaped, in a sandbox; what is wrong is said in the documented classes."""

from pathlib import Path

import pytest

from keystead.errors import Invalid
from keystead.messaging.email.templates import NotRendered, Rendered, Templates, Variant, link


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "hello.html").write_text("<p>Hello {{ name }}</p>")
    (tmp_path / "hello.txt").write_text("Hello {{ name }}")
    return tmp_path


def test_every_built_in_template_renders_its_sample_in_both_variants() -> None:
    templates = Templates()
    assert {"code", "daily_reminder", "notice"} <= set(templates.slugs())
    for slug in templates.slugs():
        rendered = templates.render(slug, templates.sample(slug))
        assert isinstance(rendered, Rendered), slug
        assert rendered.html is not None and rendered.html.startswith("<!doctype html>") and "{{" not in rendered.html
        assert rendered.text and "<" not in rendered.text


def test_values_are_escaped_in_html_and_left_alone_in_text(own: Path) -> None:
    rendered = Templates(own).render("hello", {"name": "<b>Ada & Co</b>"})
    assert rendered == Rendered("<p>Hello &lt;b&gt;Ada &amp; Co&lt;/b&gt;</p>", "Hello <b>Ada & Co</b>")
    reminder = Templates().render("daily_reminder", {"name": "<script>alert(1)</script>"})
    assert isinstance(reminder, Rendered) and "<script>" not in str(reminder.html)


def test_a_link_that_is_none_does_not_suit_the_template() -> None:
    for bad in ("javascript:alert(1)", " javascript:alert(1)", "data:text/html,x", "https://a b", "/relative"):
        with pytest.raises(ValueError, match="a link must begin"):
            link(bad)
    assert link("https://example.com/x?y=1") == "https://example.com/x?y=1"
    rendered = Templates().render("notice", {"title": "x", "message": "y", "url": "javascript:alert(1)"})
    assert isinstance(rendered, NotRendered) and rendered.identifier == "TemplateUnprocessable"


def test_one_missing_variant_is_not_offered(own: Path) -> None:
    (own / "hello.txt").unlink()
    assert Templates(own).render("hello", {"name": "Ada"}) == Rendered("<p>Hello Ada</p>", None)


@pytest.mark.parametrize("slug", ["missing", "../hello", "_layout", "", "a/b", "hello.html"])
def test_two_missing_variants_are_a_template_that_is_not_found(own: Path, slug: str) -> None:
    rendered = Templates(own).render(slug, {})
    assert isinstance(rendered, NotRendered)
    assert (rendered.identifier, rendered.breakdown) == ("TemplateNotFound", "template:404")


def test_a_missing_parameter_is_unprocessable(own: Path) -> None:
    rendered = Templates(own).render("hello", {})
    assert isinstance(rendered, NotRendered)
    assert (rendered.identifier, rendered.breakdown) == ("TemplateUnprocessable", "template:422")
    assert "name" in rendered.reason


@pytest.mark.parametrize("text", [
    "{{ 1 / 0 }}", "{% if %}", "{{ ''.__class__.__mro__ }}{{ 1/0 }}", "{% include 'nothing.html' %}",
    "{{ 'x' * 2000000 }}", "{{ items.append(1) }}",
])
def test_a_template_that_fails_is_an_internal_error_and_worse_than_unsuitable_parameters(own: Path, text: str) -> None:
    (own / "hello.txt").write_text(text)
    rendered = Templates(own).render("hello", {"items": [1]})
    assert isinstance(rendered, NotRendered)
    assert (rendered.identifier, rendered.breakdown) == ("TemplateInternalError", "template:InternalError")


def test_own_templates_come_first_may_use_the_layout_and_change_while_we_run(own: Path) -> None:
    (own / "code.txt").write_text("mine {{ code }}")
    (own / "hello.html").write_text("{% extends '_layout.html' %}{% block content %}inside{% endblock %}")
    templates = Templates(own)
    assert templates.variant("code", Variant.PLAIN, {"code": 1}).text == "mine 1"
    assert "inside" in templates.variant("hello", Variant.HTML, {}).text
    (own / "code.txt").write_text("changed {{ code }}, and longer")
    assert templates.variant("code", Variant.PLAIN, {"code": 1}).text == "changed 1, and longer"
    assert templates.sample("hello") == {} and templates.sample("../x") == {} and templates.sample("code")["code"]


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="not a directory"):
        Templates(tmp_path / "nowhere")
