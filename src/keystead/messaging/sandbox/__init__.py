"""Providers that speak the real protocols and deliver to nobody."""
