"""Protocol 0.3: its messages, its bindings, and the way from there to 1.0 and back.

Only :mod:`dragoman.server.dialects` and :mod:`dragoman.client.dialects` import it; nothing else knows that it exists.
"""
