"""Proving who someone is: so far only what is counted of it."""
