"""Which patterns a number of concrete keys form, learned from their names alone."""

from keystead.inventory.learning.learned import Learned, learned_from
from keystead.inventory.learning.naming import Named
from keystead.inventory.learning.tokens import LONGEST_NAME, is_word
from keystead.inventory.learning.tree import Group, Tree

__all__ = ["Group", "LONGEST_NAME", "Learned", "Named", "Tree", "is_word", "learned_from"]
