from pathlib import Path

import pytest

from keystead.engine.address import Address, Kind, Tls, parse
from keystead.errors import Invalid


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("embedded://.keystead", Address(Kind.EMBEDDED, path=Path(".keystead"))),
        ("embedded:///var/lib/keystead", Address(Kind.EMBEDDED, path=Path("/var/lib/keystead"))),
        ("embedded://a%20dir/b?db=3", Address(Kind.EMBEDDED, path=Path("a dir/b"), db=3)),
        ("valkey://localhost", Address(Kind.TCP, hosts=(("localhost", 6379),))),
        ("redis://cache.example:7000/2", Address(Kind.TCP, hosts=(("cache.example", 7000),), db=2)),
        ("REDIS://h?db=4", Address(Kind.TCP, hosts=(("h", 6379),), db=4)),
        ("valkey://[::1]:7000", Address(Kind.TCP, hosts=(("::1", 7000),))),
        ("valkey://[::1]", Address(Kind.TCP, hosts=(("::1", 6379),))),
        (
            "valkey://al%40ice:p%3Aw%2F%3F@h:1/0?client_name=worker",
            Address(Kind.TCP, hosts=(("h", 1),), username="al@ice", password="p:w/?", client_name="worker"),
        ),
        ("redis://:pw@h", Address(Kind.TCP, hosts=(("h", 6379),), password="pw")),
        ("redis://:p:w@h", Address(Kind.TCP, hosts=(("h", 6379),), password="p:w")),
        ("rediss://h", Address(Kind.TCP, hosts=(("h", 6379),), tls=Tls())),
        ("valkeys://h?verify=no", Address(Kind.TCP, hosts=(("h", 6379),), tls=Tls(verify=False))),
        ("unix:///run/v.sock?db=1", Address(Kind.UNIX, path=Path("/run/v.sock"), db=1)),
        ("unix://u:pw@/run/v%20x.sock", Address(Kind.UNIX, path=Path("/run/v x.sock"), username="u", password="pw")),
        (
            "sentinel://u:pw@a:26379,b:26380/mymaster?db=2&sentinel_password=sp",
            Address(Kind.SENTINEL, hosts=(("a", 26379), ("b", 26380)), username="u", password="pw", db=2,
                    primary="mymaster", sentinel_password="sp"),
        ),
        ("sentinel://a/m", Address(Kind.SENTINEL, hosts=(("a", 26379),), primary="m")),
        ("cluster://a:1,b:2", Address(Kind.CLUSTER, hosts=(("a", 1), ("b", 2)))),
        ("cluster://a,[::1]:2?tls=yes", Address(Kind.CLUSTER, hosts=(("a", 6379), ("::1", 2)), tls=Tls())),
    ],
)
def test_url_gives_address(url: str, address: Address) -> None:
    assert parse(url) == address


def test_tls_files_are_kept(tmp_path: Path) -> None:
    for name in ("ca.pem", "c.pem", "k.pem"):
        (tmp_path / name).touch()
    url = f"rediss://h?ca={tmp_path}/ca.pem&cert={tmp_path}/c.pem&key={tmp_path}/k.pem"
    assert parse(url).tls == Tls(tmp_path / "ca.pem", tmp_path / "c.pem", tmp_path / "k.pem")


@pytest.mark.parametrize(
    ("url", "problem", "mend"),
    [
        ("localhost:6379", "no scheme", "valkey://"),
        ("", "no scheme", "valkey://"),
        ("http://localhost", "no scheme http", "sentinel://"),
        ("postgres://u:hunter2@h", "no scheme postgres", "redis://"),
        ("u:hunter2@redis://h", "no such scheme", "redis://"),
        ("embedded://", "no directory", "embedded://.keystead"),
        ("valkey://", "no host", "valkey://localhost:6379"),
        ("valkey://:6379", "no host", "valkey://localhost:6379"),
        ("valkey://u:hunter2@", "no host", "valkey://localhost:6379"),
        ("valkey://h:port", "bad port", "1 to 65535"),
        ("valkey://h:0", "bad port", "1 to 65535"),
        ("valkey://h:65536", "bad port", "1 to 65535"),
        ("valkey://h:²", "bad port", "1 to 65535"),
        ("valkey://u:hunter2/x", "bad port", "%2F"),
        ("valkey://u:hunter2/x@h", "unescaped", "%2F"),
        ("valkey://u:hunter2@x@h", "unescaped", "%40"),
        ("valkey://u:hunter2?hunter2=1@h", "no such option", "client_name"),
        ("valkey://u:6379?hunter2=1@h", "no such option", "client_name"),
        ("valkey://h/zero", "bad database", "number"),
        ("valkey://h/-1", "bad database", "number"),
        ("valkey://h/1?db=2", "two different databases", "keep"),
        ("valkey://h?dbs=2", "no option dbs", "db, client_name"),
        ("valkey://h?ca=x", "no option ca", "db, client_name"),
        ("valkey://h?db=1&db=1", "twice", "keep one"),
        ("valkey://[::1", "broken IPv6", "[::1]:6379"),
        ("rediss://h?verify=maybe", "verify", "yes or no"),
        ("rediss://h?ca=/nowhere/ca.pem", "no file", "/nowhere/ca.pem"),
        ("unix://run/v.sock", "full path", "unix:///run/valkey.sock"),
        ("unix:///", "full path", "unix:///run/valkey.sock"),
        ("sentinel://a:1", "name of the primary", "sentinel://host:26379/mymaster"),
        ("sentinel:///m", "no host", "sentinel://localhost:26379"),
        ("cluster://a,", "no host", "cluster://localhost:6379"),
        ("cluster://a/2", "database 0 only", "without a path"),
        ("cluster://a?verify=no", "verify", "tls=yes"),
    ],
)
def test_bad_url_is_refused_in_one_line_without_its_password(url: str, problem: str, mend: str) -> None:
    with pytest.raises(Invalid) as refusal:
        parse(url)
    message = str(refusal.value)
    assert problem in message
    assert mend in message
    assert "\n" not in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("url", "display"),
    [
        ("embedded://.keystead", "embedded://.keystead"),
        ("redis://u:hunter2@h/1", "valkey://u:***@h:6379/1"),
        ("rediss://:hunter2@[::1]:7", "valkeys://:***@[::1]:7"),
        ("unix://:hunter2@/run/v.sock?db=1", "unix://:***@/run/v.sock?db=1"),
        ("sentinel://a,b:2/m?sentinel_password=hunter2&db=1", "sentinel://a:26379,b:2/m?db=1"),
        ("cluster://u:hunter2@a,b?tls=yes", "cluster://u:***@a:6379,b:6379?tls=yes"),
    ],
)
def test_display_and_repr_hide_secrets(url: str, display: str) -> None:
    address = parse(url)
    assert address.display == display
    assert "hunter2" not in repr(address)
