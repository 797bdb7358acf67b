"""Logging in by a one-time link, and out again."""

from html import escape
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from keystead.app import Running
from keystead.edge import (
    LOGIN,
    Caller,
    ClientAddress,
    TicketExpired,
    TicketRefused,
    TicketUsed,
    problem_of,
)
from keystead.errors import LimitReached, Unavailable
from keystead.web.callers import LOGIN_PURPOSE, SESSION_PURPOSE, session_of
from keystead.web.plain_pages import exchange_page, login_needed_page, plain_page, refused_ticket_page

HOME = "/"


def routes(running: Running, cookie_name: str) -> APIRouter:
    """The doors of the log-in: pages for people, and a check that a page can make from within."""
    router = APIRouter(include_in_schema=False)
    session_seconds = running.settings.http.session_seconds

    @router.get("/login")
    async def show_login(request: Request, ticket: str = "", next: str = HOME) -> Response:
        wanted = local_path(next)
        if not ticket:
            return RedirectResponse(wanted, 303) if _caller(request).known else login_needed_page(wanted)
        try:
            running.tickets.read(LOGIN_PURPOSE, ticket)
        except TicketRefused as refusal:
            return _refused(refusal)
        return exchange_page(ticket, wanted)

    @router.post("/login")
    async def log_in(request: Request) -> Response:
        form = parse_qs((await request.body()).decode("utf-8", "replace"))
        ticket, wanted = form.get("ticket", [""])[0], local_path(form.get("next", [HOME])[0])
        address: ClientAddress = request.state.address
        decision = await running.guard.count(LOGIN, address)
        if not decision.allowed:
            return _later(LimitReached("Too many log-ins came from this address.",
                                       retry_after_seconds=decision.reset_seconds))
        try:
            redeemed = await running.tickets.redeem(running.valkey, LOGIN_PURPOSE, ticket)
        except TicketUsed as refusal:
            # Someone who reloads, or presses back, is logged in already.
            return RedirectResponse(wanted, 303) if _caller(request).known else _refused(refusal)
        except TicketRefused as refusal:
            return _refused(refusal)
        except Unavailable as refusal:
            return _later(refusal)
        await running.guard.give_back(LOGIN, address)
        session = running.tickets.issue(SESSION_PURPOSE, redeemed.subject, lasts_seconds=session_seconds)
        answer = RedirectResponse(wanted, 303)
        answer.set_cookie(cookie_name, session, max_age=session_seconds, httponly=True, samesite="strict",
                          secure=request.url.scheme == "https")
        return answer

    @router.post("/logout")
    async def log_out(request: Request) -> Response:
        session = session_of(request.scope["headers"], running.tickets, cookie_name)
        if session is not None:
            try:
                await running.endings.end(session.uid)
            except Unavailable as refusal:
                return _later(refusal, "You are still logged in. Log out again in a little while.")
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(cookie_name, httponly=True, samesite="strict")
        return answer

    @router.get("/session")
    async def session(request: Request) -> dict[str, bool]:
        return {"known": _caller(request).known}

    return router


def local_path(wanted: str) -> str:
    """A path on this server, or the first page: nobody is sent elsewhere after logging in."""
    plain = wanted.startswith("/") and not wanted.startswith(("//", "/login")) and wanted.isprintable()
    return wanted if plain and "\\" not in wanted else HOME


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def _later(
    refusal: LimitReached | Unavailable, then: str = "Open your link again in a little while."
) -> Response:
    """For what time will mend. A person waits before this page, so it is no problem document."""
    problem = problem_of(refusal)
    page = plain_page("Not now", f"<p>{escape(problem.message)}</p><p>{escape(then)}</p>",
                      status=problem.status)
    page.headers.update(problem.headers)
    return page


def _refused(refusal: TicketRefused) -> Response:
    status = problem_of(refusal).status
    if isinstance(refusal, TicketUsed):
        return refused_ticket_page("This link was already used", "A log-in link works once. That keeps a link that "
                                   "someone finds later, in a history or a log, from opening anything.", status=status)
    if isinstance(refusal, TicketExpired):
        return refused_ticket_page("This link has expired", "A log-in link works for a few minutes only.",
                                   status=status)
    return refused_ticket_page("This link is not complete", "It was not issued by this installation, or a part of it "
                               "was lost when it was copied.", status=status)
