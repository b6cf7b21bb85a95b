"""Benchmarks: ratios against a bare ASGI app on the same server, in the same run."""
