"""One spelling of each address and number; what is wrong with one is said in a line."""

import sys

import pytest

from keystead.errors import Invalid
from keystead.members import folded_email, normal_email, normal_phone
from keystead.members.addresses import _loaded


def test_an_address_has_one_spelling_and_is_compared_without_case() -> None:
    assert normal_email("  Ada.L@EXAMPLE.com ") == "Ada.L@example.com"
    assert folded_email("Ada.L@example.com") == folded_email("ADA.l@Example.COM")
    assert normal_email("ada@mail.test") == "ada@mail.test", "nothing is looked up"


@pytest.mark.parametrize("wrong", [
    "", "ada", "ada@", "@example.com", "ada@@example.com", "ada example@x.com", "ada@exa mple.com",
    "a" * 300 + "@x.com", "ada@localhost", "ada\0@example.com", "ada@example.com\nbcc: all@example.com",
])
def test_what_is_no_address_is_refused_in_one_line(wrong: str) -> None:
    with pytest.raises(Invalid, match="email address") as refused:
        normal_email(wrong)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 300


def test_a_number_has_one_spelling() -> None:
    assert normal_phone("+1 (555) 555-0123") == "+15555550123"
    assert normal_phone("030 901820", "DE") == "+4930901820"


@pytest.mark.parametrize("wrong", ["", "hello", "555 0123", "+1 555", "+999123456789", "+1" + "5" * 30, "9" * 100])
def test_what_is_no_number_is_refused_in_one_line(wrong: str) -> None:
    with pytest.raises(Invalid, match="phone number") as refused:
        normal_phone(wrong)
    assert "\n" not in str(refused.value)


def test_without_the_packages_it_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    _loaded.cache_clear()
    for name in ("email_validator", "phonenumbers"):
        monkeypatch.setitem(sys.modules, name, None)
    for check in (normal_email, normal_phone):
        with pytest.raises(Invalid, match="pip install"):
            check("ada@example.com")


@pytest.mark.parametrize(
    "text", ["ada@xn--bcher-kva.example", " ADA@XN--BCHER-KVA.example", "ada@bu\u0308cher.example"]
)
def test_a_domain_in_other_letters_is_the_same_however_it_is_written(text: str) -> None:
    assert folded_email(text) == folded_email(normal_email(text)) == "ada@bücher.example"
    assert folded_email("ada@xn--\xff.example") == "ada@xn--\xff.example", "whatever a provider says, it is compared"
