"""The HTTP door to people themselves: made, found, listed, let go; a token for one of them; and that they were here."""

from typing import Annotated, Final

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from keystead.edge import USER_PURPOSE, USERS_SCOPE, Caller, PageRequest, Tickets, user_token
from keystead.edge.paged import FIRST_LIMIT, Cursor, Limit, Paged
from keystead.errors import NotFound
from keystead.ids import UserSub
from keystead.members.activity import Activity
from keystead.members.contacts import Contacts
from keystead.members.users import Member, Users

MOST_TOKEN_SECONDS: Final = 6 * 86400
_MOST: Final = 255
Sub = Annotated[str, Path(min_length=1, max_length=_MOST, examples=["user_4yTkW2"])]


class UserGiven(BaseModel):
    """Somebody, by an identity that you vouch for. Names and zone are used only if there was nobody."""

    provider: str = Field(min_length=1, max_length=_MOST, examples=["shop"], description="who vouches for the person")
    provider_sub: str = Field(min_length=1, max_length=_MOST, examples=["customer-17"],
                              description="what that one calls them; the same again finds the same person")
    given_name: str = Field("", max_length=_MOST, examples=["Ada"])
    family_name: str = Field("", max_length=_MOST, examples=["Lovelace"])
    timezone: str | None = Field(None, min_length=1, max_length=100, examples=["Europe/London"],
                                 description="a name of the IANA database")


class UserShown(BaseModel):
    """Somebody."""

    sub: str = Field(examples=["user_4yTkW2"])
    given_name: str
    family_name: str
    timezone: str | None = Field(description="what they said, or nothing")
    created_at: float = Field(description="unix seconds")


class UserList(Paged):
    """Some people, those who joined first first."""

    items: list[UserShown]


class TokenWanted(BaseModel):
    """For how long the token is to be good."""

    lasts_seconds: float = Field(3600, ge=1, le=MOST_TOKEN_SECONDS)


class TokenMade(BaseModel):
    """A bearer token with which the person may do what is theirs. It ends with its time, or with the person."""

    token: str
    expires_at: float = Field(description="unix seconds")


def routes(users: Users, contacts: Contacts, activity: Activity, tickets: Tickets) -> APIRouter:
    """Under the prefix of the HTTP interface."""
    router = APIRouter(tags=["users"])

    @router.post("/users", status_code=201, responses={200: {"model": UserShown, "description": "Known already"}})
    async def create_user(request: Request, response: Response, given: UserGiven) -> UserShown:
        """Make a person, or find the one who has this identity. Safe to repeat: one identity is one person."""
        _caller(request).require(USERS_SCOPE)
        member = await users.ensure(
            given.provider, given.provider_sub, given_name=given.given_name, family_name=given.family_name,
            timezone=given.timezone,
        )
        if not member.created:
            response.status_code = 200
        return _shown(member)

    @router.get("/users")
    async def list_users(
        request: Request, limit: Limit = FIRST_LIMIT, cursor: Cursor = None,
    ) -> UserList:
        """Everybody, in the order in which they joined."""
        _caller(request).require(USERS_SCOPE)
        page = await users.list(PageRequest(limit, cursor))
        return UserList(items=[_shown(each) for each in page.items], next_cursor=page.next_cursor)

    @router.post("/users/me/visits", status_code=204)
    async def visited(request: Request) -> None:
        """The person was here just now: counted once a day and once a month, and in how many come back."""
        if await activity.seen(_caller(request).require_user()) is None:
            raise NotFound("there is no such person")

    @router.get("/users/{sub}")
    async def get_user(request: Request, sub: Sub) -> UserShown:
        """One person."""
        _caller(request).require(USERS_SCOPE)
        return _shown(await users.get(UserSub(sub)))

    @router.delete("/users/{sub}", status_code=202)
    async def erase_user(request: Request, sub: Sub) -> None:
        """Forget a person: identity, names, addresses and devices at once; what other rooms hold within seconds.

        What waits to be sent to them is taken out. Counts that hold nobody's name stay.
        """
        _caller(request).require(USERS_SCOPE)
        await contacts.erase(UserSub(sub))
        await users.leave(UserSub(sub))

    @router.post("/users/{sub}/tokens", status_code=201)
    async def make_token(request: Request, sub: Sub, wanted: TokenWanted) -> TokenMade:
        """A token for the person's own device, so that it may do what is theirs and nothing else."""
        _caller(request).require(USERS_SCOPE)
        member = await users.get(UserSub(sub))
        token = user_token(tickets, member.sub, lasts_seconds=wanted.lasts_seconds)
        return TokenMade(token=token, expires_at=tickets.read(USER_PURPOSE, token).expires_at)

    return router


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def _shown(member: Member) -> UserShown:
    return UserShown(sub=member.sub, given_name=member.given_name, family_name=member.family_name,
                     timezone=member.timezone, created_at=member.created_at)
