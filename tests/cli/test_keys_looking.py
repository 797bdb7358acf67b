"""What commands that look at a whole server share."""

from keystead.cli.keys_looking import counted, looking, plain, progress, stride, tell
from keystead.settings import Settings, ValkeySettings
from keystead.testing.server import LocalServer


async def test_looking_connects_for_the_time_of_the_command(server: LocalServer) -> None:
    async with looking(Settings(valkey=ValkeySettings(url=server.tcp_url)), primary=False) as look:
        assert len(look.nodes) == 1 and look.replicas == 0
        assert await look.nodes[0].ping()


def test_no_bar_off_a_terminal() -> None:
    with progress("Looking") as told:
        assert told is None


def test_stride_has_the_rate_that_was_asked_for() -> None:
    chosen = stride(1000)
    chosen.took(0.0, 5000, 100.0)
    assert chosen.rest_seconds(100.0) > 4


def test_what_a_server_says_cannot_steer_the_terminal(capsys) -> None:
    assert plain("[red]x\x1b[2J") == "\\[red]x\\x1b[2J"
    tell("a\nb\x1b")
    assert capsys.readouterr().err == "keystead: a b\\x1b\n"


def test_one_is_not_many() -> None:
    assert [counted(number, "key") for number in (0, 1, 1200)] == ["0 keys", "1 key", "1,200 keys"]
