"""What a template makes of typed parameters."""

import json

import pytest

from keystead.messaging.email import Templates
from keystead.web.dashboard.templates_preview import preview, read_parameters, sample_text


@pytest.fixture
def templates(tmp_path):
    (tmp_path / "mine.txt").write_text("only {{ words }}")
    return Templates(tmp_path)


def test_samples_of_built_in_templates_can_be_shown(templates):
    for slug in ("code", "daily_reminder", "notice"):
        shown = preview(templates, slug, sample_text(templates, slug))
        assert shown.problem == "" and 'sandbox=""' in shown.html and "<pre" in shown.text
    assert json.loads(sample_text(templates, "mine")) == {}


def test_what_a_parameter_says_cannot_leave_its_frame(templates):
    shown = preview(templates, "notice", json.dumps({"title": '"><script>', "message": "</iframe><script>"}))
    assert "<script>" not in shown.html and "<script>" not in shown.text


def test_problems_and_missing_variants_are_said(templates):
    shown = preview(templates, "mine", "{}")
    assert shown.problem.startswith("plain text:") and "words" in shown.problem
    assert "not offered" in shown.html and "cannot be shown" in shown.text
    assert "no template" in preview(templates, "missing", "{}").problem


@pytest.mark.parametrize("typed", ["{", "[]", "1", "nul", "[" * 100_000])
def test_what_is_no_object_is_waited_for(templates, typed):
    assert read_parameters(typed) is None and preview(templates, "code", typed) is None


def test_nothing_typed_means_no_parameters():
    assert read_parameters("") == {}
