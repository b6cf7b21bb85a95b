"""Check at start-up that a store has all that the contract asks for."""

from __future__ import annotations

import inspect
from typing import Any

from dragoman.errors import ConfigurationError
from dragoman.ports.store import TaskStore

_METHODS = [name for name, value in vars(TaskStore).items() if inspect.iscoroutinefunction(value)]


def check_store(store: Any) -> None:
    """Check that ``store`` can be called as :class:`~dragoman.ports.store.TaskStore` says.

    Raises ConfigurationError that names the first method that is missing or does not take the contract's arguments, so
    that a store of a third party fails when the server starts and not when a task ends.
    """
    kind = type(store).__name__
    if not isinstance(getattr(store, "durable", None), bool):
        raise ConfigurationError(f"The store {kind} has no attribute 'durable' that is True or False")
    for name in _METHODS:
        wanted = list(inspect.signature(getattr(TaskStore, name)).parameters)[1:]
        method = getattr(store, name, None)
        if not callable(method):
            raise ConfigurationError(f"The store {kind} has no method {name}({', '.join(wanted)})")
        if not _takes(method, len(wanted)):
            raise ConfigurationError(f"The store {kind} has a method {name}() that does not take ({', '.join(wanted)})")


def _takes(method: Any, count: int) -> bool:
    try:
        signature = inspect.signature(method)
    except ValueError:
        return True  # a compiled method does not tell
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True
