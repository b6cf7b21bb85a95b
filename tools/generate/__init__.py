"""The generator: everything that is derived from ``proto/a2a.proto`` (Spec: DATA-01) and ``proto/a2a_v03.proto``.

``python -m tools.generate`` writes into ``src/dragoman``; ``make generate`` calls it.
"""
