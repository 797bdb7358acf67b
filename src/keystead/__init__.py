"""Keystead: every Valkey/Redis key declared once, and the backend that grows from it."""
