"""Picking keys out of commands that are cut short or wrong: the server says so, not the guard."""

from keystead.guard.places import after, at, counted, migrated, row, streams, upper, whole


def test_short_commands_name_no_keys() -> None:
    assert at(1, 2)(("GET",)) == [] and row(1)(("DEL",)) == () and counted(2)(("EVAL", "x")) == ()
    assert counted(2)(("EVAL", "x", "many", "k")) == () and streams(("XREAD", "STREAMS")) == ()
    assert after("STORE")(("SORT", "k", "STORE")) == () and migrated(("MIGRATE", "h", 1)) == ()


def test_several_keys_are_migrated_behind_their_word() -> None:
    assert migrated(("MIGRATE", "h", 1, "", 0, 5, "KEYS", "a", "b")) == ("a", "b")


def test_what_can_be_no_option_is_none() -> None:
    assert upper(5) == "" and upper("x" * 100) == "" and upper(b"ex") == "EX" and upper(None) == ""
    assert whole("7") == 7 and whole(None) is None and whole("x") is None
