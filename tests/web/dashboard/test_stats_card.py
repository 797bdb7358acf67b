"""A chart that can be taken away; its legend is driven in the tests of the pages."""

from keystead.web.dashboard.stats_card import file_name, save_script


def test_file_names_are_plain_and_say_which_days():
    assert file_name("sign_in:check/x", ("2026-03-01", "2026-03-04"), "png") == \
        "sign_in-check-x-2026-03-01-to-2026-03-04.png"


def test_image_has_a_title_and_room_for_its_legend():
    plain, many = save_script(7, 'a "b"', "x.png"), save_script(7, "a", "x.png", 12)
    assert "getElement(7)" in plain and '"a \\"b\\""' in plain and 'link.download = "x.png"' in plain
    assert "legend: {show: false, top: 40}, grid: {top: 50}" in plain
    assert "legend: {show: true, top: 40}, grid: {top: 122}" in many
