"""The HTTP doors of links: for programs under the prefix of the interface, and the pages behind links at the root."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import parse_qs

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from keystead.edge import LINK, WRONG_CODE, Caller, CallerKind, Decision, Forbidden, Guard
from keystead.errors import Invalid, NotFound
from keystead.ids import UserSub
from keystead.messaging.links.bots import is_bot
from keystead.messaging.links.clicks import UNGUESSED_CHARACTERS
from keystead.messaging.links.links import Links
from keystead.messaging.links.models import Target, TrackType
from keystead.messaging.links.pages import HEADERS, Pages
from keystead.messaging.links.queues import RUNS, LinkQueues, SetInfo
from keystead.messaging.links.unsubscribing import PAGE, InvalidCode, Unsubscribing

EnterFlow = Callable[[UserSub, str, dict[str, Any]], Awaitable[None]]

SCOPE: Final = "messaging"
_VISITOR: Final = re.compile(r"v_[A-Za-z0-9_-]{5,30}")
_MOST_FORM: Final = 4096
_Code = Annotated[str, Field(min_length=1, max_length=255)]
_Visitor = Annotated[str, Header(max_length=255, description="uid of the visiting device, if there is one")]


class CodeGiven(BaseModel):
    """The code of a link."""

    code: _Code


class LoginGiven(BaseModel):
    """The code of a link, and the click that was before the log-in."""

    code: _Code
    uid: str = Field(min_length=1, max_length=255)


class EmailGiven(BaseModel):
    """An address that shall get no more email, and a code that permits to say so."""

    email: str = Field(min_length=3, max_length=320)
    code: _Code


class LinkApplied(BaseModel):
    """The code of a link, and the click on it if it was counted before the log-in."""

    code: _Code
    click_uid: str | None = Field(default=None, min_length=1, max_length=255)


class LinkShown(BaseModel):
    """Where a link leads."""

    page_identifier: str
    page_extra: dict[str, Any]
    click_uid: str = Field(description="to be given back after a log-in")


class SetShown(BaseModel):
    """How much waits."""

    length: int
    oldest_at: float | None = Field(description="the earliest time: when it was made, or may be stored")
    num_overdue: int


class NotPermitted(Forbidden):
    """A code that does not permit what was asked for."""

    problem_type: ClassVar[str] = "invalid_code"


def routes(links: Links, unsubscribing: Unsubscribing, *, enter_flow: EnterFlow | None = None) -> APIRouter:
    """Under the prefix of the HTTP interface. ``enter_flow`` is told where a person arrived through a link."""
    router = APIRouter(tags=["links"])

    @router.post("/notifications/complete", responses={404: {}})
    async def complete(request: Request, given: CodeGiven, visitor: _Visitor = "") -> LinkShown:
        """Somebody clicked on a link: where it leads. 404 for a code that leads nowhere."""
        clicked = await links.click(given.code, visitor_uid=_visitor(visitor), user_sub=_person(request))
        return _shown(clicked.target, clicked.click_uid)

    @router.post("/notifications/post_login", status_code=202)
    async def post_login(request: Request, given: LoginGiven, visitor: _Visitor = "") -> None:
        """Whoever clicked on a link has logged in since."""
        sub = _caller(request).require_user()
        await links.click(
            given.code, track_type=TrackType.POST_LOGIN, parent_uid=given.uid, user_sub=sub,
            visitor_uid=_visitor(visitor),
        )

    @router.post("/notifications/unsubscribe_by_email", status_code=202)
    async def unsubscribe_by_email(given: EmailGiven, visitor: _Visitor = "") -> None:
        """No more email to this address. Needs the code of an unsubscribe link, otherwise 403 ``invalid_code``."""
        try:
            await unsubscribing.unsubscribe(given.code, [given.email], visitor_uid=_visitor(visitor))
        except InvalidCode as error:
            raise NotPermitted(str(error)) from None

    @router.post("/users/me/screens/apply_touch_link")
    async def apply_link(request: Request, given: LinkApplied, visitor: _Visitor = "") -> LinkShown:
        """A person who is logged in follows a link: counts the click, or the log-in after it, and enters its flow."""
        sub = _caller(request).require_user()
        clicked = await links.click(
            given.code, user_sub=sub, visitor_uid=_visitor(visitor), parent_uid=given.click_uid,
            track_type=TrackType.ON_CLICK if given.click_uid is None else TrackType.POST_LOGIN,
        )
        shown = _shown(clicked.target, clicked.click_uid)
        if enter_flow is not None:
            await enter_flow(sub, f"touch_link_{shown.page_identifier}", shown.page_extra)
        return shown

    return router


def admin_routes(queues: LinkQueues) -> APIRouter:
    """Under the prefix of the HTTP interface, before those of touches; all of it needs the scope ``messaging``."""
    router = APIRouter(tags=["links"])

    @router.get("/admin/touch/buffered_link_sorted_set_info")
    async def buffered(request: Request, response: Response) -> SetShown:
        """Links that are not in the database yet."""
        _look(request, response)
        return _waiting(await queues.buffered())

    @router.get("/admin/touch/persistable_link_sorted_set_info")
    async def persistable(request: Request, response: Response) -> SetShown:
        """Links that wait to be stored."""
        _look(request, response)
        return _waiting(await queues.persistable())

    @router.get("/admin/touch/delayed_link_clicks_sorted_set_info")
    async def delayed(request: Request, response: Response) -> SetShown:
        """Clicks that wait to be stored after their link."""
        _look(request, response)
        return _waiting(await queues.delayed_clicks())

    def add_run(name: str) -> None:
        async def last_run(request: Request, response: Response) -> dict[str, Any]:
            """The last run of a job."""
            _look(request, response)
            return await queues.last_run(name)

        router.add_api_route(f"/admin/touch/{name}", last_run, methods=["GET"], name=name)

    for name in RUNS:
        add_run(name)
    return router


class _Limits:
    """What one address may open: very many links, and few codes that lead nowhere, since those are guesses.

    Codes that nobody can guess are not held back for the latter, and neither is who has logged in.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def refusal(self, request: Request, code: str) -> Decision | None:
        """Counts one that is opened; what refuses it, if anything does."""
        decision = await self._guard.count(LINK, request.state.address)
        if decision.allowed and self._may_be_guess(request, code):
            decision = await self._guard.count(WRONG_CODE, request.state.address)
        return None if decision.allowed else decision

    async def was_right(self, request: Request, code: str) -> None:
        """It led somewhere, so it was no guess."""
        if self._may_be_guess(request, code):
            await self._guard.give_back(WRONG_CODE, request.state.address)

    @staticmethod
    def _may_be_guess(request: Request, code: str) -> bool:
        return len(code) < UNGUESSED_CHARACTERS and _person(request) is None


def landing_routes(links: Links, unsubscribing: Unsubscribing, pages: Pages, guard: Guard) -> APIRouter:
    """At the root: the pages behind links. ``/a/`` is meant for short codes in texts; both take any code."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    limits = _Limits(guard)

    @router.api_route("/l/{code}", methods=["GET", "HEAD"])
    @router.api_route("/a/{code}", methods=["GET", "HEAD"])
    async def land(request: Request, code: str) -> HTMLResponse:
        """Counts a click, unless a program looks, and shows where it leads."""
        if (refused := await limits.refusal(request, code)) is not None:
            return _page(pages.too_many(), 429, refused.headers())
        if bot := is_bot(request.method, request.headers):
            target, click_uid = await links.resolve(code, limited=True), ""
        else:
            clicked = await links.click(code, user_sub=_person(request))
            target, click_uid = clicked.target, clicked.click_uid
        if target is None:
            return _page(pages.unknown(), 404)
        await limits.was_right(request, code)
        if target.page_identifier == PAGE:
            return _page(pages.unsubscribe(target, [] if bot else await unsubscribing.addresses(target)))
        return _page(pages.lead_on(target, click_uid, at_once=not bot))

    @router.post("/l/{code}")
    @router.post("/a/{code}")
    async def unsubscribe(request: Request, code: str) -> HTMLResponse:
        """The one button of the page that asks whether to unsubscribe."""
        if (refused := await limits.refusal(request, code)) is not None:
            return _page(pages.too_many(), 429, refused.headers())
        target = await links.resolve(code, limited=True)
        if target is None or target.page_identifier != PAGE:
            return _page(pages.unknown(), 404)
        await limits.was_right(request, code)
        addresses = await unsubscribing.addresses(target)
        if not addresses:
            typed = await _typed(request)
            if "@" not in typed:
                return _page(pages.invalid_address(), 400)
            addresses = [typed]
        try:
            await unsubscribing.unsubscribe(code, addresses)
        except InvalidCode:
            return _page(pages.unknown(), 404)
        except Invalid:
            return _page(pages.invalid_address(), 400)
        return _page(pages.unsubscribed())

    return router


def _waiting(info: SetInfo) -> SetShown:
    return SetShown(length=info.length, oldest_at=info.oldest_at, num_overdue=info.overdue)


def _look(request: Request, response: Response) -> None:
    _caller(request).require(SCOPE)
    response.headers["cache-control"] = "no-store"


def _page(html: str, status: int = 200, more: Mapping[str, str] | None = None) -> HTMLResponse:
    return HTMLResponse(html, status, {**HEADERS, **(more or {})})


async def _typed(request: Request) -> str:
    body = await request.body()
    fields = parse_qs(body[:_MOST_FORM].decode("utf-8", errors="replace"))
    return fields.get("email", [""])[0].strip()[:320]


def _shown(target: Target | None, click_uid: str) -> LinkShown:
    if target is None:
        raise NotFound("this code leads nowhere")
    return LinkShown(page_identifier=target.page_identifier, page_extra=target.page_extra, click_uid=click_uid)


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def _person(request: Request) -> UserSub | None:
    """Who clicked, if that is known; nobody has to say."""
    caller = _caller(request)
    return caller.require_user() if caller.kind is CallerKind.USER or caller.acts_for else None


def _visitor(header: str) -> str | None:
    return header if _VISITOR.fullmatch(header) else None
