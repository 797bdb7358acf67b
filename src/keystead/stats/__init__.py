"""Statistics: what is counted, its rotation into SQL, and its charts."""

from keystead.stats.catalogue import Catalogue, Charted

__all__ = ["Catalogue", "Charted"]
