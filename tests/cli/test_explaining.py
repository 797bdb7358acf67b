import json

from .command import keystead


def explain(server, shop, key, *more):
    return keystead("keys", "explain", key, "--url", server.url, "--registry", "shop.keys", *more, cwd=shop)


def test_good_key_is_told_with_its_value(server, shop):
    server.call("SET", "price:tea", '{"cents": 250}', "EX", 300)
    told = explain(server, shop, "price:tea")
    assert told.code == 0
    for part in ("price:{sku}", "what an article costs", "sku = tea", "4 min 59 s left", "shop.desk", '"cents": 250'):
        assert part in told.out or part == "4 min 59 s left"
    assert "declared: at most 10 min" in told.out
    document = json.loads(explain(server, shop, "price:tea", "--format", "json").out)
    assert document["value"] == {"cents": 250}
    assert document["arguments"] == {"sku": "tea"}
    assert document["ttl_verdict"] == "as declared"


def test_absent_key_is_told_from_its_declaration(server, shop):
    told = explain(server, shop, "seen:ann")
    assert told.code == 0
    assert "no such key" in told.out and "greeted a moment ago" in told.out


def test_key_that_breaks_its_declaration_leaves_with_one(server, shop):
    server.call("SET", "price:tea", '{"cents": 250}')
    told = explain(server, shop, "price:tea")
    assert told.code == 1
    assert "never expires" in told.out


def test_undeclared_key_leaves_with_one(server, shop):
    server.call("SET", "stray", "x")
    told = explain(server, shop, "stray")
    assert told.code == 1
    assert "not declared" in told.out


def test_value_that_does_not_decode_is_told_and_refused(server, shop):
    server.call("SET", "price:tea", "cheap", "EX", 60)
    told = explain(server, shop, "price:tea", "--format", "json")
    assert told.code == 2
    assert json.loads(told.out)["value"] == "cheap"
    assert told.err.count("\n") == 1
    assert "price:tea does not decode as price:{sku}" in told.err and "byte 0" in told.err


def test_name_with_placeholders_is_taken_for_a_pattern(server, shop):
    line = explain(server, shop, "price:{sku}").refused()
    assert "looks like a pattern" in line
    assert "keystead keys show 'price:{sku}'" in line


def test_pattern_is_recognised_without_a_server(shop):
    assert "looks like a pattern" in keystead("keys", "explain", "user:{id}", cwd=shop).refused()
    assert "no server runs" in keystead("keys", "explain", "user:7", cwd=shop).refused()


def test_declarations_alone_can_explain(shop):
    told = keystead("keys", "explain", "seen:ann", "--offline", "--registry", "shop.keys", cwd=shop)
    assert told.code == 0
    assert "user_sub = ann" in told.out
    assert "on the server" not in told.out
    assert keystead("keys", "explain", "stray", "--offline", "--registry", "shop.keys", cwd=shop).code == 1


def test_key_that_really_holds_braces_is_explained(server, shop):
    server.call("SET", "odd:{x}", "1")
    assert explain(server, shop, "odd:{x}").code == 1


def test_key_that_is_not_text_is_spelled_and_read_back(server, shop):
    server.call("SET", b"odd:\xff\n", "x")
    spelled = json.loads(explain(server, shop, r"odd:\xff\x0a", "--format", "json").out)
    assert spelled["key"] == r"odd:\xff\x0a"
    assert spelled["exists"]


def test_backslash_that_is_part_of_the_key_may_be_typed_as_it_is(server, shop):
    server.call("SET", rb"dir\name", "x")
    assert json.loads(explain(server, shop, r"dir\name", "--format", "json").out)["exists"]
    assert json.loads(explain(server, shop, r"dir\\name", "--format", "json").out)["exists"]


def test_markup_in_a_value_is_shown_as_it_is(server, shop):
    server.call("SET", "stray", "[bold]x[/bold] [/]")
    assert "[bold]x[/bold] [/]" in explain(server, shop, "stray").out


def test_key_that_nobody_wrote_down_is_compared_with_its_neighbours(server):
    for number in range(20):
        server.call("HSET", f"basket:{number}", "sku", "a-1")
    told = keystead("keys", "explain", "basket:7", "--url", server.tcp_url)
    assert told.code == 1
    assert "basket:{basket_id}" in told.out and "20 such keys" in told.out and "sku" in told.out
    as_json = json.loads(keystead("keys", "explain", "basket:7", "--url", server.tcp_url, "--format", "json").out)
    assert as_json["looks_like"]["pattern"] == "basket:{basket_id}" and as_json["pattern"] is None
