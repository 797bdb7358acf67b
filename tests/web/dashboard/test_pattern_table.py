"""The declared patterns as a table."""

from keystead.edge.keys import API_IP, BLOCKED_IP, EDGE, LOGIN_IP
from keystead.keys import Channel, Keyspace
from keystead.operations import PatternCount, PatternCounts
from keystead.web.dashboard.pattern_table import lives, pattern_address, pattern_table

OTHER = Keyspace("another")
EVENTS = Channel(OTHER, "ps:events", str, purpose="<b>what happened</b>")


def counts(undeclared=0):
    return PatternCounts(
        keys=7 + undeclared, memory_bytes=900, undeclared_keys=undeclared, undeclared_memory_bytes=64 * undeclared,
        by_declaration={API_IP: PatternCount(7, 900)},
    )


def test_rooms_come_in_order_each_with_its_patterns():
    table = pattern_table([*EDGE, EVENTS], None, "")
    assert table.index(">another<") < table.index("ps:events") < table.index(">edge<") < table.index("api_ip:{ip}")


def test_numbers_are_those_of_the_last_count():
    table = pattern_table([API_IP, LOGIN_IP], counts(), "")
    assert '<td class="num">7</td><td class="num">900 B</td>' in table
    assert table.count('<td class="num zero">0</td>') == 1


def test_estimated_memory_says_so():
    found = PatternCounts(1, 900, 0, 0, {API_IP: PatternCount(500, 90_000, estimated=True)})
    assert "≈ 90.0 kB" in pattern_table([API_IP], found, "")


def test_before_the_first_count_there_are_no_numbers():
    assert '<td class="num">' not in pattern_table([API_IP], None, "")


def test_what_nobody_declares_is_told_in_every_order():
    for order in ("room", "memory", "keys", "name"):
        assert "Not declared" in pattern_table([API_IP], counts(undeclared=2), "", order=order)


def test_largest_come_first_whatever_their_room():
    found = PatternCounts(
        keys=3, memory_bytes=900, undeclared_keys=0, undeclared_memory_bytes=0,
        by_declaration={LOGIN_IP: PatternCount(1, 900), API_IP: PatternCount(2, 100)},
    )
    table = pattern_table([*EDGE, EVENTS], found, "", order="memory")
    assert table.index("login_ip") < table.index("api_ip") < table.index("blocked_ip") < table.index("ps:events")
    assert "ks-room" not in table


def test_order_by_keys_and_by_name():
    found = PatternCounts(
        keys=3, memory_bytes=900, undeclared_keys=0, undeclared_memory_bytes=0,
        by_declaration={LOGIN_IP: PatternCount(1, 900), API_IP: PatternCount(2, 100)},
    )
    by_keys = pattern_table([LOGIN_IP, API_IP, BLOCKED_IP], found, "", order="keys")
    assert by_keys.index("api_ip") < by_keys.index("login_ip") < by_keys.index("blocked_ip")
    by_name = pattern_table([LOGIN_IP, API_IP, BLOCKED_IP], found, "", order="name")
    assert by_name.index("api_ip") < by_name.index("blocked_ip") < by_name.index("login_ip")


def test_only_personal_ones_or_only_those_with_keys():
    personal = pattern_table([API_IP, EVENTS], counts(undeclared=3), "", personal_only=True)
    assert "api_ip" in personal and "ps:events" not in personal and "Not declared" not in personal
    used = pattern_table([API_IP, LOGIN_IP], counts(), "", used_only=True)
    assert "api_ip" in used and "login_ip" not in used
    assert "There is no pattern with personal data" in pattern_table([EVENTS], None, "", personal_only=True)


def test_stray_keys_are_told_but_not_in_a_filtered_list():
    assert "Not declared" in pattern_table([API_IP], counts(undeclared=3), "")
    assert "Not declared" not in pattern_table([API_IP], counts(), "")
    assert "Not declared" not in pattern_table([API_IP], counts(undeclared=3), "api")


def test_filter_wants_all_words_anywhere():
    table = pattern_table(EDGE, None, "integer LOG-INS")
    assert "login_ip" in table and "api_ip" not in table
    assert "No declared pattern matches “&lt;x&gt;”" in pattern_table(EDGE, None, "<x>")


def test_what_a_declaration_says_is_escaped():
    assert "<b>" not in pattern_table([EVENTS], None, "")


def test_address_survives_braces_and_colons():
    assert pattern_address("api_ip:{ip}") == "/pattern?name=api_ip%3A%7Bip%7D"


def test_expiry_reads_as_a_life():
    assert lives(BLOCKED_IP) == "at most 90 d"
    assert lives(EVENTS) == ""
