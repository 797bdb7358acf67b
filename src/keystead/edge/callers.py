"""Who is asking. The assembled server finds out and puts a ``Caller`` on the request; rooms only read it."""

from dataclasses import dataclass
from enum import Enum

from keystead.edge.refusals import Forbidden, NotLoggedIn


class CallerKind(Enum):
    """``ANONYMOUS`` proved nothing, ``OPERATOR`` runs the installation, ``PROGRAM`` holds a token made for it."""

    ANONYMOUS = "anonymous"
    OPERATOR = "operator"
    PROGRAM = "program"


@dataclass(frozen=True, slots=True)
class Caller:
    """One asker. ``subject`` names them within their kind; ``scopes`` says what they may touch.

    An operator may touch everything; a program only what its token says.
    """

    kind: CallerKind
    subject: str = ""
    scopes: frozenset[str] = frozenset()

    @property
    def known(self) -> bool:
        return self.kind is not CallerKind.ANONYMOUS

    def may(self, scope: str) -> bool:
        return self.kind is CallerKind.OPERATOR or (self.known and scope in self.scopes)

    def require(self, scope: str) -> None:
        """Refuse with ``NotLoggedIn`` (nobody) or ``Forbidden`` (somebody, but not for this)."""
        if not self.known:
            raise NotLoggedIn("this needs a credential: log in, or send a bearer token")
        if not self.may(scope):
            raise Forbidden(f"this credential does not reach here; it lacks the scope {scope}")


ANONYMOUS = Caller(CallerKind.ANONYMOUS)
