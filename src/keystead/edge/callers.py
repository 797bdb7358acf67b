"""Who is asking. The assembled server finds out and puts a ``Caller`` on the request; rooms only read it."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from keystead.edge.refusals import Forbidden, NotLoggedIn
from keystead.errors import Invalid
from keystead.ids import UserSub
from keystead.keys import USER

# What a program needs to act for people, and the header in which it says for whom.
USERS_SCOPE: Final = "users"
USER_HEADER: Final = "x-user-sub"
# What a credential can be for, and the one that is for all of it.
SCOPES: Final = ("admin", "alerts", "blocks", "jobs", "keys", "messaging", "metrics", "stats", "users")
EVERY_SCOPE: Final = "*"


class CallerKind(Enum):
    """``ANONYMOUS`` proved nothing, ``OPERATOR`` runs the installation, ``PROGRAM`` holds a token made for it.

    ``USER`` is one of the people that the installation serves.
    """

    ANONYMOUS = "anonymous"
    OPERATOR = "operator"
    PROGRAM = "program"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Caller:
    """One asker. ``subject`` names them within their kind; ``scopes`` says what they may touch.

    An operator may touch everything; a program only what its token says; a person only what is theirs. ``acts_for``:
    the person whom an operator or a program says it asks for.
    """

    kind: CallerKind
    subject: str = ""
    scopes: frozenset[str] = frozenset()
    acts_for: str = ""

    @property
    def known(self) -> bool:
        return self.kind is not CallerKind.ANONYMOUS

    def may(self, scope: str) -> bool:
        if self.kind is CallerKind.OPERATOR:
            return True
        return self.known and (scope in self.scopes or EVERY_SCOPE in self.scopes)

    def require(self, scope: str) -> None:
        """Refuse with ``NotLoggedIn`` (nobody) or ``Forbidden`` (somebody, but not for this)."""
        if not self.known:
            raise NotLoggedIn("this needs a credential: log in, or send a bearer token")
        if not self.may(scope):
            raise Forbidden(f"this credential does not reach here; it lacks the scope {scope}")

    def require_user(self) -> UserSub:
        """The person whom this concerns: who asks, or for whom an operator or a program with the scope asks.

        ``NotLoggedIn`` for nobody, ``Forbidden`` for a program without the scope and for a person who names another,
        ``Invalid`` when nobody is named, or what can be nobody. Whether there is such a person is not known here.
        """
        if self.kind is CallerKind.USER:
            if self.acts_for not in ("", self.subject):
                raise Forbidden("a person cannot act for another")
            return UserSub(self.subject)
        self.require(USERS_SCOPE)
        if not self.acts_for:
            raise Invalid(f"say for whom this is, with the header {USER_HEADER}")
        if not USER.accepts(self.acts_for):
            raise Invalid(f"the header {USER_HEADER} names nobody: say the sub of one person")
        return UserSub(self.acts_for)


ANONYMOUS = Caller(CallerKind.ANONYMOUS)
