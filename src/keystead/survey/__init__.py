"""Looking at a live server that may be anybody's: walking, learning, comparing, reporting. Reads and never writes."""

from keystead.survey.pace import Pace
from keystead.survey.walk import UNKNOWN_TTL, Page, Walk

__all__ = ["Pace", "Page", "UNKNOWN_TTL", "Walk"]
