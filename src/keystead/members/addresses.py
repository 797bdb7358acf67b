"""The one spelling of an email address and of a phone number. What is wrong with one is said without repeating it."""

import re
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType
from typing import Final
from unicodedata import normalize

from keystead.errors import Invalid

MOST_EMAIL_CHARACTERS: Final = 254
MOST_PHONE_CHARACTERS: Final = 40
MOST_NAME_CHARACTERS: Final = 64
_PLAIN_LOCAL: Final = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*")
# Names that are the same in any case, by RFC 2142; the library writes them in lower case.
_ROLES: Final = frozenset((
    "info", "marketing", "sales", "support", "abuse", "noc", "security", "postmaster", "hostmaster", "usenet", "news",
    "webmaster", "www", "uucp", "ftp",
))


def normal_email(text: str) -> str:
    """The address as it is stored and written to; ``Invalid`` says what is wrong with it. Asks no name server."""
    if len(text) > MOST_EMAIL_CHARACTERS:
        raise Invalid(f"the email address is too long: {len(text)} characters, at most {MOST_EMAIL_CHARACTERS} can be")
    # Most addresses are plain and of few domains, and it is the domain that takes long to judge.
    name, _, domain = text.strip().rpartition("@")
    if _PLAIN_LOCAL.fullmatch(name) is not None and name.lower() not in _ROLES:
        known = _normal_domain(domain)
        if known is not None:
            return f"{name}@{known}"
    return _judged(text)


def _judged(text: str) -> str:
    validator = _loaded("email_validator")
    try:
        # Addresses of test.example and the like are for tests, and are as good as any where nothing is looked up.
        found = validator.validate_email(text.strip(), check_deliverability=False, test_environment=True)
    except validator.EmailNotValidError as error:
        raise Invalid(f"this is no email address: {_first_line(error)}") from None
    normal: str = found.normalized
    return normal


@lru_cache(maxsize=4096)
def _normal_domain(domain: str) -> str | None:
    """A plain domain as it is stored; None for what is none, or is not plain. With a name of any length that can be
    before it an address is short enough."""
    if not domain.isascii() or len(domain) > MOST_EMAIL_CHARACTERS - MOST_NAME_CHARACTERS - 1:
        return None
    try:
        normal = _judged(f"a@{domain}").removeprefix("a@")
    except Invalid:
        return None
    return normal if normal.isascii() else None


def folded_email(text: str) -> str:
    """What addresses are compared by: two that differ in upper and lower case are the same, and so are the two ways to
    write a domain in other letters, which providers give back in the one that they were given (``xn--``)."""
    folded = normalize("NFC", text.strip().lower())
    name, at, domain = folded.rpartition("@")
    if "xn--" not in domain:
        return folded
    try:
        return f"{name}{at}{_loaded('idna').decode(domain)}"
    except UnicodeError:  # no such domain, so that nobody has it in another form
        return folded


def normal_phone(text: str, region: str | None = None) -> str:
    """The number in the E.164 form, such as +15555550123; ``Invalid`` says what is wrong with it.

    ``region``: the country, such as US, that a number without a leading + is dialled in.
    """
    phonenumbers = _loaded("phonenumbers")
    if len(text) > MOST_PHONE_CHARACTERS:
        raise Invalid(f"the phone number is too long: {len(text)} characters, at most {MOST_PHONE_CHARACTERS} can be")
    try:
        found = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        raise Invalid("this is no phone number; write it with + and the code of its country, such as "
                      "+1 555 555 0123") from None
    if not phonenumbers.is_possible_number(found):
        raise Invalid("there can be no such phone number: it has too few or too many digits for its country")
    number: str = phonenumbers.format_number(found, phonenumbers.PhoneNumberFormat.E164)
    return number


def checked_region(code: str) -> str:
    """The code of a country, such as US, if numbers are known from there; ``Invalid`` otherwise."""
    if code.upper() not in _loaded("phonenumbers").SUPPORTED_REGIONS:
        raise Invalid(f"no phone numbers are known of a country {code[:20]!r}; give its two letters, such as DE")
    return code.upper()


def _first_line(error: Exception) -> str:
    """The reason in one line, without the address: some messages of the library repeat a part of it."""
    said = str(error).split("\n", 1)[0].strip()
    return said[:1].lower() + said[1:].rstrip(".") if said.isascii() and len(said) <= 200 else "its form is not right"


@cache
def _loaded(name: str) -> ModuleType:
    """Loaded by whoever checks an address, since it takes long, and most commands never do."""
    try:
        return import_module(name)
    except ImportError:
        raise Invalid("checking addresses needs another package: pip install 'keystead[messaging]'") from None
