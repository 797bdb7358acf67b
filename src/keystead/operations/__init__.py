"""Looking at a live system: audits, explanations and counts of a server's keys."""

from keystead.operations.spelling import read_key, spell_key

__all__ = ["read_key", "spell_key"]
