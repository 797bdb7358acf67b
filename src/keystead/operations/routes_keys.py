"""The HTTP door to admin keys: made, listed, taken back, by whoever administers the installation."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from keystead.clock import Clock
from keystead.edge import EVERY_SCOPE, SCOPES, Caller, CallerKind, Forbidden, PageRequest
from keystead.edge.paged import FIRST_LIMIT, Cursor, Limit, Paged
from keystead.operations.admin_keys import MOST_NAME, MOST_SECONDS, AdminKey, AdminKeys, key_subject

SCOPE = "admin"
Id = Annotated[str, Path(pattern="^[!-~]{1,64}$", examples=["n2dackdfvhhu"])]


class KeyWanted(BaseModel):
    """A key for a program, with scopes that whoever asks has too."""

    name: str = Field(min_length=1, max_length=MOST_NAME, examples=["shop"],
                      description="the program that will hold it")
    scopes: list[str] = Field(min_length=1, max_length=len(SCOPES) + 1, examples=[["jobs", "users"]],
                              description=f"of {', '.join(SCOPES)}; {EVERY_SCOPE} for all")
    lasts_seconds: float | None = Field(None, gt=0, le=MOST_SECONDS, examples=[86400],
                                        description="without it, until it is taken back")


class KeyShown(BaseModel):
    """A key without its secret. Times are unix seconds."""

    id: str = Field(examples=["n2dackdfvhhu"])
    name: str
    scopes: list[str]
    state: Literal["active", "revoked", "expired"]
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    last_used_at: float | None = Field(description="to about a minute")


class KeyMade(KeyShown):
    """A new key, with the text that its holder sends. That is shown now and never again."""

    key: str = Field(examples=["ksk_n2dackdfvhhu_…"], description="for `Authorization: Bearer`")


class KeyList(Paged):
    """Some of the keys there ever were, the newest first."""

    items: list[KeyShown]


def routes(keys: AdminKeys, clock: Clock) -> APIRouter:
    """``/admin/keys``: list, make, take back."""
    router = APIRouter(tags=["programs"])

    def shown(key: AdminKey) -> dict[str, object]:
        return {"id": key.id, "name": key.name, "scopes": sorted(key.scopes), "state": key.state(clock.now()),
                "created_at": key.created_at, "expires_at": key.expires_at, "revoked_at": key.revoked_at,
                "last_used_at": key.last_used_at}

    @router.get("/admin/keys")
    async def list_keys(request: Request, limit: Limit = FIRST_LIMIT, cursor: Cursor = None) -> KeyList:
        """Every key, the newest first, without its secret. Needs the scope ``admin``."""
        _caller(request).require(SCOPE)
        page = await keys.page(PageRequest(limit, cursor))
        return KeyList.model_validate({"items": [shown(key) for key in page.items], "next_cursor": page.next_cursor})

    @router.post("/admin/keys", status_code=201)
    async def make_key(request: Request, wanted: KeyWanted) -> KeyMade:
        """Make a key. Needs the scope ``admin``; nobody gives a scope away that they do not have, and no program a
        key that outlasts its own."""
        caller = _caller(request)
        caller.require(SCOPE)
        if any(scope in (*SCOPES, EVERY_SCOPE) and not caller.may(scope) for scope in wanted.scopes):
            raise Forbidden("a key may not reach more than whoever makes it")
        ends_at: float | None = request.state.proof_ends_at
        # A person's log-in ends within hours, and what they make is meant to last.
        if caller.kind is CallerKind.PROGRAM and ends_at is not None:
            left = ends_at - clock.now()
            if wanted.lasts_seconds is None or wanted.lasts_seconds > left:
                raise Forbidden("a key may not outlast the one that makes it; give lasts_seconds, at most "
                                f"{max(int(left), 1)}")
        made = await keys.create(wanted.name, wanted.scopes, lasts_seconds=wanted.lasts_seconds)
        return KeyMade.model_validate({"key": made.text, **shown(made.key)})

    @router.delete("/admin/keys/{id}")
    async def take_back(request: Request, id: Id) -> KeyShown:
        """Take a key back: refused here at once and within seconds elsewhere. Needs the scope ``admin``, and every
        scope that the key has. A key may always take back itself."""
        caller = _caller(request)
        if caller.subject != key_subject(id) or caller.kind is not CallerKind.PROGRAM:
            caller.require(SCOPE)
            lacking = sorted(scope for scope in (await keys.get(id)).scopes if not caller.may(scope))
            if lacking:
                raise Forbidden("a key is taken back by somebody who may reach as much as it does; this credential "
                                f"lacks {', '.join(lacking)}")
        return KeyShown.model_validate(shown(await keys.revoke(id)))

    return router


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller
