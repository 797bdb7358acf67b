"""Which address a request is counted under."""

import pytest

from keystead.edge.addresses import LOOPBACK, UNKNOWN, Networks, client_address
from keystead.errors import Invalid

PROXIES = Networks.parse("10.0.0.0/8, fd00::/8", setting="http.trusted_proxies")


def bucket(peer, *forwarded):
    return client_address(peer, forwarded, PROXIES).bucket


def test_peer_counts_when_it_is_no_trusted_proxy():
    assert bucket("203.0.113.7", "198.51.100.1") == "203.0.113.7"


def test_header_is_believed_from_a_trusted_proxy():
    assert bucket("10.0.0.1", "198.51.100.1") == "198.51.100.1"


def test_what_the_client_wrote_left_of_the_last_foreign_hop_is_not_believed():
    assert bucket("10.0.0.1", "1.1.1.1, 198.51.100.1, 10.9.9.9") == "198.51.100.1"
    assert bucket("10.0.0.1", "1.1.1.1", "198.51.100.1") == "198.51.100.1"


def test_left_most_hop_counts_when_all_are_trusted():
    assert bucket("10.0.0.1", "10.1.1.1, 10.2.2.2") == "10.1.1.1"
    assert bucket("10.0.0.1") == "10.0.0.1"


@pytest.mark.parametrize("hop", ["", "not an address", "1.2.3", "203.0.113.7, garbage"])
def test_unreadable_hop_goes_into_the_unknown_bucket(hop):
    assert bucket("10.0.0.1", hop) == UNKNOWN


def test_socket_without_an_address_goes_into_the_unknown_bucket():
    assert bucket(None) == UNKNOWN
    assert bucket("") == UNKNOWN


@pytest.mark.parametrize(("written", "counted"), [
    ("::ffff:203.0.113.7", "203.0.113.7"),
    ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
    ("2001:0DB8:0001:0002:0:0:0:9", "2001:db8:1:2::"),
    ("[2001:db8:1:2::9]:4711", "2001:db8:1:2::"),
    ("203.0.113.7:4711", "203.0.113.7"),
    ("fe80::1%eth0", "fe80::"),
])
def test_one_household_has_one_spelling(written, counted):
    assert bucket("10.0.0.1", written) == counted


def test_width_of_an_ipv6_bucket_can_be_chosen():
    assert client_address("2001:db8:1:2::9", (), PROXIES, ipv6_prefix_bits=48).bucket == "2001:db8:1::"


def test_membership_is_asked_of_the_whole_address_not_of_its_bucket():
    assert client_address("::1", (), Networks()).within(LOOPBACK)
    assert not client_address("::2", (), Networks()).within(LOOPBACK)
    assert client_address("127.8.8.8", (), Networks()).within(LOOPBACK)
    assert not client_address(None, (), Networks()).within(LOOPBACK)


def test_bad_network_is_refused_with_the_name_of_the_setting():
    with pytest.raises(Invalid, match=r"http\.trusted_proxies: '10\.0\.0\.0/40' is not"):
        Networks.parse("10.0.0.0/40", setting="http.trusted_proxies")
