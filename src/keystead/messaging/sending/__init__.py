"""What the channels share."""
