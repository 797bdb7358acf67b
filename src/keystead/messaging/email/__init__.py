"""Email: so far only what is counted of them."""
