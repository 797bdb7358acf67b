"""The dashboard: pages for people. Importing this imports NiceGUI, which is heavy."""

from keystead.web.dashboard.mounting import mount

__all__ = ["mount"]
