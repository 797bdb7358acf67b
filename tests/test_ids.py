"""Identifiers are unique and carry their prefix."""

from keystead.ids import new_uid


def test_identifiers_do_not_repeat_and_say_what_they_are() -> None:
    made = {new_uid("job") for _ in range(1000)}
    assert len(made) == 1000
    assert all(uid.startswith("job_") and len(uid) >= 24 for uid in made)
