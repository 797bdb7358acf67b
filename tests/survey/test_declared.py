from keystead.inventory import from_registry
from keystead.keys import NO_TTL, AuditReport, FindingGroup, IntegerKey, Keyspace, Observed, Registry
from keystead.survey.declared import Watching, deeper

SHOP = Keyspace("shop")
VISITS = IntegerKey(SHOP, "visits:{unix_date}", ttl=NO_TTL, purpose="visits of a day")


def test_keys_that_the_auditor_saw_are_counted():
    watching = Watching(from_registry(Registry([SHOP])), "valkey://localhost")
    watching.saw(Observed(b"visits:20000", "string", None, 60))
    watching.saw(Observed(b"visits:20001", "string", 5.0, 60))
    for number in range(10):
        watching.saw(Observed(b"stray:%d" % number, "list", None, 10))
    live = watching.live(whole=True)
    assert (live.tally.keys, live.tally.strays.keys) == (12, 10)
    assert live.tally.entries["visits:{unix_date}"].unexpected_expiry.keys == 1
    assert [stray.observed.keys for stray in live.strays.entries] == [10]


def test_only_what_lies_in_values_is_taken_from_the_auditor():
    groups = tuple(FindingGroup(kind, "p:{x}", "shop", 2, ({"key": "p:1", "says": "not JSON"},))
                   for kind in ("wrong type", "ttl broken", "undecodable", "broken pair"))
    found = deeper(AuditReport(False, 2, 0, 0, 0, (), groups, ()))
    assert [(each.kind.label, each.keys, each.examples) for each in found] == [
        ("unreadable", 2, ("p:1",)), ("broken-pair", 2, ("p:1",))]
    assert "not JSON" in found[0].says
