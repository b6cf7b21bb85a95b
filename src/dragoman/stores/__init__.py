"""Stores: where tasks live. In memory for tests and trials, in a SQL database to keep them."""

from dragoman.stores.checking import check_store
from dragoman.stores.memory import MemoryStore
from dragoman.stores.opening import open_store

__all__ = ["MemoryStore", "check_store", "open_store"]
