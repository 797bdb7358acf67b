"""Journeys and prompts: so far only what is counted of them."""
