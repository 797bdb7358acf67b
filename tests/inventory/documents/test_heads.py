from keystead.inventory.documents.blocks import Text, marked
from keystead.inventory.documents.heads import head_of, is_example, is_relative
from keystead.inventory.documents.tokens import Likeness


def head(text):
    return head_of(Text(marked(text), 1))


def test_keys_in_front():
    assert head("`a:{b}` goes to a hash").spellings == ("a:{b}",)
    assert head("`a:{b}`, `:extra` and `c:{d}`: two").spellings == ("a:{b}", ":extra", "c:{d}")
    assert head("`a:{b}`: text").rest.plain == "text"
    assert head("**a:{b}** - text").spellings == ("a:{b}",)
    assert head("a:<b c>:d - text").spellings == ("a:<b c>:d",)
    assert head("a:b -> text").spellings == ("a:b",)
    assert head("1. `a:{b}`").likeness is Likeness.PLAIN


def test_a_label_before_the_key():
    found = head("Session cache: `session:{id}` is a hash")
    assert found.spellings == ("session:{id}",) and found.label == "Session cache"


def test_no_key_in_front():
    for text in (
        "`REDIS_URL` is",
        "Bump the version (`a:v3`, `b:v4`)",
        "see `a:{b}` and more of it",
        "a: b",
        "12:30 lunch",
        "",
        "add to a:b now",
        "e.g. `a:{b}`",
    ):
        assert head(text) is None, text


def test_what_goes_on_from_another_key():
    assert is_relative(":earliest") and is_relative("…:extra:{event}") and is_relative("_{id}") is False
    assert not is_relative(":smile:") and not is_relative("../x") and not is_relative("a:b")
    assert is_example("(e.g. ", 6) and not is_example("the key ", 8)
