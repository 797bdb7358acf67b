"""How we reach the server: the only room that uses redis-py."""

from keystead.engine.address import Address, parse
from keystead.engine.client import Valkey
from keystead.engine.connect import connect
from keystead.engine.embedded import EmbeddedServer, attach
from keystead.engine.failures import (
    AnswerLost,
    CutOff,
    ErrorReply,
    KeyMoved,
    LoginRefused,
    NotReplicated,
    ServerAway,
    ServerTooOld,
)
from keystead.engine.hub import Hub
from keystead.engine.listener import Listener, Message
from keystead.engine.lookout import Lookout, lookout
from keystead.engine.pipeline import Pipeline
from keystead.engine.replicated import until_replicated
from keystead.engine.scan import run_of, scan
from keystead.engine.scripts import Script
from keystead.engine.server_time import sync_clock

__all__ = [
    "Address",
    "AnswerLost",
    "CutOff",
    "EmbeddedServer",
    "ErrorReply",
    "Hub",
    "KeyMoved",
    "Listener",
    "LoginRefused",
    "Lookout",
    "Message",
    "NotReplicated",
    "Pipeline",
    "Script",
    "ServerAway",
    "ServerTooOld",
    "Valkey",
    "attach",
    "connect",
    "lookout",
    "parse",
    "run_of",
    "scan",
    "sync_clock",
    "until_replicated",
]
