"""Source code in five languages, read into an inventory of the keys it uses."""

from keystead.inventory.code.grammars import GrammarsMissing
from keystead.inventory.code.reading import read_code

__all__ = ["GrammarsMissing", "read_code"]
