"""Getting words to an address: channels, touches over channels, trackable links."""
