"""Colours of lines."""

from keystead.web.dashboard.stats_colours import BAD, GOOD, QUIET, colours


def test_what_went_wrong_is_warm_and_the_rest_of_many_grey():
    found = colours(["sent", "failed_due_to_network_error", "queued", "abandoned", "others"])
    assert found == {"sent": GOOD[0], "failed_due_to_network_error": BAD[0], "queued": GOOD[1], "abandoned": BAD[1],
                     "others": QUIET}


def test_words_inside_other_words_mean_nothing():
    assert set(colours(["lostness", "terrors", "outbound", "stalemate"]).values()) <= set(GOOD)


def test_very_many_names_still_have_colours():
    assert len(colours([f"event_{number}" for number in range(50)])) == 50
