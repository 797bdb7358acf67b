"""One spelling of each address and number; what is wrong with one is said in a line."""

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystead.errors import Invalid
from keystead.members import addresses, folded_email, normal_email, normal_phone
from keystead.members.addresses import _loaded, _normal_domain


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
    _normal_domain.cache_clear()
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


LOCALS = st.sampled_from(["ada", "Ada.L", "a+b_c", "postmaster", "POSTMASTER", "Abuse", "a..b", ".a", "a.", "", "ä",
                          "a b", '"a b"', "x" * 64, "x" * 65, "a\u0308"]) | st.text("aB.+-_@ \t'!\u00e4", max_size=8)
DOMAINS = st.sampled_from(["example.com", "EXAMPLE.com", "mail.test", "x.com", "localhost", "exa mple.com", "-x.com",
                           "x..com", "b\u00fccher.example", "xn--bcher-kva.example", "xn--zz.example",
                           "[127.0.0.1]", "",
                           "a" * 63 + ".com", "a" * 64 + ".com", ("a" * 60 + ".") * 3 + "com", "example.com."])


@settings(deadline=None, max_examples=400)
@given(LOCALS, DOMAINS)
def test_an_address_whose_domain_is_known_is_judged_as_any_other(local: str, domain: str) -> None:
    def judged() -> str:
        try:
            return normal_email(f"{local}@{domain}")
        except Invalid as error:
            return str(error)

    _normal_domain.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(addresses, "_PLAIN_LOCAL", re.compile("(?!)"))  # nothing is plain: the library judges all of it
        whole = judged()
    assert judged() == whole == judged()


def test_a_domain_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _normal_domain.cache_clear()
    assert normal_email("ada@example.com") == "ada@example.com"
    monkeypatch.setattr(addresses, "_loaded", lambda name: pytest.fail("asked the library again"))
    assert normal_email(" Ben.K+x@example.com") == "Ben.K+x@example.com"
