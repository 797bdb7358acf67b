"""The one spelling of an email address and of a phone number. What is wrong with one is said without repeating it."""

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Final
from unicodedata import normalize

from keystead.errors import Invalid

MOST_EMAIL_CHARACTERS: Final = 254
MOST_PHONE_CHARACTERS: Final = 40


def normal_email(text: str) -> str:
    """The address as it is stored and written to; ``Invalid`` says what is wrong with it. Asks no name server."""
    validator = _loaded("email_validator")
    if len(text) > MOST_EMAIL_CHARACTERS:
        raise Invalid(f"the email address is too long: {len(text)} characters, at most {MOST_EMAIL_CHARACTERS} can be")
    try:
        # Addresses of test.example and the like are for tests, and are as good as any where nothing is looked up.
        found = validator.validate_email(text.strip(), check_deliverability=False, test_environment=True)
    except validator.EmailNotValidError as error:
        raise Invalid(f"this is no email address: {_first_line(error)}") from None
    normal: str = found.normalized
    return normal


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
