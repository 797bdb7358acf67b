"""A town that lives through the public interface, and a load of requests like its own."""

from keystead.demo.client import Away, Client, Refusal
from keystead.demo.town import Town

__all__ = ["Away", "Client", "Refusal", "Town"]
