import json

import pytest

from .command import keystead


def audit(server, shop, *more):
    return keystead("keys", "audit", server.url, "--registry", "shop.keys", *more, cwd=shop)


@pytest.fixture
def drifted(server):
    server.call("SET", "price:tea", '{"cents": 250}', "EX", 300)
    server.call("SET", "price:salt", '{"cents": 30}')
    server.call("SET", "price:oil", "{oops", "EX", 60)
    server.call("RPUSH", "visits:20000", "x")
    server.call("ZADD", "pending", 1, "7")
    for number in range(5):
        server.call("SET", f"session:{number}", "x")
    server.call("SET", "[red]markup[/]", "x")
    server.call("SET", "\x1b[2Jescape", "x")
    return server


def test_clean_server_leaves_with_zero(server, shop):
    server.call("SET", "visits:20000", 3)
    told = audit(server, shop)
    assert (told.code, told.err) == (0, "")
    assert "Clean: 1 key (" in told.out


def test_drift_is_reported_and_leaves_with_one(drifted, shop):
    told = audit(drifted, shop)
    assert told.code == 1
    for part in ("session:{int}", "wrong type", "ttl broken", "undecodable", "broken pair", "never expires",
                 "[red]markup[/]", r"\x1b[2Jescape", "Drift: 12 keys (", "7 not declared, 4 findings"):
        assert part in told.out, part
    assert "\x1b" not in told.out


def test_report_as_json_is_complete(drifted, shop):
    told = audit(drifted, shop, "--format", "json")
    assert told.code == 1
    report = json.loads(told.out)
    assert (report["clean"], report["keys"], report["undeclared_keys"]) == (False, 12, 7)
    assert {(group["kind"], group["pattern"], group["keys"]) for group in report["findings"]} == {
        ("ttl broken", "price:{sku}", 1), ("undecodable", "price:{sku}", 1), ("wrong type", "visits:{unix_date}", 1),
        ("broken pair", "pending", 1),
    }
    strays = {each["pattern"]: each["keys"] for each in report["undeclared"]}
    assert len(strays) == 3
    assert strays.items() >= {"session:{int}": 5, "[red]markup[/]": 1}.items()
    price = next(use for use in report["patterns"] if use["pattern"] == "price:{sku}")
    assert price["keys"] == 3
    assert price["memory_bytes"] > 100


def test_audit_can_be_narrowed(drifted, shop):
    assert audit(drifted, shop, "--match", "price:tea").code == 0
    assert json.loads(audit(drifted, shop, "--no-values", "--format", "json", "--match", "price:oil").out)["clean"]


def test_speed_must_be_a_positive_number(server, shop):
    assert "--keys-per-second" in audit(server, shop, "--keys-per-second", "0").refused()


def test_long_lists_of_strays_are_cut_in_the_table_only(server, shop):
    for number in range(90):
        server.call("SET", f"{chr(97 + number % 26)}{chr(97 + number // 26)}:x", "x")
    told = audit(server, shop)
    assert "more kinds; --format json has them all" in told.out
    assert len(json.loads(audit(server, shop, "--format", "json").out)["undeclared"]) > 40


@pytest.mark.cluster
def test_cluster_is_audited_under_the_tagged_layout(valkey_cluster, shop):
    valkey_cluster.heal()
    valkey_cluster.flush()
    told = keystead("keys", "audit", valkey_cluster.url, "--registry", "shop.keys", "--format", "json", cwd=shop)
    assert (told.code, json.loads(told.out)["keys"]) == (0, 0)
