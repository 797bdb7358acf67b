"""Hand-kept documents, whatever they look like, into an inventory."""

from .opening import NotADocument
from .reading import read_document

__all__ = ["NotADocument", "read_document"]
