"""Identifiers: one name per meaning, and how new ones are made."""

import secrets
from typing import NewType

UserSub = NewType("UserSub", str)


def new_uid(prefix: str) -> str:
    """A fresh identifier such as ``job_q3Jx0V…``: the prefix and 128 random bits, URL-safe."""
    return f"{prefix}_{secrets.token_urlsafe(16)}"
