"""What the runtime and the code of extensions know of each other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from dragoman.model import OpenMessage, Operation
from dragoman.ports.operations import CallContext, Operations

MethodCall = Callable[[OpenMessage, CallContext], Awaitable[OpenMessage]]
"""Runs a method of an extension. Raises A2AError."""


class ExtensionMethod(msgspec.Struct, frozen=True, eq=False):
    """An operation that an extension adds: ``uri`` is the extension's, ``call`` does the work."""

    op: Operation
    uri: str
    call: MethodCall


class Extending(Protocol):
    """The extensions of one agent, between the admission of a call and the runtime's own work.

    * ``methods``: the operations that they add;
    * ``depends``: by URI, those that an extension cannot do without: it is active only together with them.
    """

    methods: Sequence[ExtensionMethod]
    depends: Mapping[str, Sequence[str]]

    @abstractmethod
    def over(self, operations: Operations) -> Operations:
        """Operations that pass through the extensions that are active for a call, and end in these."""
