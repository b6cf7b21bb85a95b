"""Generations of the protocol before 1.0: guests, each in a package of its own."""
