"""Benchmarks: ours beside the peers, interleaved in one run. Start with README.md in this directory."""
