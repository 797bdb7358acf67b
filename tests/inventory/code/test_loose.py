"""Text that only looks like a key."""

from pathlib import Path

from keystead.inventory.code.collecting import LOOKS

from .reading_code import read

TEXT = """
    import redis
    USER_KEY = "user:{}:profile"
    CHANNEL_PREFIX = "news:"
    def session_key(sid): return f"session:{sid}"
    URL = "https://example.org:8080"
    API_URL_KEY = "http://x"
    WHEN = "10:30"
    LOG_FORMAT = "%(asctime)s:%(levelname)s"
    STYLE = f"hover:{colour}"
    QUERY = f"select a:{b} from c"
    ADDRESS = f"{host}:{port}"
    IMAGE = f"nginx:{tag} latest"
    log.info(f"done: {x}")
    raise ValueError(f"bad:{x}")
"""


def test_guesses_are_apart_and_can_be_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, a_py=TEXT, guesses=True)

    assert [entry.pattern for entry in found.entries] == ["user:{value}:profile", "session:{sid}"]
    assert all(entry.uncertain == LOOKS and entry.type is None for entry in found.entries)
    assert not read(tmp_path, a_py=TEXT).entries


def test_how_a_used_key_begins_is_no_guess(tmp_path: Path) -> None:
    found = read(tmp_path, guesses=True, a_py="""
        import redis
        r = redis.Redis()
        USER_PREFIX = "user:"
        def user_key(name): return f"{USER_PREFIX}{name}"
        r.get(user_key("a") + ":x")
        """)

    assert [entry.pattern for entry in found.entries] == ["user:a:x"]
