"""Reusable behaviours over declared keys. A pattern knows no room and no meaning."""

__all__: list[str] = []
