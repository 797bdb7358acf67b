"""The documented keys are declared as documented."""

from keystead.keys import Layout, Registry
from keystead.messaging.touches import stats
from keystead.messaging.touches.keys import TOUCHES


def test_documented_keys_are_declared_with_their_types():
    registry = Registry([TOUCHES], Layout.PLAIN)
    assert stats.SENDS
    types = {name: registry.resolve(name.encode()).declaration.type for name in (
        "touch:to_send", "touch:send_purgatory", "touch:to_log", "touch:log_purgatory", "touch:pending",
        "touch:pending:tch_1", "touch:pending:tch_1:remaining", "touch:send_job:lock", "touch:log_job:lock",
        "touch:stale_detection_job:lock", "msg:by_user:ada", "stats:touch_send:daily:20514",
    )}
    assert list(types.values()) == [
        "list", "list", "list", "list", "zset", "hash", "set", "lock", "lock", "lock", "set", "hash"]


def test_every_key_lies_in_one_slot_with_the_channels():
    tagged = Registry([TOUCHES], Layout.TAGGED)
    assert {declaration.tag.of({}) for declaration in tagged if not declaration.tag.variables} == {"msg:0"}


def test_keys_that_name_a_person_say_so():
    registry = Registry([TOUCHES], Layout.PLAIN)
    named = [declaration for declaration in registry if "{user_sub}" in declaration.pattern]
    assert len(named) == 4 and all(declaration.personal.variables == ("user_sub",) for declaration in named)
