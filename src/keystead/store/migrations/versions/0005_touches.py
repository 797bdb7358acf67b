"""Touch points, what was sent to whom, and the log of it."""

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    pass
