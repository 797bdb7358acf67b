"""The assembled HTTP server: doors of the rooms, log-in, status, documentation, dashboard."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.web.housekeeping import Housekeeping
    from keystead.web.links import login_link, program_token, token_id
    from keystead.web.serving import Beside, Ready, serve
else:
    __getattr__ = opened_when_used(__name__)

__all__ = ["Beside", "Housekeeping", "Ready", "login_link", "program_token", "serve", "token_id"]
