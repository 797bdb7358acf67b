"""Addresses of people, devices that take push messages, and who must not be written to."""

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    pass
