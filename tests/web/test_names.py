"""Which names are ours, and which pages."""

import pytest

from keystead.web.names import HostNames, same_origin


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "app.localhost", "127.0.0.1:8400", "[::1]:8400",
                                  "10.1.2.3", "keys.example", "Keys.Example.:443"])
def test_loopback_digits_and_configured_names_are_served(host):
    assert HostNames(["keys.example", " ", ""]).serves(host)


@pytest.mark.parametrize("host", ["", "evil.example", "keys.example.evil", "xlocalhost", "1.2.3", "[::1", "a/b",
                                  "u@localhost", "localhost:port"])
def test_other_names_are_not(host):
    assert not HostNames(["keys.example"]).serves(host)


@pytest.mark.parametrize(("origin", "host"), [
    ("http://localhost:8400", "localhost:8400"), ("http://keys.example", "keys.example"),
    ("https://keys.example", "keys.example:443"), ("http://[::1]:8400", "[::1]:8400"),
    ("http://KEYS.example", "keys.EXAMPLE:80"),
])
def test_same_origin(origin, host):
    assert same_origin(origin, host)


@pytest.mark.parametrize(("origin", "host"), [
    ("", "localhost"), ("null", "localhost"), ("http://localhost:1", "localhost:2"), ("http://evil", "localhost"),
    ("https://keys.example", "keys.example:80"), ("file://", "localhost"), ("http://localhost:x", "localhost"),
])
def test_other_origin(origin, host):
    assert not same_origin(origin, host)
