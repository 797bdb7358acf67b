"""One module for each step, numbered without a gap. A step names its tables itself and is never changed later."""
