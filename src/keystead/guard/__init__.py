"""A guard for redis-py programs: every command is checked against an inventory while the program runs."""

from keystead.guard.clients import Guard, guard_of, guarded
from keystead.guard.judging import NotInInventory
from keystead.guard.reports import Finding, Kind, Report

__all__ = ["Finding", "Guard", "Kind", "NotInInventory", "Report", "guard_of", "guarded"]
