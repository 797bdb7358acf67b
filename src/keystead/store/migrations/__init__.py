"""The steps of the tables, in ``versions``; taken by ``keystead.store.migration``."""
