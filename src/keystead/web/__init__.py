"""The assembled HTTP server: doors of the rooms, log-in, status, documentation, dashboard."""

from keystead.web.links import login_link, program_token
from keystead.web.serving import Ready, serve

__all__ = ["Ready", "login_link", "program_token", "serve"]
