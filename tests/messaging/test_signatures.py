"""Signatures: published examples, and what happens to anything that was changed on the way."""

import base64
import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from hypothesis import given
from hypothesis import strategies as st

from keystead.messaging.signatures import (
    is_signed_by_sns,
    is_signed_by_twilio,
    sign_sns,
    sns_key,
    sns_text,
    twilio_signature,
)

URL = "https://mycompany.com/myapp.php?foo=1&bar=2"
FIELDS = {
    "CallSid": "CA1234567890ABCDE", "Caller": "+14158675309", "Digits": "1234", "From": "+14158675309",
    "To": "+18005551212",
}

NOTIFICATION = {
    "Type": "Notification", "MessageId": "m-1", "TopicArn": "arn:aws:sns:us-west-2:1:t", "Message": '{"a":"é"}',
    "Timestamp": "2026-01-01T00:00:00.000Z", "SignatureVersion": "1", "SigningCertURL": "https://sns.example/c.pem",
    "UnsubscribeURL": "https://sns.example/?Action=Unsubscribe",
}
CONFIRMATION = {
    "Type": "SubscriptionConfirmation", "MessageId": "m-2", "Token": "t0", "TopicArn": "arn:aws:sns:us-west-2:1:t",
    "Message": "You have chosen", "SubscribeURL": "https://sns.example/?x", "Timestamp": "2026-01-01T00:00:00.000Z",
    "SignatureVersion": "2",
}


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def certificate_of(key):
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "sns")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(1).not_valid_before(start).not_valid_after(start + datetime.timedelta(days=36500))
            .sign(key, hashes.SHA256()))
    return made.public_bytes(serialization.Encoding.PEM)


def test_the_example_that_twilio_publishes_has_its_signature():
    assert twilio_signature("12345", URL, FIELDS) == "RSOYDt4T1cUTdK1PDd93/VVr8B8="
    assert is_signed_by_twilio("12345", URL, FIELDS, "RSOYDt4T1cUTdK1PDd93/VVr8B8=")


@pytest.mark.parametrize("change", [
    {"Digits": "1235"}, {"Digits": ""}, {"New": "1"}, {"Digits": "12345", "From": "+1415867530"},
])
def test_changed_fields_do_not_pass(change):
    assert not is_signed_by_twilio("12345", URL, FIELDS | change, "RSOYDt4T1cUTdK1PDd93/VVr8B8=")


def test_another_token_address_or_signature_does_not_pass():
    right = twilio_signature("12345", URL, FIELDS)
    assert not is_signed_by_twilio("12346", URL, FIELDS, right)
    assert not is_signed_by_twilio("12345", URL + "&uid=1", FIELDS, right)
    for wrong in ("", "x", right.lower(), right + "=", "ünï", "\udcff"):
        assert not is_signed_by_twilio("12345", URL, FIELDS, wrong)


def test_a_blank_value_is_part_of_what_is_signed_by_its_name():
    assert twilio_signature("t", URL, {"A": ""}) != twilio_signature("t", URL, {})
    assert twilio_signature("t", URL, {"FromCity": "", "To": "1"}) == twilio_signature("t", URL + "FromCityTo1", {})


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_the_order_of_fields_does_not_matter(fields):
    try:
        "".join([*fields, *fields.values()]).encode()
    except UnicodeEncodeError:
        return
    backwards = dict(reversed(fields.items()))
    assert is_signed_by_twilio("t", URL, backwards, twilio_signature("t", URL, fields))


def test_the_signed_text_of_a_notification_has_the_documented_order_and_leaves_out_what_is_absent():
    assert sns_text(NOTIFICATION) == (
        'Message\n{"a":"é"}\nMessageId\nm-1\nTimestamp\n2026-01-01T00:00:00.000Z\n'
        "TopicArn\narn:aws:sns:us-west-2:1:t\nType\nNotification\n"
    ).encode()
    assert b"\nSubject\nhello\nTimestamp\n" in sns_text(NOTIFICATION | {"Subject": "hello"})


def test_the_signed_text_of_a_confirmation_covers_its_token_and_address():
    assert sns_text(CONFIRMATION) == (
        b"Message\nYou have chosen\nMessageId\nm-2\nSubscribeURL\nhttps://sns.example/?x\n"
        b"Timestamp\n2026-01-01T00:00:00.000Z\nToken\nt0\nTopicArn\narn:aws:sns:us-west-2:1:t\n"
        b"Type\nSubscriptionConfirmation\n"
    )


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("message", [NOTIFICATION, CONFIRMATION])
def test_both_versions_can_be_signed_and_checked_and_nothing_signed_can_be_changed(key, message, version):
    message = message | {"SignatureVersion": version}
    signed = message | {"Signature": sign_sns(key, message)}
    public = sns_key(certificate_of(key))
    assert is_signed_by_sns(public, signed)
    for name in ("Message", "MessageId", "Timestamp", "TopicArn"):
        assert not is_signed_by_sns(public, signed | {name: "other"}), name
    assert not is_signed_by_sns(public, signed | {"SignatureVersion": "21"[int(version) - 1]})


def test_a_notification_signed_elsewhere_passes(key):
    """Made with the library alone, as an outsider would do it."""
    text = b"Message\nhi\nMessageId\n1\nTimestamp\nt\nTopicArn\na\nType\nNotification\n"
    signature = base64.b64encode(key.sign(text, padding.PKCS1v15(), hashes.SHA1())).decode()
    message = {"Type": "Notification", "MessageId": "1", "Message": "hi", "Timestamp": "t", "TopicArn": "a",
               "SignatureVersion": "1", "Signature": signature}
    assert is_signed_by_sns(key.public_key(), message)


@pytest.mark.parametrize("change", [
    {"Signature": None}, {"Signature": "no base64!"}, {"Signature": ""}, {"SignatureVersion": "3"},
    {"SignatureVersion": None}, {"Type": "Other"}, {"Type": None}, {"Message": 7}, {"Type": ["Notification"]},
])
def test_what_is_malformed_is_not_signed(key, change):
    signed = NOTIFICATION | {"Signature": sign_sns(key, NOTIFICATION)}
    assert is_signed_by_sns(key.public_key(), signed)
    assert not is_signed_by_sns(key.public_key(), signed | change)


def test_a_certificate_without_an_rsa_key_is_refused():
    with pytest.raises(ValueError, match="RSA"):
        sns_key(certificate_of(ec.generate_private_key(ec.SECP256R1())))
    with pytest.raises(ValueError):
        sns_key(b"-----BEGIN nothing")
