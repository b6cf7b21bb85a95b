"""Holds: a piece of work that keeps the microVM, as a context manager and as a decorator.

Spec: AC-S-66.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from dragoman.errors import ConfigurationError

F = TypeVar("F", bound=Callable[..., Any])


class Holder(Protocol):
    """Where holds are counted."""

    def open(self, name: str, most: float | None) -> int:
        """Open one; its number."""
        ...

    def close(self, number: int) -> None:
        """Close one; no effect when it is closed."""
        ...


class Hold:
    """Work that keeps the microVM. May be entered again, also while it is held; released too often, nothing happens.

    Without a host (under another server, in a test) it does nothing, so that code with holds runs everywhere.
    """

    __slots__ = ("_find", "_most", "_name", "_open")

    def __init__(self, find: Callable[[], Holder | None], name: str, most: float | None) -> None:
        self._find = find
        self._name = name
        self._most = most
        self._open: list[tuple[Holder, int]] = []

    def acquire(self) -> Hold:
        """Begin to hold."""
        holder = self._find()
        if holder is not None:
            self._open.append((holder, holder.open(self._name, self._most)))
        return self

    def release(self) -> None:
        """Hold no longer."""
        if self._open:
            holder, number = self._open.pop()
            holder.close(number)

    def __enter__(self) -> Hold:
        return self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()

    async def __aenter__(self) -> Hold:
        return self.acquire()

    async def __aexit__(self, *exc: object) -> None:
        self.release()

    def __call__(self, function: F) -> F:
        """Hold during each call of a function or coroutine function. Raises ConfigurationError for a generator."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigurationError("a hold decorates functions and coroutine functions; use `with` in a generator")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def held_coroutine(*args: Any, **kwargs: Any) -> Any:
                with Hold(self._find, self._name, self._most):
                    return await function(*args, **kwargs)

            return cast(F, held_coroutine)

        @functools.wraps(function)
        def held(*args: Any, **kwargs: Any) -> Any:
            with Hold(self._find, self._name, self._most):
                return function(*args, **kwargs)

        return cast(F, held)
