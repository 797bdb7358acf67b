import json

import pytest

from keystead.cli.auditing import FailOn, _exit_code, _severity
from keystead.cli.auditing_shown import shown
from keystead.inventory import Inventory
from keystead.survey import Audit

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
    assert "Clean: 5 patterns in declarations, 1 key (" in told.out


def test_drift_is_reported_and_leaves_with_one(drifted, shop):
    told = audit(drifted, shop)
    assert told.code == 1
    for part in ("session:{session_id}", "wrong-type", "never-expires", "unreadable", "broken-pair", "never expires",
                 "[red]markup[/]", r"\x1b[2Jescape", "Drift: ", "12 keys (", "7 not in the inventory"):
        assert part in told.out, part
    assert "\x1b" not in told.out


def test_report_as_json_is_complete(drifted, shop):
    told = audit(drifted, shop, "--format", "json")
    assert told.code == 1
    report = json.loads(told.out)
    assert (report["clean"], report["keys"], report["keys_not_in_inventory"]) == (False, 12, 7)
    found = {(each["kind"], each["pattern"], each["keys"]) for each in report["findings"]
             if each["severity"] == "error"}
    assert found >= {
        ("never-expires", "price:{sku}", 1), ("unreadable", "price:{sku}", 1), ("wrong-type", "visits:{unix_date}", 1),
        ("broken-pair", "pending", 1), ("undocumented", "[red]markup[/]", 1),
    }
    assert any(each["kind"] == "undocumented" and each["keys"] == 5 and each["pattern"].startswith("session:{")
               for each in report["findings"])
    price = next(use for use in report["patterns"] if use["pattern"] == "price:{sku}")
    assert price["keys"] == 3
    assert price["memory_bytes"] > 100


def test_audit_can_be_narrowed(drifted, shop):
    assert audit(drifted, shop, "--match", "price:tea").code == 0
    assert json.loads(audit(drifted, shop, "--no-values", "--format", "json", "--match", "price:oil").out)["clean"]


def test_speed_must_be_a_positive_number(server, shop):
    assert "--keys-per-second" in audit(server, shop, "--keys-per-second", "0").refused()


def test_long_lists_of_findings_are_cut_in_the_table_only(server, shop):
    for number in range(90):
        kind = ("SET", "RPUSH", "SADD")[number % 3]
        first, second = chr(97 + number % 26) * 5, chr(97 + number // 26) * 4
        server.call(kind, f"{first}-{second}-list-of-things-{number % 7}:x{'y' * (number % 5)}", "x")
    told, report = audit(server, shop), json.loads(audit(server, shop, "--format", "json").out)
    strays = [each for each in report["findings"] if each["kind"] == "undocumented"]
    assert sum(each["keys"] for each in strays) == 90
    assert ("more findings; --format json and --html have them all" in told.out) == (len(strays) > 60)


DOCUMENT = """
# Keys

| Key | Type | TTL | Contains PII |
|---|---|---|---|
| `session:<id>` | hash | 30 minutes | no |
| `config` | string | none | no |
"""
CODE = """
import redis

client = redis.Redis()


def keep(session_id, fields):
    client.hset(f"session:{session_id}", mapping=fields)
    client.expire(f"session:{session_id}", 3600)


def configure(value):
    client.set("config", value)
"""


@pytest.fixture
def documented(tmp_path, server):
    (tmp_path / "redis-keys.md").write_text(DOCUMENT)
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "sessions.py").write_text(CODE)
    for number in range(20):
        server.call("HSET", f"session:{number}", "user", number)
        server.call("EXPIRE", f"session:{number}", 1200)
    server.call("SET", "config", "x")
    return tmp_path


def test_hand_kept_document_is_held_against_a_server(server, documented):
    told = keystead("keys", "audit", server.url, "--inventory", "redis-keys.md", cwd=documented)
    assert told.code == 0, told.out + told.err
    assert "Clean: 2 patterns in redis-keys.md, 21 keys" in told.out
    server.call("LPUSH", "forgotten:7", "x")
    server.call("PERSIST", "session:3")
    told = keystead("keys", "audit", server.url, "--inventory", "redis-keys.md", cwd=documented)
    assert told.code == 1
    for part in ("undocumented", "forgotten:", "never-expires", "1 of 20 keys never expires; the inventory says 30 min",
                 "redis-keys.md:6", "Drift: 2 errors"):
        assert part in told.out, part


def test_code_is_compared_without_a_server(documented):
    told = keystead("keys", "audit", "--inventory", "redis-keys.md", "--code", "app", cwd=documented)
    assert told.code == 1
    for part in ("code-expiry", "session:{id}", "gets the expiry 1 h in the code; the inventory says 30 min",
                 "sessions.py:"):
        assert part in told.out, part


def test_what_fails_can_be_chosen(documented):
    for fail_on, code in (("error", 0), ("warning", 1), ("never", 0)):
        told = keystead("keys", "audit", "--inventory", "redis-keys.md", "--code", "app", "--fail-on", fail_on,
                        cwd=documented)
        assert told.code == code, fail_on


def test_baseline_lets_only_new_findings_fail(server, documented):
    server.call("SET", "forgotten:1", "x")
    arguments = "keys", "audit", server.url, "--inventory", "redis-keys.md"
    keystead(*arguments, "--write-baseline", "known.json", cwd=documented)
    told = keystead(*arguments, "--baseline", "known.json", cwd=documented)
    assert (told.code, "1 known from the baseline" in told.out) == (0, True)
    server.call("RPUSH", "config2", "x")
    assert keystead(*arguments, "--baseline", "known.json", cwd=documented).code == 1


def test_reports_are_written_beside_the_table(server, documented):
    server.call("SET", "forgotten:1", "x")
    told = keystead("keys", "audit", server.url, "--inventory", "redis-keys.md", "--html", "r.html",
                    "--sarif", "r.sarif", "--junit", "r.xml", "--summary", "r.md", cwd=documented)
    assert told.code == 1
    assert "<svg class=map" in (documented / "r.html").read_text()
    assert json.loads((documented / "r.sarif").read_text())["runs"][0]["results"][0]["ruleId"] == "undocumented"
    assert 'failures="1"' in (documented / "r.xml").read_text()
    assert "## Keys: 1 error" in (documented / "r.md").read_text()


def test_report_that_cannot_be_written_is_one_line(server, documented):
    told = keystead("keys", "audit", server.url, "--inventory", "redis-keys.md", "--html", "none/r.html",
                    cwd=documented)
    assert told.code == 2
    assert "none/r.html" in told.err and "Traceback" not in told.err


@pytest.mark.parametrize("option", ["--html", "--sarif", "--junit", "--summary", "--write-baseline"])
def test_no_file_that_cannot_be_written_ends_in_a_traceback(documented, option):
    told = keystead("keys", "audit", "--inventory", "redis-keys.md", "--code", "app", option, "none/file",
                    cwd=documented)
    assert told.code == 2
    assert told.err.count("\n") == 1 and "none/file" in told.err


@pytest.mark.parametrize(("fail_on", "code"), [("error", 2), ("warning", 2), ("never", 0)])
def test_look_that_ended_early_is_no_success(fail_on, code):
    outcome = Audit(Inventory("keys.md", ()), (), unfinished=True)
    assert _exit_code(outcome, _severity(FailOn(fail_on))) == code
    assert "Unfinished: " in "".join(map(str, shown(outcome))).replace("[yellow]", "").replace("[/yellow]", "")


def test_notes_on_the_code_are_counted(documented):
    (documented / "app" / "other.py").write_text("import redis\n\ndef get(key):\n    return redis.Redis().get(key)\n")
    told = keystead("keys", "audit", "--inventory", "redis-keys.md", "--code", "app", cwd=documented)
    assert "code in app (1 note, see keystead keys code)" in told.out


@pytest.mark.cluster
def test_cluster_is_audited_under_the_tagged_layout(valkey_cluster, shop):
    valkey_cluster.heal()
    valkey_cluster.flush()
    told = keystead("keys", "audit", valkey_cluster.url, "--registry", "shop.keys", "--format", "json", cwd=shop)
    assert (told.code, json.loads(told.out)["keys"]) == (0, 0)


def test_whoever_names_no_inventory_is_told_what_was_compared(server, tmp_path):
    told = keystead("keys", "audit", server.url, cwd=tmp_path)
    assert "Keystead's own declarations; --inventory FILE names yours" in told.err
    told = keystead("--set", "program.modules=json", "keys", "audit", server.url, cwd=tmp_path)
    assert "Keystead's own declarations and those of json; --inventory" in told.err
