"""Methods that extensions add, over gRPC: a service of their own, whose messages are ``google.protobuf.Struct``.

The service of the protocol stays as it is defined (EXT-11). The name of a method is that of its operation.

Spec: EXT-11, EXT-13, GRPC-01.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from dragoman.bindings.grpc.form import EventSource, ServerForm
from dragoman.bindings.grpc.metadata import head_of
from dragoman.bindings.grpc.open_messages import METHODS_SERVICE, decode_open, encode_open
from dragoman.bindings.grpc.status import EncodedStatus, encode_status
from dragoman.errors import A2AError, MethodNotFoundError
from dragoman.model import OpenMessage, Operation
from dragoman.ports.operations import CallContext, Operations


class MethodsForm(ServerForm):
    """The form of these methods; ``methods`` are their operations by name."""

    def __init__(self, methods: Mapping[str, Operation]) -> None:
        super().__init__(METHODS_SERVICE, dict.fromkeys(methods, False))
        self._methods = methods

    def adopt(self, context: CallContext) -> None:
        """It is one of the current generation."""

    def answers_to(self, path: str) -> bool:
        """See :class:`~dragoman.bindings.grpc.form.ServerForm`."""
        return path.startswith(f"/{METHODS_SERVICE}/")

    async def call(self, method: str, data: bytes, operations: Operations, context: CallContext) -> bytes:
        """See :class:`~dragoman.bindings.grpc.form.ServerForm`."""
        answer = await operations.call(self._methods[method], decode_open(data), context)
        return encode_open(cast(OpenMessage, answer))

    async def stream(self, method: str, data: bytes, operations: Operations, context: CallContext) -> EventSource:
        """There is none that streams."""
        raise MethodNotFoundError

    def head(self, context: CallContext) -> tuple[tuple[str, str], ...]:
        """See :class:`~dragoman.bindings.grpc.form.ServerForm`."""
        return head_of(context)

    def status(self, error: A2AError) -> EncodedStatus:
        """See :class:`~dragoman.bindings.grpc.form.ServerForm`."""
        return encode_status(error)
