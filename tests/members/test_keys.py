"""The room's keys, as they are documented."""

from keystead.keys import Layout, Registry
from keystead.members import stats
from keystead.members.keys import MEMBERS

REGISTRY = Registry([MEMBERS])


def test_documented_keys_are_declared_under_their_names() -> None:
    assert stats.USERS.name == "users"
    for raw, pattern in {
        b"visitors:user_associations": "visitors:user_associations",
        b"visitors:user_associations:user_1:lock": "visitors:user_associations:{user_sub}:lock",
        b"visitors:utms": "visitors:utms",
        b"visitors:utms:v_abcde:lock": "visitors:utms:{visitor_uid}:lock",
        b"stats:users:count": "stats:users:count",
        b"stats:users:monthly:675:count": "stats:users:monthly:{unix_month}:count",
        b"stats:daily_new_users:20514": "stats:daily_new_users:{unix_date}",
        b"stats:retention:30day:true:20514": "stats:retention:{period}:{retained}:{unix_date}",
        b"stats:retention:0day:false:earliest": "stats:retention:{period}:{retained}:earliest",
        b"stats:visitors:daily:utm_source=a:20514:counts": "stats:visitors:daily:{utm}:{unix_date}:counts",
    }.items():
        found = REGISTRY.resolve(raw)
        assert found is not None and found.declaration.pattern == pattern, raw


def test_sets_of_people_are_marked_as_personal() -> None:
    sets = [declaration for declaration in REGISTRY if declaration.type == "set" and "utms" not in declaration.pattern
            and not declaration.pattern.endswith(":workers")]
    assert len(sets) >= 6 and all(declaration.personal for declaration in sets)
    by_sub = [declaration for declaration in REGISTRY if {"sub", "user_sub"} & set(declaration.template.names)]
    assert by_sub and all(declaration.personal for declaration in by_sub)


def test_all_keys_of_the_room_share_a_slot() -> None:
    assert {declaration.tag.of({}) for declaration in Registry([MEMBERS], Layout.TAGGED)} == {"members"}
