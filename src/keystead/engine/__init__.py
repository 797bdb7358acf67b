"""How we reach the server: the only room that uses redis-py."""

from keystead.engine.address import Address, parse
from keystead.engine.client import Valkey
from keystead.engine.connect import connect
from keystead.engine.failures import AnswerLost, LoginRefused, ServerAway, ServerTooOld
from keystead.engine.pipeline import Pipeline
from keystead.engine.server_time import sync_clock

__all__ = [
    "Address",
    "AnswerLost",
    "LoginRefused",
    "Pipeline",
    "ServerAway",
    "ServerTooOld",
    "Valkey",
    "connect",
    "parse",
    "sync_clock",
]
