"""Signatures of providers: how they are made, and how they are checked."""
