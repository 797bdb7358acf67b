import pytest

from keystead.inventory import Expiry, Inventory, Matcher, Rule
from keystead.survey.drift import Live, compare
from keystead.survey.findings import Severity
from keystead.survey.tally import Tally

from .entries import entry, inventory, stray


def live_of(described, *keys, strays=(), whole=True):
    tally = Tally(Matcher(described).find, lambda *seen: None)
    for raw_key, type, ttl_seconds in keys:
        tally.add(raw_key, type, -1 if ttl_seconds is None else round(ttl_seconds * 1000), 100)
    return Live(tally, Inventory("server", tuple(strays)), whole)


def told(findings):
    return {(found.kind.label, found.pattern) for found in findings}


DESCRIBED = inventory(
    entry("session:{token}", "hash", 3600, line=3), entry("config", "string", 0, line=4),
    entry("cart:{user_id}", "hash", Expiry(Rule.AT_MOST, 86400.0), line=5),
)
KEYS = (b"session:1", "hash", 60.0), (b"config", "string", None), (b"cart:7", "hash", 600.0)
CODE = inventory(
    entry("session:{sid}", "hash", 3600, file="app.py", line=10), entry("config", "string", file="app.py", line=20),
    entry("cart:{uid}", "hash", 3600, file="app.py", line=30), name="app",
)


def test_three_that_agree_give_nothing():
    assert compare(DESCRIBED, live_of(DESCRIBED, *KEYS), CODE) == ()


def test_key_that_nobody_described():
    live = live_of(DESCRIBED, *KEYS, strays=[stray("sessions:{integer}", 12, "hash", "sessions:9")])
    (found,) = compare(DESCRIBED, live, CODE)
    assert (found.kind.label, found.pattern, found.keys, found.examples) == (
        "undocumented", "sessions:{integer}", 12, ("sessions:9",))
    assert "12 keys (hash)" in found.says and "perhaps session:{token} is meant" in found.says


def test_key_that_would_fit_with_separators_says_so():
    live = live_of(DESCRIBED, *KEYS, strays=[stray("session:{integer}:draft", 3, example="session:1:draft")])
    (found,) = compare(DESCRIBED, live, CODE)
    assert "would be session:{token} if" in found.says


@pytest.mark.parametrize(("key", "kind", "words"), [
    ((b"session:2", "list", 60.0), "wrong-type", "1 of 2 keys is list; the inventory says hash"),
    ((b"session:2", "hash", None), "never-expires", "never expires; the inventory says 1 h"),
    ((b"session:2", "hash", 9000.0), "expires-late", "expires in up to"),
    ((b"cart:8", "hash", 999999.0), "expires-late", "in up to 11.6 d; the inventory says at most 1 d"),
])
def test_key_that_is_not_as_described(key, kind, words):
    (found,) = compare(DESCRIBED, live_of(DESCRIBED, *KEYS, key), CODE)
    assert (found.kind.label, found.keys, found.examples) == (kind, 1, (key[0].decode(),))
    assert words in found.says
    assert str(found.sources[0]).startswith("keys.md:")


def test_key_that_will_vanish_although_it_should_stay():
    keys = (KEYS[0], KEYS[2], (b"config", "string", 10.0))
    (found,) = compare(DESCRIBED, live_of(DESCRIBED, *keys), CODE)
    assert found.kind.label == "unexpected-expiry"


def test_code_that_uses_what_nobody_described():
    code = inventory(*CODE.entries, entry("draft:{id}", "string", file="app.py", line=40))
    (found,) = compare(DESCRIBED, live_of(DESCRIBED, *KEYS), code)
    assert (found.kind.label, found.pattern, str(found.sources[0])) == ("only-in-code", "draft:{id}", "app.py:40")


@pytest.mark.parametrize(("used", "kind"), [
    (entry("session:{sid}", "zset", file="app.py", line=10), "code-type"),
    (entry("session:{sid}", "hash", 1800, file="app.py", line=10), "code-expiry"),
    (entry("session:{sid}", "hash", 0, file="app.py", line=10), "code-expiry"),
    (entry("cart:{sid}", "hash", 2 * 86400, file="app.py", line=10), "code-expiry"),
])
def test_code_that_does_otherwise(used, kind):
    others = tuple(each for each in CODE.entries if each.pattern[:4] != used.pattern[:4])
    (found,) = compare(DESCRIBED, live_of(DESCRIBED, *KEYS), inventory(*others, used))
    assert found.kind.label == kind
    assert str(found.sources[0]) == "app.py:10"


@pytest.mark.parametrize("used", [
    entry("session:{sid}", "hash", 3610, file="app.py"), entry("cart:{sid}", "hash", 60, file="app.py"),
    entry("session:{sid}", "hash", Expiry(Rule.SOME), file="app.py"),
    entry("session:{sid}", "zset", sure=False, file="app.py"),
    entry("session:{sid}", file="app.py"),
])
def test_what_the_code_leaves_open_is_no_disagreement(used):
    others = tuple(each for each in CODE.entries if each.pattern[:4] != used.pattern[:4])
    assert compare(DESCRIBED, live_of(DESCRIBED, *KEYS), inventory(*others, used)) == ()


def test_entry_that_is_nowhere():
    described = inventory(*DESCRIBED.entries, entry("old:{id}", "list", line=9))
    live = live_of(described, *KEYS)
    assert told(compare(described, live, CODE)) == {("unused", "old:{id}")}
    assert compare(described, live) == ()  # keys come and go
    (in_code,) = compare(described, None, CODE)
    assert in_code.kind.label == "not-in-code"


def test_walk_that_did_not_see_everything_proves_nothing_absent():
    assert compare(DESCRIBED, live_of(DESCRIBED, KEYS[0], whole=False)) == ()


def test_channels_are_looked_for_in_code_only():
    described = inventory(*DESCRIBED.entries, entry("updates:{id}", kind="channel"))
    assert compare(described, live_of(described, *KEYS)) == ()
    assert told(compare(described, live_of(described, *KEYS), CODE)) == {("not-in-code", "updates:{id}")}


def test_personal_data_that_is_not_marked():
    described = inventory(*DESCRIBED.entries, entry("code:{email}", "string", 300, personal=False),
                          entry("seen:{ip}", "string", 300, personal=True))
    keys = *KEYS, (b"code:a@example.com", "string", 60.0), (b"seen:203.0.113.7", "string", 60.0)
    (found,) = compare(described, live_of(described, *keys))
    assert (found.kind.label, found.pattern, found.severity) == ("personal-data", "code:{email}", Severity.WARNING)
    assert "says there is no personal data" in found.says


def test_inventory_that_never_speaks_of_personal_data_gets_a_note():
    described = inventory(entry("login:{name}", "string", 300))
    live = live_of(described, (b"login:a@example.com", "string", 60.0))
    (found,) = compare(described, live)
    assert (found.kind.label, found.severity) == ("personal-data", Severity.NOTE)


def test_patterns_that_could_own_the_same_key():
    described = inventory(entry("a:{x}:c", "string", line=1), entry("a:b:{y}", "string", line=2))
    (found,) = compare(described, live_of(described, (b"a:1:c", "string", None), (b"a:b:2", "string", None)))
    assert found.kind.label == "ambiguous"
    assert [str(source) for source in found.sources] == ["keys.md:1", "keys.md:2"]


def test_prefix_of_a_library_is_never_judged():
    described = inventory(*DESCRIBED.entries, entry("asynq:{rest}", kind="opaque"))
    keys = *KEYS, (b"asynq:queue:x", "list", None), (b"asynq:y", "zset", 5.0)
    assert compare(described, live_of(described, *keys), CODE) == ()



@pytest.mark.parametrize(("used", "differs"), [(0, False), (600, False), (60, False), (3600, True)])
def test_key_that_stays_until_it_is_ended_may_get_that_expiry_in_the_code(used, differs):
    described = inventory(entry("lock:{job}", "string", Expiry(Rule.NONE, 600.0)))
    code = inventory(entry("lock:{name}", "string", used, file="app.py"))
    assert (told(compare(described, code=code)) == {("code-expiry", "lock:{job}")}) is differs


def test_channel_with_the_name_of_a_key_is_not_judged_by_the_keys():
    described = inventory(entry("orders", "list", 0, line=2), entry("orders", kind="channel", line=3))
    live = live_of(described, (b"orders", "string", 60.0))
    findings = [found for found in compare(described, live) if found.severity is not Severity.NOTE]
    assert [(found.kind.label, found.sources[0].line) for found in findings] == [
        ("wrong-type", 2), ("unexpected-expiry", 2)]


def test_channel_does_not_stand_for_a_key_that_is_nowhere():
    described = inventory(entry("orders:{id}", kind="channel"))
    live = live_of(described, strays=[stray("orders:{id}", 3, "string", "orders:7")])
    assert told(compare(described, live)) == {("undocumented", "orders:{id}")}


def test_expiry_that_is_too_long_for_a_key_that_stays_until_it_is_ended_says_the_rule():
    described = inventory(entry("lock:{job}", "string", Expiry(Rule.NONE, 600.0)))
    (found,) = compare(described, live_of(described, (b"lock:a", "string", 4000.0)))
    assert found.kind.label == "unexpected-expiry" and "10 min" in found.says


def test_key_with_an_empty_name_is_told_as_such():
    (found,) = compare(DESCRIBED, live_of(DESCRIBED, *KEYS, strays=[stray("", 1)]), CODE)
    assert (found.kind.label, found.says) == ("undocumented", "the name of a key on the server is empty")
