"""What we know of a person."""
