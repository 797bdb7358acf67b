"""The HTTP doors of the rooms that write to people."""

from fastapi import FastAPI

from keystead.app import Running
from keystead.jobs import Jobs
from keystead.members.routes import routes as members_routes
from keystead.members.routes_users import routes as users_routes
from keystead.messaging.email.overview import OVERVIEW as EMAIL
from keystead.messaging.email.routes import routes as email_routes
from keystead.messaging.email.routes import template_routes
from keystead.messaging.links.routes import admin_routes as link_admin_routes
from keystead.messaging.links.routes import landing_routes
from keystead.messaging.links.routes import routes as links_routes
from keystead.messaging.push.overview import OVERVIEW as PUSH
from keystead.messaging.sandbox.routes import routes as sandbox_routes
from keystead.messaging.sandbox.routes_outbox import routes as outbox_routes
from keystead.messaging.sending import OverviewReader
from keystead.messaging.sending.routes import admin_routes
from keystead.messaging.sms.overview import OVERVIEW as SMS
from keystead.messaging.sms.routes import routes as sms_routes
from keystead.messaging.touches.routes import routes as touches_routes
from keystead.reminders.overview import OVERVIEW as REMINDERS
from keystead.reminders.routes import routes as reminders_routes

TEMPLATES_PREFIX = "/api/3"


def include(app: FastAPI, running: Running, prefix: str) -> None:
    """Open the doors. What providers call us with is queued; whoever works takes it up, here or elsewhere."""
    board = running.switchboard
    doors = [
        users_routes(running.users, board.contacts, running.activity, running.tickets),
        members_routes(board.contacts, board.tokens, board.timezones, Jobs(running.valkey, clock=running.clock)),
        admin_routes(OverviewReader(running.valkey, running.clock), (PUSH, SMS, EMAIL, REMINDERS)),
        link_admin_routes(board.link_queues),
        touches_routes(board.messaging, board.points, board.trials, board.history, board.tracer, board.queues),
        links_routes(board.links, board.link_unsubscribing),
        reminders_routes(board.reminders, board.contacts),
    ]
    if running.heard is not None:
        doors += [
            sms_routes(board.sms_rooms, board.inbound, auth_token=running.settings.sms.auth_token,
                       public_url=lambda: board.ground.public_url),
            email_routes(board.news_rooms, running.heard.verifier, board.unsubscribing, board.template_tokens),
        ]
    for door in doors:
        app.include_router(door, prefix=prefix)
    app.include_router(template_routes(board.templates, board.template_tokens), prefix=TEMPLATES_PREFIX)
    app.include_router(landing_routes(board.links, board.link_unsubscribing, board.pages, running.guard))
    if running.sandbox is not None:
        app.include_router(sandbox_routes(running.sandbox))
        sandbox = running.sandbox
        app.include_router(outbox_routes(sandbox.outbox, sandbox.faults, running.clock), prefix=prefix)
