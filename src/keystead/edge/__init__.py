"""What every request passes: where it comes from, who asks, whether it may, and how a refusal reads."""

from keystead.edge.addresses import LOOPBACK, ClientAddress, Networks, client_address
from keystead.edge.blocks import Block, Blocks
from keystead.edge.callers import ANONYMOUS, EVERY_SCOPE, SCOPES, USER_HEADER, USERS_SCOPE, Caller, CallerKind
from keystead.edge.endings import Endings
from keystead.edge.errors import PROBLEM_MEDIA_TYPE, Problem, problem_of, problem_of_status
from keystead.edge.guard import Guard, Verdict, Weight
from keystead.edge.idempotency import Begun, KeptAnswer, Repeats
from keystead.edge.keys import TICKET_MOST_SECONDS, TOKEN_MOST_SECONDS
from keystead.edge.limits import API, LINK, LOGIN, REGISTER, RESET_PASSWORD, WRONG_CODE, WRONG_KEY, Decision, IpLimit
from keystead.edge.paging import (
    Page,
    PageRequest,
    PositionNumber,
    PositionText,
    cursor_after,
    make_cursor,
    page_of,
    read_cursor,
)
from keystead.edge.refreshing import keep_refreshed
from keystead.edge.refusals import (
    Blocked,
    Forbidden,
    KeyInUse,
    KeyReused,
    NotLoggedIn,
    TicketExpired,
    TicketRefused,
    TicketTampered,
    TicketUsed,
    TooLarge,
)
from keystead.edge.tickets import TICKET_UID, USER_PURPOSE, Ticket, Tickets, load_secret, user_token

__all__ = [
    "ANONYMOUS",
    "API",
    "Begun",
    "Block",
    "Blocked",
    "Blocks",
    "Caller",
    "CallerKind",
    "ClientAddress",
    "Decision",
    "EVERY_SCOPE",
    "Endings",
    "Forbidden",
    "Guard",
    "IpLimit",
    "KeptAnswer",
    "KeyInUse",
    "KeyReused",
    "LINK",
    "LOGIN",
    "LOOPBACK",
    "Networks",
    "NotLoggedIn",
    "PROBLEM_MEDIA_TYPE",
    "Page",
    "PageRequest",
    "PositionNumber",
    "PositionText",
    "Problem",
    "REGISTER",
    "RESET_PASSWORD",
    "Repeats",
    "SCOPES",
    "TICKET_MOST_SECONDS",
    "TICKET_UID",
    "TOKEN_MOST_SECONDS",
    "Ticket",
    "TicketExpired",
    "TicketRefused",
    "TicketTampered",
    "TicketUsed",
    "Tickets",
    "TooLarge",
    "USERS_SCOPE",
    "USER_HEADER",
    "USER_PURPOSE",
    "Verdict",
    "WRONG_CODE",
    "WRONG_KEY",
    "Weight",
    "client_address",
    "cursor_after",
    "keep_refreshed",
    "load_secret",
    "make_cursor",
    "page_of",
    "problem_of",
    "problem_of_status",
    "read_cursor",
    "user_token",
]
