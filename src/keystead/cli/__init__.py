"""The ``keystead`` command."""

from keystead.cli.entry import main

__all__ = ["main"]
