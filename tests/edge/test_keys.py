"""The declared keys of the edge."""

import random

import pytest

from keystead.edge.keys import API_IP, BUCKET, EDGE, TICKETS_ENDED
from keystead.keys import Layout, Registry

DOCUMENTED = {
    "api_ip:{ip}", "login_ip:{ip}", "register_ip:{ip}", "reset_password_ip:{ip}", "violations:{ip}", "blocked_ip:{ip}",
    "tickets:used:{sha256}", "tickets:ended",
    "link_ip:{ip}", "wrong_code_ip:{ip}", "wrong_key_ip:{ip}", "idempotency:{sha256}",
}


def test_patterns_are_the_documented_ones():
    assert {declaration.pattern for declaration in EDGE} == DOCUMENTED


@pytest.mark.parametrize("layout", [Layout.PLAIN, Layout.TAGGED])
def test_every_key_resolves_back(layout):
    registry = Registry([EDGE], layout)
    for declaration, arguments, raw_key in registry.sample_keys(random.Random(3), each=50):
        match = registry.resolve(raw_key)
        assert match is not None
        assert (match.declaration, match.arguments) == (declaration, arguments)


@pytest.mark.parametrize("bucket", ["203.0.113.7", "2001:db8:0:1::", "::", "unknown"])
def test_every_bucket_is_a_key(bucket):
    match = Registry([EDGE]).resolve(API_IP.at(bucket).name(Layout.PLAIN))
    assert match is not None and match.arguments == {"ip": bucket}


@pytest.mark.parametrize("text", ["", "unknow", "300.1.1.1", "somebody"])
def test_other_text_is_no_bucket(text):
    assert not BUCKET.accepts(text)


def test_keys_of_one_address_share_a_slot_and_addresses_spread():
    def tag(declaration, ip):
        return declaration.at(ip).name(Layout.TAGGED).partition(b"}")[0]

    by_address = [declaration for declaration in EDGE if "ip" in declaration.template.names]
    assert len({tag(declaration, "203.0.113.7") for declaration in by_address}) == 1
    assert tag(API_IP, "203.0.113.7") != tag(API_IP, "203.0.113.8")


def test_every_key_expires_and_names_its_person():
    for declaration in EDGE:
        assert declaration.ttl.describe() != "none"
        # Of tickets that ended there are identifiers and hashes alone.
        assert declaration.personal or "sha256" in declaration.pattern or declaration is TICKETS_ENDED
