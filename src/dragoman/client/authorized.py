"""Operations that show credentials: on every binding in the same way, as headers or metadata of each call.

A call that is refused for want of a good token (401, UNAUTHENTICATED) is made once more with another one, when there is
one: the same request, with the same message id. A stream is opened anew with the token of that time.

Spec: AUTH-04, AUTH-06, GRPC-05, PARAM-05, PARAM-06, BIND-05, XCARD-01; section 12.6 of the register of the command
line.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from dragoman.auth.presenting import Presenter, Refusal
from dragoman.errors import UnauthenticatedError
from dragoman.model import Operation
from dragoman.ports.operations import CallContext, EventStream, Operations

T = TypeVar("T")


class Authorized:
    """Operations over those of one interface.

    ``url``: an http or https address of the origin that the credentials are for, whose metadata a challenge may name;
    ``resources``: the identifiers that the agent may have there.
    """

    def __init__(self, operations: Operations, presenter: Presenter, url: str, resources: tuple[str, ...]) -> None:
        self._operations = operations
        self._presenter = presenter
        self._url = url
        self._resources = resources

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`. Raises what the source of tokens raises."""
        return await self._show(context, lambda own: self._operations.call(op, request, own))

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`. Raises what the source of tokens raises."""
        return await self._show(context, lambda own: self._operations.stream(op, request, own))

    async def _show(self, context: CallContext, use: Callable[[CallContext], Awaitable[T]]) -> T:
        own = await self._with_credentials(context)
        started = time.monotonic()
        try:
            result = await use(own)
        except UnauthenticatedError as error:
            again = await self._again(context, own, error, time.monotonic() - started)
            if again is None:
                raise
            own = again
            result = await use(own)
        context.activated = own.activated
        return result

    async def _with_credentials(self, context: CallContext) -> CallContext:
        """What the caller says of this very call comes before what the client shows."""
        return replace(context, parameters={**await self._presenter.headers(), **context.parameters})

    async def _again(
        self, context: CallContext, own: CallContext, error: UnauthenticatedError, spent: float
    ) -> CallContext | None:
        """The same call with a better credential; None when there is none."""
        if "authorization" in context.parameters:
            return None
        headers = error.origin.headers if error.origin is not None else {}
        if not await self._presenter.renew(own.parameters, Refusal(self._url, headers, self._resources)):
            return None
        again = replace(context, parameters={**self._presenter.renewed, **context.parameters})
        if context.timeout is not None:
            again.timeout = max(context.timeout - spent, 0.001)
        return again
