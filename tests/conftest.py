"""The fixtures are Keystead's own test kit, loaded by its pytest entry point."""
