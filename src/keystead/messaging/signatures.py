"""Signatures of providers: how they are made, and how they are checked.

The rooms check what arrives; the sandbox signs what it sends. ``cryptography`` is loaded by the functions that need it,
so that importing this module costs nothing.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

# What is signed of an SNS message, in this order; what is absent is left out.
SNS_SIGNED: Final[Mapping[str, tuple[str, ...]]] = {
    "Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    "SubscriptionConfirmation": ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
}
SNS_VERSIONS: Final = ("1", "2")  # SHA-1, SHA-256


def twilio_signature(auth_token: str, url: str, fields: Mapping[str, str]) -> str:
    """What ``X-Twilio-Signature`` holds for a POST of ``fields`` to ``url``, query included. Blank values count."""
    signed = url + "".join(name + fields[name] for name in sorted(fields))
    return base64.b64encode(hmac.digest(auth_token.encode(), signed.encode(), hashlib.sha1)).decode()


def is_signed_by_twilio(auth_token: str, url: str, fields: Mapping[str, str], signature: str) -> bool:
    """Whether the signature is the one of these fields. Takes as long for a wrong one as for the right one."""
    right = twilio_signature(auth_token, url, fields)
    return hmac.compare_digest(right.encode(), signature.encode("utf-8", "surrogateescape"))


def sns_text(message: Mapping[str, object]) -> bytes:
    """The text of an SNS message that its signature covers. ``ValueError`` if it is no message that can be signed."""
    kind = message.get("Type")
    if not isinstance(kind, str) or kind not in SNS_SIGNED:
        raise ValueError(f"an SNS message of this type has no signed text: {str(kind)[:60]!r}")
    lines: list[str] = []
    for name in SNS_SIGNED[kind]:
        value = message.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise ValueError(f"{name} of an SNS message must be text")
        lines += (name, value)
    return ("\n".join(lines) + "\n").encode()


def sign_sns(key: "RSAPrivateKey", message: Mapping[str, object]) -> str:
    """The ``Signature`` of a message that says its ``SignatureVersion`` already."""
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

    return base64.b64encode(key.sign(sns_text(message), PKCS1v15(), _hash_of(message))).decode()


def is_signed_by_sns(key: "RSAPublicKey", message: Mapping[str, object]) -> bool:
    """Whether the holder of the key signed this message. Whatever is missing or malformed means no."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

    try:
        signature = base64.b64decode(str(message.get("Signature", "")), validate=True)
        key.verify(signature, sns_text(message), PKCS1v15(), _hash_of(message))
    except (ValueError, binascii.Error, InvalidSignature):
        return False
    return True


def sns_key(pem: bytes) -> "RSAPublicKey":
    """The key of a certificate. ``ValueError`` if it is no certificate with an RSA key."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.x509 import load_pem_x509_certificate

    key = load_pem_x509_certificate(pem).public_key()
    if not isinstance(key, RSAPublicKey):
        raise ValueError("SNS signs with RSA, and this certificate holds another kind of key")
    return key


def _hash_of(message: Mapping[str, object]) -> "HashAlgorithm":
    from cryptography.hazmat.primitives.hashes import SHA1, SHA256

    version = message.get("SignatureVersion")
    if version not in SNS_VERSIONS:
        raise ValueError("SignatureVersion of an SNS message must be 1 or 2")
    return SHA1() if version == "1" else SHA256()  # noqa: S303 - the protocol knows these two
