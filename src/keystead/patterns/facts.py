"""What a room says of a pattern, passed on to each key that the pattern declares."""

from keystead.keys.keyspace import Facts


def passed_on(facts: Facts, addition: str, scripts: tuple[str, ...], *, personal: bool = True) -> Facts:
    """The room's facts for one of the pattern's keys: ``addition`` says which one it is.

    Without ``personal`` the key holds nothing about a person, whatever the others do.
    """
    passed: Facts = facts.copy()
    passed["purpose"] = f"{facts['purpose']}; {addition}" if addition else facts["purpose"]
    passed["scripts"] = scripts
    if not personal:
        passed["personal"] = False
    return passed
